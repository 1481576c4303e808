"""Calls the methods of a container runtime over its socket, with types and a deadline for each call."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, TypeVar

import grpc
import grpc.aio

from shoal.agent.protos import cri_pb2 as messages

T = TypeVar("T")
_CALL_S, _START_S, _PULL_S = 30.0, 120.0, 3600.0
_NOT_READY, _RETRY_S = "server is not initialized yet", 0.1
_RUNTIME, _IMAGES = "/runtime.v1.RuntimeService/", "/runtime.v1.ImageService/"


class RuntimeCalls:
    """All methods raise `grpc.aio.AioRpcError`, and TimeoutError while the runtime starts for too long."""

    def __init__(self, socket: Path) -> None:
        self._channel = grpc.aio.insecure_channel(f"unix:{socket}", (("grpc.enable_http_proxy", 0),))

    async def close(self) -> None:
        await self._channel.close(None)

    async def version(self) -> messages.VersionResponse:
        return await self._call(f"{_RUNTIME}Version", messages.VersionRequest(), messages.VersionResponse)

    async def run_sandbox(self, config: messages.PodSandboxConfig) -> str:
        request = messages.RunPodSandboxRequest(config=config)
        answer = await self._call(f"{_RUNTIME}RunPodSandbox", request, messages.RunPodSandboxResponse, _START_S)
        return answer.pod_sandbox_id

    async def remove_sandbox(self, id_: str) -> None:
        stop = messages.StopPodSandboxRequest(pod_sandbox_id=id_)
        await self._call(f"{_RUNTIME}StopPodSandbox", stop, messages.StopPodSandboxResponse, _START_S)
        remove = messages.RemovePodSandboxRequest(pod_sandbox_id=id_)
        await self._call(f"{_RUNTIME}RemovePodSandbox", remove, messages.RemovePodSandboxResponse, _START_S)

    async def sandboxes(self, labels: dict[str, str]) -> list[messages.PodSandbox]:
        request = messages.ListPodSandboxRequest(filter=messages.PodSandboxFilter(label_selector=labels))
        return list((await self._call(f"{_RUNTIME}ListPodSandbox", request, messages.ListPodSandboxResponse)).items)

    async def create(self, request: messages.CreateContainerRequest) -> str:
        answer = await self._call(f"{_RUNTIME}CreateContainer", request, messages.CreateContainerResponse, _START_S)
        return answer.container_id

    async def start(self, id_: str) -> None:
        request = messages.StartContainerRequest(container_id=id_)
        await self._call(f"{_RUNTIME}StartContainer", request, messages.StartContainerResponse, _START_S)

    async def stop(self, id_: str, grace_s: int) -> None:
        request = messages.StopContainerRequest(container_id=id_, timeout=grace_s)
        await self._call(f"{_RUNTIME}StopContainer", request, messages.StopContainerResponse, _CALL_S + grace_s)

    async def containers(self, labels: dict[str, str]) -> list[messages.Container]:
        request = messages.ListContainersRequest(filter=messages.ContainerFilter(label_selector=labels))
        answer = await self._call(f"{_RUNTIME}ListContainers", request, messages.ListContainersResponse)
        return list(answer.containers)

    async def status(self, id_: str) -> messages.ContainerStatus:
        request = messages.ContainerStatusRequest(container_id=id_)
        return (await self._call(f"{_RUNTIME}ContainerStatus", request, messages.ContainerStatusResponse)).status

    async def run(self, id_: str, command: list[str]) -> messages.ExecSyncResponse:
        request = messages.ExecSyncRequest(container_id=id_, cmd=command)
        return await self._call(f"{_RUNTIME}ExecSync", request, messages.ExecSyncResponse, _PULL_S)

    async def has_image(self, image: str) -> bool:
        request = messages.ImageStatusRequest(image=messages.ImageSpec(image=image))
        return bool((await self._call(f"{_IMAGES}ImageStatus", request, messages.ImageStatusResponse)).image.id)

    async def pull(self, image: str) -> None:
        request = messages.PullImageRequest(image=messages.ImageSpec(image=image))
        await self._call(f"{_IMAGES}PullImage", request, messages.PullImageResponse, _PULL_S)

    async def _call(self, path: str, request: Any, answer: type[T], timeout_s: float = _CALL_S) -> T:
        decode: Any = answer
        method = self._channel.unary_unary(
            path,
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=decode.FromString,
        )
        async with asyncio.timeout(timeout_s):
            while True:
                try:
                    found: T = await method(request, timeout=timeout_s, wait_for_ready=True)
                except grpc.aio.AioRpcError as error:
                    # A runtime that starts answers before its part for kubelets is ready.
                    if _NOT_READY not in (error.details() or ""):
                        raise
                    await asyncio.sleep(_RETRY_S)
                else:
                    return found


def _encoded(message: Any) -> bytes:
    data: bytes = message.SerializeToString()
    return data
