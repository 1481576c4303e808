"""A container runtime that serves the Container Runtime Interface on a unix socket, with containers that are not real.

A container whose command is `exit N` ends at once with that code; any other runs until it is stopped. What runs
survives `restart`. Each call can be answered with a fault instead, before or after its effect.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any, Literal

import grpc
import msgspec

from shoal.agent.protos import cri_pb2 as messages
from shoal.agent.unary_calls import unary_handler

How = Literal["error", "hang", "lost"]
RUNTIME_CALLS = (
    "Version", "Status", "RunPodSandbox", "StopPodSandbox", "RemovePodSandbox", "PodSandboxStatus", "ListPodSandbox",
    "CreateContainer", "StartContainer", "StopContainer", "RemoveContainer", "ListContainers", "ContainerStatus",
    "ReopenContainerLog", "ExecSync", "Exec", "ListContainerStats",
)  # fmt: skip
IMAGE_CALLS = ("ImageStatus", "PullImage", "ListImages", "RemoveImage", "ImageFsInfo")
_THREADS = 16


class Fault(msgspec.Struct):
    how: How
    is_after: bool = False
    """Whether the call has its effect, and only its answer is missing."""
    left: int = 1
    """How many calls it is the answer of."""


class _RefusedError(Exception):
    def __init__(self, code: grpc.StatusCode, words: str) -> None:
        super().__init__(words)
        self.code = code


class FakeCri:
    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.faults: dict[str, Fault] = {}
        self.calls: Counter[str] = Counter()
        self.images: set[str] = set()
        self.pinned: set[str] = set()
        self.sandbox_image = ""
        self.registry: set[str] = {"app:1"}
        self.has_network = True
        self.sandboxes: dict[str, messages.PodSandbox] = {}
        self.containers: dict[str, messages.Container] = {}
        self.configs: dict[str, messages.ContainerConfig] = {}
        self.sandbox_configs: list[messages.PodSandboxConfig] = []
        self.statuses: dict[str, messages.ContainerStatus] = {}
        self.starts: Counter[tuple[str, str, int]] = Counter()
        """How often each run of a container was started: by pod, container and attempt."""
        self.handlers: list[str] = []
        self.graces: list[int] = []
        """The grace periods of stopped containers, in seconds."""
        self.commands: list[tuple[str, ...]] = []
        """Those that were run in containers."""
        self.used: dict[str, tuple[int, int, int]] = {}
        self.written: dict[str, int] = {}
        """By container: the time in nanoseconds, those of processors, and bytes of memory."""
        self.holds_commands = False
        """Whether commands in containers do not end now."""
        self.exec_url = "http://127.0.0.1:1/exec/token"
        """Where the streams of commands are."""
        self.reopened: Counter[str] = Counter()
        """How often each container has begun a new log."""
        self._names = count(1)
        self._lock = threading.RLock()
        self._restarting = threading.Lock()
        self._released = threading.Event()
        self._server = self._listen()

    # The test's side.

    def running(self, pod: str, container: str) -> int:
        """How many runs of a container run now."""
        return sum(
            one.state == messages.CONTAINER_RUNNING and (self._uid(one), one.metadata.name) == (pod, container)
            for one in [*self.containers.values()]
        )

    def end(self, pod: str, container: str, code: int) -> None:
        with self._lock:
            for one in self.containers.values():
                if (self._uid(one), one.metadata.name) == (pod, container):
                    self._ended(one, code)

    def restart(self) -> None:
        """End all connections; what runs goes on."""
        with self._restarting:
            self._server.stop(0).wait()
            self._server = self._listen()

    def stop(self) -> None:
        self._released.set()
        self._server.stop(0).wait()

    # Calls.

    def _listen(self) -> grpc.Server:
        self.socket.unlink(missing_ok=True)
        server = grpc.server(ThreadPoolExecutor(_THREADS))
        for service, names in (("runtime.v1.RuntimeService", RUNTIME_CALLS), ("runtime.v1.ImageService", IMAGE_CALLS)):
            handlers = {name: unary_handler(self._answering(name), _request(name)) for name in names}
            server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
        server.add_insecure_port(f"unix:{self.socket}")
        server.start()
        return server

    def _answering(self, name: str) -> Callable[[Any, grpc.ServicerContext], Any]:
        answer = getattr(self, f"_{name}")

        def handle(request: Any, context: grpc.ServicerContext) -> Any:
            with self._lock:
                self.calls[name] += 1
                fault = self.faults.get(name)
                if fault is not None and fault.left > 0:
                    fault.left -= 1
                else:
                    fault = None
            if fault is not None and not fault.is_after:
                self._fail(fault.how, context)
            if name == "ExecSync":
                self._hold(request, context)
            try:
                with self._lock:
                    found = answer(request)
            except _RefusedError as refused:
                context.abort(refused.code, str(refused))
            if fault is not None:
                self._fail(fault.how, context)
            return found

        return handle

    def _hold(self, request: messages.ExecSyncRequest, context: grpc.ServicerContext) -> None:
        self.commands.append(tuple(request.cmd))
        while self.holds_commands and context.is_active() and not self._released.wait(0.01):
            pass

    def _fail(self, how: How, context: grpc.ServicerContext) -> None:
        if how == "error":
            context.abort(grpc.StatusCode.UNKNOWN, "injected")
        ended = threading.Event()
        context.add_callback(ended.set)
        if how == "lost":
            threading.Thread(target=self.restart, daemon=True).start()
        while not ended.wait(0.01) and not self._released.is_set():
            pass
        context.abort(grpc.StatusCode.CANCELLED, "the caller is gone")

    def _Version(self, _: Any) -> messages.VersionResponse:
        return messages.VersionResponse(runtime_name="fake", runtime_version="1.0")

    def _Status(self, _: Any) -> messages.StatusResponse:
        network = messages.RuntimeCondition(type="NetworkReady", status=self.has_network)
        config = msgspec.json.encode({"sandboxImage": self.sandbox_image}).decode()
        return messages.StatusResponse(status=messages.RuntimeStatus(conditions=[network]), info={"config": config})

    def _RunPodSandbox(self, request: messages.RunPodSandboxRequest) -> messages.RunPodSandboxResponse:
        meta = request.config.metadata
        if any(one.metadata == meta for one in self.sandboxes.values()):
            raise _RefusedError(grpc.StatusCode.UNKNOWN, f"name {meta.name}_{meta.attempt} is reserved")
        id_ = f"sandbox-{next(self._names)}"
        self.sandboxes[id_] = messages.PodSandbox(
            id=id_, metadata=meta, state=messages.SANDBOX_READY, labels=request.config.labels
        )
        self.sandbox_configs.append(request.config)
        self.handlers.append(request.runtime_handler)
        return messages.RunPodSandboxResponse(pod_sandbox_id=id_)

    def _StopPodSandbox(self, request: messages.StopPodSandboxRequest) -> messages.StopPodSandboxResponse:
        for one in self.containers.values():
            if one.pod_sandbox_id == request.pod_sandbox_id:
                self._ended(one, 137)
        if request.pod_sandbox_id in self.sandboxes:
            self.sandboxes[request.pod_sandbox_id].state = messages.SANDBOX_NOTREADY
        return messages.StopPodSandboxResponse()

    def _RemovePodSandbox(self, request: messages.RemovePodSandboxRequest) -> messages.RemovePodSandboxResponse:
        self.sandboxes.pop(request.pod_sandbox_id, None)
        for one in [*self.containers.values()]:
            if one.pod_sandbox_id == request.pod_sandbox_id:
                del self.containers[one.id]
        return messages.RemovePodSandboxResponse()

    def _PodSandboxStatus(self, request: messages.PodSandboxStatusRequest) -> messages.PodSandboxStatusResponse:
        network = messages.PodSandboxNetworkStatus(ip="10.88.0.7")
        return messages.PodSandboxStatusResponse(
            status=messages.PodSandboxStatus(id=request.pod_sandbox_id, network=network)
        )

    def _ListPodSandbox(self, request: messages.ListPodSandboxRequest) -> messages.ListPodSandboxResponse:
        wanted = request.filter.label_selector
        return messages.ListPodSandboxResponse(
            items=[one for one in self.sandboxes.values() if wanted.items() <= one.labels.items()]
        )

    def _CreateContainer(self, request: messages.CreateContainerRequest) -> messages.CreateContainerResponse:
        config = request.config
        for one in self.containers.values():
            if (one.pod_sandbox_id, one.metadata) == (request.pod_sandbox_id, config.metadata):
                raise _RefusedError(grpc.StatusCode.UNKNOWN, f"name {config.metadata.name} is reserved")
        id_ = f"container-{next(self._names)}"
        self.containers[id_] = messages.Container(
            id=id_,
            pod_sandbox_id=request.pod_sandbox_id,
            metadata=config.metadata,
            state=messages.CONTAINER_CREATED,
            labels=config.labels,
            image_ref=config.image.image,
        )
        self.configs[id_] = config
        self.statuses[id_] = messages.ContainerStatus(id=id_, state=messages.CONTAINER_CREATED)
        return messages.CreateContainerResponse(container_id=id_)

    def _StartContainer(self, request: messages.StartContainerRequest) -> messages.StartContainerResponse:
        one = self._known(request.container_id)
        if one.state != messages.CONTAINER_CREATED:
            raise _RefusedError(grpc.StatusCode.UNKNOWN, "container is not in created state")
        one.state = self.statuses[one.id].state = messages.CONTAINER_RUNNING
        self.starts[(self._uid(one), one.metadata.name, one.metadata.attempt)] += 1
        command = [*self.configs[one.id].command]
        if command[:1] == ["exit"]:
            self._ended(one, int(command[1]))
        return messages.StartContainerResponse()

    def _StopContainer(self, request: messages.StopContainerRequest) -> messages.StopContainerResponse:
        self._ended(self._known(request.container_id), 143)
        self.graces.append(request.timeout)
        return messages.StopContainerResponse()

    def _RemoveContainer(self, request: messages.RemoveContainerRequest) -> messages.RemoveContainerResponse:
        self.containers.pop(request.container_id, None)
        return messages.RemoveContainerResponse()

    def _ListContainers(self, request: messages.ListContainersRequest) -> messages.ListContainersResponse:
        wanted = request.filter.label_selector
        found = [one for one in self.containers.values() if wanted.items() <= one.labels.items()]
        if request.filter.HasField("state"):
            found = [one for one in found if one.state == request.filter.state.state]
        return messages.ListContainersResponse(containers=found)

    def _ContainerStatus(self, request: messages.ContainerStatusRequest) -> messages.ContainerStatusResponse:
        return messages.ContainerStatusResponse(status=self.statuses[self._known(request.container_id).id])

    def _ListContainerStats(self, request: messages.ListContainerStatsRequest) -> messages.ListContainerStatsResponse:
        wanted, found = request.filter.label_selector, []
        for one in self.containers.values():
            if one.id in self.used and wanted.items() <= one.labels.items():
                at, cpu, memory = self.used[one.id]
                attributes = messages.ContainerAttributes(id=one.id, metadata=one.metadata, labels=one.labels)
                used = messages.CpuUsage(timestamp=at, usage_core_nano_seconds=messages.UInt64Value(value=cpu))
                kept = messages.MemoryUsage(timestamp=at, working_set_bytes=messages.UInt64Value(value=memory))
                layer = messages.FilesystemUsage(used_bytes=messages.UInt64Value(value=self.written.get(one.id, 0)))
                found.append(
                    messages.ContainerStats(attributes=attributes, cpu=used, memory=kept, writable_layer=layer)
                )
        return messages.ListContainerStatsResponse(stats=found)

    def _ReopenContainerLog(self, request: messages.ReopenContainerLogRequest) -> messages.ReopenContainerLogResponse:
        self._known(request.container_id)
        self.reopened[request.container_id] += 1
        return messages.ReopenContainerLogResponse()

    def _ExecSync(self, request: messages.ExecSyncRequest) -> messages.ExecSyncResponse:
        self._known(request.container_id)
        return messages.ExecSyncResponse(stdout=b"said", exit_code=0 if request.cmd[0] == "true" else 1)

    def _Exec(self, request: messages.ExecRequest) -> messages.ExecResponse:
        self._known(request.container_id)
        return messages.ExecResponse(url=self.exec_url)

    def _ImageStatus(self, request: messages.ImageStatusRequest) -> messages.ImageStatusResponse:
        name = request.image.image
        image = messages.Image(id=f"sha256:{name}", size=5) if name in self.images else None
        return messages.ImageStatusResponse(image=image)

    def _ListImages(self, _: Any) -> messages.ListImagesResponse:
        found = [
            messages.Image(id=f"sha256:{name}", repo_tags=[name], size=5, pinned=name in self.pinned)
            for name in sorted(self.images)
        ]
        return messages.ListImagesResponse(images=found)

    def _RemoveImage(self, request: messages.RemoveImageRequest) -> messages.RemoveImageResponse:
        self.images.discard(request.image.image.removeprefix("sha256:"))
        return messages.RemoveImageResponse()

    def _ImageFsInfo(self, _: Any) -> messages.ImageFsInfoResponse:
        disk = messages.FilesystemUsage(fs_id=messages.FilesystemIdentifier(mountpoint="/images"))
        return messages.ImageFsInfoResponse(image_filesystems=[disk])

    def _PullImage(self, request: messages.PullImageRequest) -> messages.PullImageResponse:
        if request.image.image not in self.registry:
            raise _RefusedError(grpc.StatusCode.NOT_FOUND, f"{request.image.image}: not found")
        self.images.add(request.image.image)
        return messages.PullImageResponse(image_ref=f"sha256:{request.image.image}")

    def _known(self, id_: str) -> messages.Container:
        if id_ not in self.containers:
            raise _RefusedError(grpc.StatusCode.NOT_FOUND, f"container {id_} not found")
        return self.containers[id_]

    def _ended(self, one: messages.Container, code: int) -> None:
        if one.state in (messages.CONTAINER_RUNNING, messages.CONTAINER_UNKNOWN):
            status = self.statuses[one.id]
            one.state = status.state = messages.CONTAINER_EXITED
            status.exit_code, status.reason = code, "Error" if code else "Completed"

    def _uid(self, one: messages.Container) -> str:
        return self.sandboxes[one.pod_sandbox_id].metadata.uid if one.pod_sandbox_id in self.sandboxes else ""


def _request(name: str) -> Any:
    return defaultdict(lambda: None, vars(messages))[f"{name}Request"]
