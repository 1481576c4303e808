"""Runs containers by a container runtime: one sandbox for each pod, with the network of the host.

The runtime keeps all state: pods and runs are found by labels, so that a later process continues with them. One list
call for all containers notices their ends. Rejected: the runtime's event stream, which containerd 1.6 does not have.

`shoal up` does not use this adapter yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import grpc
import grpc.aio

from shoal.agent.kubelet.cri.calls import RuntimeCalls
from shoal.agent.kubelet.runtime import ContainerMount, Exit, Launch, RunKey, StartRefused
from shoal.agent.protos import cri_pb2 as messages

_OWN, _POD, _CONTAINER, _ATTEMPT = "shoal.dev/kubelet", "shoal.dev/pod-uid", "shoal.dev/container", "shoal.dev/attempt"
_EVERY_S = 0.5
_PERIOD_US = 100_000
_NANO = 1_000_000_000


class CriCommand:
    """A command that the runtime runs to its end; it has no input."""

    def __init__(self, calls: RuntimeCalls, id_: str, command: Sequence[str]) -> None:
        self._answer = asyncio.ensure_future(calls.run(id_, list(command)))
        self._said = 0

    async def read(self) -> tuple[int, bytes] | None:
        answer = await self._answer
        while self._said < 2:
            self._said += 1
            data = answer.stdout if self._said == 1 else answer.stderr
            if data:
                return self._said, data
        return None

    async def write(self, data: bytes) -> None:
        """The input is not passed on."""

    def end_input(self) -> None:
        """There is no input."""

    def resize(self, columns: int, rows: int) -> None:
        """There is no terminal."""

    async def code(self) -> int:
        return (await self._answer).exit_code

    def kill(self) -> None:
        self._answer.cancel()


class CriRuntime:
    def __init__(self, calls: RuntimeCalls, folder: Path, name: str = "containerd") -> None:
        """`folder`: for the logs of containers."""
        self.name = name
        self._calls, self._folder = calls, folder
        self._waiting: dict[str, asyncio.Event] = {}
        self._poller: asyncio.Task[None] | None = None
        self._sandboxes: dict[str, asyncio.Lock] = {}

    async def start(self, key: RunKey, launch: Launch) -> None:
        if await self._id(key) is not None:
            return
        try:
            if launch.image and not await self._calls.has_image(launch.image):
                await self._pull(launch.image)
            sandbox, config = await self._sandbox(key, launch)
            container = messages.ContainerConfig(
                metadata=messages.ContainerMetadata(name=key.container, attempt=key.attempt),
                image=messages.ImageSpec(image=launch.image),
                command=launch.command,
                args=launch.args,
                working_dir=str(launch.folder),
                envs=[messages.KeyValue(key=name, value=value) for name, value in launch.environment.items()],
                mounts=[_mount(one) for one in launch.mounts],
                labels=_labels(key),
                log_path=f"{key.container}/{key.attempt}.log",
                linux=messages.LinuxContainerConfig(
                    resources=_resources(launch),
                    security_context=messages.LinuxContainerSecurityContext(namespace_options=_host_network()),
                ),
                CDI_devices=[messages.CDIDevice(name=name) for name in launch.cdi_devices],
            )
            request = messages.CreateContainerRequest(pod_sandbox_id=sandbox, config=container, sandbox_config=config)
            await self._calls.start(await self._calls.create(request))
        except grpc.aio.AioRpcError as error:
            if await self._id(key) is not None:
                # The container exists and its program does not: its state says why.
                return
            raise StartRefused("CreateContainerError", error.details() or str(error.code())) from None

    async def is_started(self, key: RunKey) -> bool:
        return await self._id(key) is not None

    async def wait(self, key: RunKey) -> Exit:
        id_ = await self._id(key)
        if id_ is None:
            return Exit(137, 0.0, 0.0, "ContainerStatusUnknown", "the runtime does not know the container any more")
        ended = self._waiting.setdefault(id_, asyncio.Event())
        if self._poller is None or self._poller.done():
            self._poller = asyncio.ensure_future(self._poll())
        await ended.wait()
        status = await self._calls.status(id_)
        reason = {"Completed": "", "Error": ""}.get(status.reason, status.reason)
        return Exit(status.exit_code, status.started_at / _NANO, status.finished_at / _NANO, reason, status.message)

    async def stop(self, key: RunKey, grace_s: float) -> None:
        id_ = await self._id(key)
        if id_ is not None:
            with suppress(grpc.aio.AioRpcError, TimeoutError):
                await self._calls.stop(id_, int(grace_s))

    async def run(self, key: RunKey, command: Sequence[str], *, tty: bool = False) -> CriCommand:
        id_ = await self._id(key)
        if id_ is None or tty:
            words = "commands with a terminal are not supported in containers" if tty else "the container does not run"
            raise StartRefused("NotFound", words)
        return CriCommand(self._calls, id_, command)

    def log_files(self, key: RunKey) -> Sequence[Path]:
        path = self._folder / key.pod / "logs" / key.container / f"{key.attempt}.log"
        return [path] if path.exists() else []

    async def remove(self, pod: str) -> None:
        for sandbox in await self._calls.sandboxes({_OWN: "true", _POD: pod}):
            await self._calls.remove_sandbox(sandbox.id)

    async def close(self) -> None:
        if self._poller is not None:
            self._poller.cancel()
            with suppress(asyncio.CancelledError):
                await self._poller
        await self._calls.close()

    async def _pull(self, image: str) -> None:
        try:
            await self._calls.pull(image)
        except grpc.aio.AioRpcError as error:
            raise StartRefused("ErrImagePull", error.details() or str(error.code())) from None

    async def _sandbox(self, key: RunKey, launch: Launch) -> tuple[str, messages.PodSandboxConfig]:
        """The sandbox of a pod, which is created with its first container."""
        logs = self._folder / key.pod / "logs"
        (logs / key.container).mkdir(parents=True, exist_ok=True)
        labels = {_OWN: "true", _POD: key.pod}
        config = messages.PodSandboxConfig(
            metadata=messages.PodSandboxMetadata(name=launch.pod_name, namespace=launch.namespace, uid=key.pod),
            hostname="",
            log_directory=str(logs),
            labels=labels,
            linux=messages.LinuxPodSandboxConfig(
                security_context=messages.LinuxSandboxSecurityContext(namespace_options=_host_network())
            ),
        )
        async with self._sandboxes.setdefault(key.pod, asyncio.Lock()):
            for one in await self._calls.sandboxes(labels):
                if one.state == messages.SANDBOX_READY:
                    return one.id, config
            return await self._calls.run_sandbox(config), config

    async def _id(self, key: RunKey) -> str | None:
        found = await self._calls.containers(_labels(key))
        return found[0].id if found else None

    async def _poll(self) -> None:
        while self._waiting:
            with suppress(grpc.aio.AioRpcError, TimeoutError):
                states = {one.id: one.state for one in await self._calls.containers({_OWN: "true"})}
                alive = (messages.CONTAINER_CREATED, messages.CONTAINER_RUNNING)
                for id_ in [id_ for id_ in self._waiting if states.get(id_) not in alive]:
                    self._waiting.pop(id_).set()
            await asyncio.sleep(_EVERY_S)


def _mount(one: ContainerMount) -> messages.Mount:
    return messages.Mount(container_path=one.container_path, host_path=str(one.host_path), readonly=one.is_read_only)


def _labels(key: RunKey) -> dict[str, str]:
    return {_OWN: "true", _POD: key.pod, _CONTAINER: key.container, _ATTEMPT: str(key.attempt)}


def _host_network() -> messages.NamespaceOption:
    return messages.NamespaceOption(network=messages.NODE, pid=messages.CONTAINER, ipc=messages.POD)


def _resources(launch: Launch) -> messages.LinuxContainerResources:
    found = messages.LinuxContainerResources()
    if launch.limits.cpu_milli:
        found.cpu_period, found.cpu_quota = _PERIOD_US, launch.limits.cpu_milli * _PERIOD_US // 1000
    if launch.limits.memory_bytes:
        found.memory_limit_in_bytes = launch.limits.memory_bytes
    return found
