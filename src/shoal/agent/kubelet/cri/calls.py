"""Calls the methods of a container runtime over its socket, with types and a deadline for each call.

Guarantees: every call ends within its deadline, with an answer or with `CallFailedError`; a runtime that was restarted
is called again as soon as it listens.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import msgspec
from google.protobuf.message import Message

from shoal.agent.protos import cri_pb2 as messages
from shoal.agent.unary_calls import CHANNEL, T, async_unary_call

_NOT_READY, _RETRY_S = "server is not initialized yet", 0.1
_RECONNECT_MS = 100
_LONGEST_BYTES = 64 << 20
_RUNTIME, _IMAGES = "/runtime.v1.RuntimeService/", "/runtime.v1.ImageService/"
_OPTIONS = (
    *CHANNEL,
    ("grpc.max_receive_message_length", _LONGEST_BYTES),
    ("grpc.initial_reconnect_backoff_ms", _RECONNECT_MS),
    ("grpc.min_reconnect_backoff_ms", _RECONNECT_MS),
    ("grpc.max_reconnect_backoff_ms", 10 * _RECONNECT_MS),
)


class Deadlines(msgspec.Struct, frozen=True):
    """How long calls may take, in seconds."""

    query_s: float = 30.0
    change_s: float = 120.0
    """Creation, start and removal."""
    pull_s: float = 3600.0


class _RuntimeConfig(msgspec.Struct, rename="camel"):
    """What containerd tells of its configuration."""

    sandbox_image: str = ""


class CallFailedError(Exception):
    """A call was refused, or was not answered in time."""

    def __init__(self, code: str, details: str) -> None:
        super().__init__(f"rpc error: code = {code} desc = {details}")
        self.code, self.details = code, details

    @property
    def is_absent(self) -> bool:
        """Whether the runtime does not know the object of the call."""
        return self.code == "NotFound"


class RuntimeCalls:
    """All methods raise CallFailedError."""

    def __init__(self, socket: Path, deadlines: Deadlines | None = None) -> None:
        self.socket = socket
        self._deadlines = deadlines or Deadlines()
        self._channel = grpc.aio.insecure_channel(f"unix:{socket}", _OPTIONS)

    async def close(self) -> None:
        await self._channel.close(None)

    async def version(self) -> messages.VersionResponse:
        return await self._runtime("Version", messages.VersionRequest(), messages.VersionResponse)

    async def has_network(self) -> bool:
        """Whether the runtime can give pods a network of their own."""
        answer = await self._runtime("Status", messages.StatusRequest(), messages.StatusResponse)
        return any(one.type == "NetworkReady" and one.status for one in answer.status.conditions)

    async def sandbox_image(self) -> str:
        """The image of which the runtime makes sandboxes; empty if it does not say it."""
        answer = await self._runtime("Status", messages.StatusRequest(verbose=True), messages.StatusResponse)
        try:
            return msgspec.json.decode(answer.info.get("config", "{}"), type=_RuntimeConfig).sandbox_image
        except msgspec.DecodeError:
            return ""

    # Pods.

    async def run_sandbox(self, config: messages.PodSandboxConfig, handler: str = "") -> str:
        request = messages.RunPodSandboxRequest(config=config, runtime_handler=handler)
        answer = await self._change("RunPodSandbox", request, messages.RunPodSandboxResponse)
        return answer.pod_sandbox_id

    async def sandbox_address(self, id_: str) -> str:
        """Empty in the network of the node."""
        request = messages.PodSandboxStatusRequest(pod_sandbox_id=id_)
        return (await self._runtime("PodSandboxStatus", request, messages.PodSandboxStatusResponse)).status.network.ip

    async def stop_sandbox(self, id_: str) -> None:
        request = messages.StopPodSandboxRequest(pod_sandbox_id=id_)
        await self._change("StopPodSandbox", request, messages.StopPodSandboxResponse)

    async def remove_sandbox(self, id_: str) -> None:
        request = messages.RemovePodSandboxRequest(pod_sandbox_id=id_)
        await self._change("RemovePodSandbox", request, messages.RemovePodSandboxResponse)

    async def sandboxes(self, labels: dict[str, str]) -> list[messages.PodSandbox]:
        request = messages.ListPodSandboxRequest(filter=messages.PodSandboxFilter(label_selector=labels))
        return list((await self._runtime("ListPodSandbox", request, messages.ListPodSandboxResponse)).items)

    # Containers.

    async def create(self, request: messages.CreateContainerRequest) -> str:
        return (await self._change("CreateContainer", request, messages.CreateContainerResponse)).container_id

    async def start(self, id_: str) -> None:
        request = messages.StartContainerRequest(container_id=id_)
        await self._change("StartContainer", request, messages.StartContainerResponse)

    async def stop(self, id_: str, grace_s: int) -> None:
        request = messages.StopContainerRequest(container_id=id_, timeout=grace_s)
        timeout_s = self._deadlines.query_s + grace_s
        await self._call(f"{_RUNTIME}StopContainer", request, messages.StopContainerResponse, timeout_s)

    async def remove(self, id_: str) -> None:
        request = messages.RemoveContainerRequest(container_id=id_)
        await self._change("RemoveContainer", request, messages.RemoveContainerResponse)

    async def containers(self, labels: dict[str, str]) -> list[messages.Container]:
        request = messages.ListContainersRequest(filter=messages.ContainerFilter(label_selector=labels))
        return list((await self._runtime("ListContainers", request, messages.ListContainersResponse)).containers)

    async def running(self, labels: dict[str, str]) -> frozenset[str]:
        """The ids of the containers that run."""
        state = messages.ContainerStateValue(state=messages.CONTAINER_RUNNING)
        request = messages.ListContainersRequest(filter=messages.ContainerFilter(label_selector=labels, state=state))
        answer = await self._runtime("ListContainers", request, messages.ListContainersResponse)
        return frozenset(one.id for one in answer.containers)

    async def stats(self, labels: dict[str, str]) -> list[messages.ContainerStats]:
        """What containers that run have used."""
        wanted = messages.ContainerStatsFilter(label_selector=labels)
        request = messages.ListContainerStatsRequest(filter=wanted)
        return list((await self._runtime("ListContainerStats", request, messages.ListContainerStatsResponse)).stats)

    async def status(self, id_: str) -> messages.ContainerStatus:
        request = messages.ContainerStatusRequest(container_id=id_)
        return (await self._runtime("ContainerStatus", request, messages.ContainerStatusResponse)).status

    async def reopen_log(self, id_: str) -> None:
        request = messages.ReopenContainerLogRequest(container_id=id_)
        await self._runtime("ReopenContainerLog", request, messages.ReopenContainerLogResponse)

    async def run(self, id_: str, command: list[str]) -> messages.ExecSyncResponse:
        request = messages.ExecSyncRequest(container_id=id_, cmd=command)
        return await self._call(f"{_RUNTIME}ExecSync", request, messages.ExecSyncResponse, self._deadlines.pull_s)

    async def exec_url(self, id_: str, command: list[str], *, tty: bool) -> str:
        """Where the streams of a command are, which starts when the streams are opened."""
        # A terminal has one output.
        request = messages.ExecRequest(container_id=id_, cmd=command, tty=tty, stdin=True, stdout=True, stderr=not tty)
        return (await self._runtime("Exec", request, messages.ExecResponse)).url

    async def attach_url(self, id_: str, *, has_input: bool, tty: bool) -> str:
        """Where the streams of a container's program are."""
        request = messages.AttachRequest(container_id=id_, stdin=has_input, tty=tty, stdout=True, stderr=not tty)
        return (await self._runtime("Attach", request, messages.AttachResponse)).url

    async def port_url(self, sandbox: str) -> str:
        """Where connections to ports of a pod are opened."""
        request = messages.PortForwardRequest(pod_sandbox_id=sandbox)
        return (await self._runtime("PortForward", request, messages.PortForwardResponse)).url

    # Images.

    async def image(self, image: str) -> messages.Image | None:
        """None if it is not on this machine."""
        request = messages.ImageStatusRequest(image=messages.ImageSpec(image=image))
        answer = await self._images("ImageStatus", request, messages.ImageStatusResponse)
        return answer.image if answer.image.id else None

    async def images(self) -> list[messages.Image]:
        return list(
            (await self._images("ListImages", messages.ListImagesRequest(), messages.ListImagesResponse)).images
        )

    async def remove_image(self, id_: str) -> None:
        request = messages.RemoveImageRequest(image=messages.ImageSpec(image=id_))
        await self._images("RemoveImage", request, messages.RemoveImageResponse)

    async def image_disks(self) -> list[str]:
        """Folders on the disks that have the images."""
        answer = await self._images("ImageFsInfo", messages.ImageFsInfoRequest(), messages.ImageFsInfoResponse)
        return [one.fs_id.mountpoint for one in answer.image_filesystems]

    async def pull(self, image: str, auth: messages.AuthConfig | None = None) -> None:
        request = messages.PullImageRequest(image=messages.ImageSpec(image=image), auth=auth)
        await self._call(f"{_IMAGES}PullImage", request, messages.PullImageResponse, self._deadlines.pull_s)

    async def _images(self, name: str, request: Message, answer: type[T]) -> T:
        return await self._call(f"{_IMAGES}{name}", request, answer, self._deadlines.query_s)

    async def _runtime(self, name: str, request: Message, answer: type[T]) -> T:
        return await self._call(f"{_RUNTIME}{name}", request, answer, self._deadlines.query_s)

    async def _change(self, name: str, request: Message, answer: type[T]) -> T:
        return await self._call(f"{_RUNTIME}{name}", request, answer, self._deadlines.change_s)

    async def _call(self, path: str, request: Message, answer: type[T], timeout_s: float) -> T:
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    try:
                        return await async_unary_call(self._channel, path, request, answer, timeout_s)
                    except grpc.aio.AioRpcError as error:
                        # A runtime that starts answers before its part for kubelets is ready.
                        if _NOT_READY not in (error.details() or ""):
                            raise
                    await asyncio.sleep(_RETRY_S)
        except grpc.aio.AioRpcError as error:
            raise CallFailedError(_code(error), error.details() or "") from None
        except TimeoutError:
            raise CallFailedError("DeadlineExceeded", f"no answer within {timeout_s:g}s") from None


def _code(error: Any) -> str:
    """As Go spells it: `DeadlineExceeded`."""
    return "".join(word.title() for word in error.code().name.split("_"))
