"""Runs containers by a container runtime: one sandbox for each pod, one container for each run.

The runtime keeps all state: pods and runs are found by labels, so that a later process continues with them. Guarantees:
a run is created once, because each start looks for it first and the runtime accepts a name once; a runtime that does
not answer ends no run: what is not known is asked again until it is answered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import TypeVar

import msgspec

from shoal.agent.kubelet.container_settings import ContainerSettings
from shoal.agent.kubelet.cri.calls import CallFailedError, RuntimeCalls
from shoal.agent.kubelet.cri.ends import ContainerEnds, former_log
from shoal.agent.kubelet.cri.exec_sync import ShortCommand
from shoal.agent.kubelet.cri.pod_cgroups import PodCgroups
from shoal.agent.kubelet.cri.requests import container_config, log_path
from shoal.agent.kubelet.cri.runtime_streams import RuntimeStream, opened_streams
from shoal.agent.kubelet.cri.sandboxes import OWN, POD, ReadySandbox, Sandboxes
from shoal.agent.kubelet.cri.streamed_command import streamed_command
from shoal.agent.kubelet.port_forwarding import PROTOCOL as PORT_PROTOCOL
from shoal.agent.kubelet.runtime import Command, Consumption, Exit, Launch, RunKey, Started, StartRefused
from shoal.agent.protos import cri_pb2 as messages
from shoal.client.clock import Clock
from shoal.units.errors import TemporaryError

_CONTAINER, _ATTEMPT = "shoal.dev/container", "shoal.dev/attempt"
_RETRY_S = 1.0
_NANO = 1_000_000_000
PROCESSES = 4096
"""How many processes and threads a pod may have, at most."""
T = TypeVar("T")


class Owner(msgspec.Struct, frozen=True):
    """The kubelet that owns the containers."""

    id: str
    """Distinguishes it from others that use the same runtime."""
    folder: Path
    """Has a folder for each pod, by uid."""


class CriRuntime:
    def __init__(
        self,
        calls: RuntimeCalls,
        owner: Owner,
        clock: Clock,
        name: str = "containerd",
        groups: PodCgroups | None = None,
    ) -> None:
        self.name = name
        self._calls, self._owner, self._clock = calls, owner, clock
        self._groups = groups or PodCgroups(PROCESSES)
        self.sandboxes = Sandboxes(calls, owner.id, owner.folder, self._groups)
        self.ends = ContainerEnds(calls, clock, {OWN: owner.id})

    # Starts and ends.

    async def start(self, key: RunKey, launch: Launch) -> Started:
        settings = launch.container
        if settings is None:
            raise StartRefused("CreateContainerError", "a process cannot run as a container")
        sandbox = await self.sandboxes.ready(settings.pod)
        try:
            found = next(iter(await self._calls.containers(self._labels(key))), None)
        except CallFailedError as error:
            raise StartRefused("CreateContainerError", str(error)) from None
        id_ = await self._created(key, launch, settings, sandbox) if found is None else found.id
        if found is None or found.state == messages.CONTAINER_CREATED:
            await self._begun(id_)
        return Started(id_, settings.image_id)

    async def find(self, key: RunKey) -> Started | None:
        try:
            found = next(iter(await self._calls.containers(self._labels(key))), None)
        except CallFailedError as error:
            self.ends.note(str(error))
            raise TemporaryError(f"the container runtime does not answer: {error}", _RETRY_S) from None
        self.ends.note("")
        # The process that created a container may have been killed before its start.
        if found is None or found.state == messages.CONTAINER_CREATED:
            return None
        return Started(found.id, found.image_ref)

    async def wait(self, key: RunKey) -> Exit:
        found = await self._container(key)
        if found is None:
            return Exit(137, 0.0, 0.0, "ContainerStatusUnknown", "the runtime does not know the container any more")
        await self.ends.wait(found.id, self._log(key))
        try:
            status = await self._answered(lambda: self._calls.status(found.id))
        except CallFailedError:
            return Exit(137, 0.0, 0.0, "ContainerStatusUnknown", "the runtime does not know the container any more")
        reason = {"Completed": "", "Error": ""}.get(status.reason, status.reason)
        return Exit(status.exit_code, status.started_at / _NANO, status.finished_at / _NANO, reason, status.message)

    async def stop(self, key: RunKey, grace_s: float) -> None:
        until_s = self._clock.seconds() + grace_s
        while True:
            found = await self._container(key)
            if found is None or found.state == messages.CONTAINER_EXITED:
                return
            try:
                if found.state == messages.CONTAINER_CREATED:
                    await self._calls.remove(found.id)
                    return
                await self._calls.stop(found.id, ceil(max(until_s - self._clock.seconds(), 0.0)))
            except CallFailedError as error:
                if error.is_absent:
                    return
                self.ends.note(str(error))
                await self._clock.sleep(_RETRY_S)

    # Commands and logs.

    async def run(self, key: RunKey, command: Sequence[str], *, tty: bool = False, is_short: bool = False) -> Command:
        async def run() -> Command:
            id_ = await self._running(key)
            if is_short:
                return ShortCommand(self._calls, id_, command)
            return await streamed_command(await self._calls.exec_url(id_, list(command), tty=tty), tty=tty)

        return await _streamed(run, "the command")

    async def attach(self, key: RunKey, *, has_input: bool, tty: bool) -> Command:
        async def attach() -> Command:
            url = await self._calls.attach_url(await self._running(key), has_input=has_input, tty=tty)
            return await streamed_command(url, tty=tty, has_input=has_input)

        return await _streamed(attach, "the container")

    async def forward_ports(self, pod: str) -> RuntimeStream:
        async def forward() -> RuntimeStream:
            listed = await self._calls.sandboxes({OWN: self._owner.id, POD: pod})
            found = next((one.id for one in listed if one.state == messages.SANDBOX_READY), None)
            if found is None:
                raise StartRefused("NotFound", "the pod does not run")
            return RuntimeStream(*await opened_streams(await self._calls.port_url(found), PORT_PROTOCOL))

        return await _streamed(forward, "the ports of the pod")

    async def _running(self, key: RunKey) -> str:
        """The id of the container. Raises StartRefused if it does not run."""
        found = next(iter(await self._calls.containers(self._labels(key))), None)
        if found is None or found.state != messages.CONTAINER_RUNNING:
            raise StartRefused("NotFound", "the container does not run")
        return found.id

    async def consumption(self, keys: Sequence[RunKey]) -> Mapping[RunKey, Consumption]:
        found = {}
        for key, one in (await self._stats({OWN: self._owner.id}, keys)).items():
            if one.cpu.timestamp:
                cpu_s = one.cpu.usage_core_nano_seconds.value / _NANO
                found[key] = Consumption(one.cpu.timestamp / _NANO, cpu_s, one.memory.working_set_bytes.value)
        return found

    async def written(self, keys: Sequence[RunKey]) -> Mapping[RunKey, int]:
        pods = {key.pod for key in keys}
        labels = {OWN: self._owner.id, **({POD: pods.pop()} if len(pods) == 1 else {})}
        found = await self._stats(labels, keys) if keys else {}
        return {key: one.writable_layer.used_bytes.value for key, one in found.items()}

    async def _stats(self, labels: dict[str, str], keys: Sequence[RunKey]) -> Mapping[RunKey, messages.ContainerStats]:
        try:
            listed = await self._calls.stats(labels)
        except CallFailedError as error:
            raise TemporaryError(str(error), _RETRY_S) from None
        wanted, found = {*keys}, {}
        for one in listed:
            said = one.attributes.labels
            key = RunKey(said[POD], said[_CONTAINER], int(said[_ATTEMPT]))
            if key in wanted:
                found[key] = one
        return found

    def log_files(self, key: RunKey) -> Sequence[Path]:
        log = self._log(key)
        return [path for path in (former_log(log), log) if path.exists()]

    # Pods.

    async def remove(self, pod: str) -> None:
        await self.sandboxes.remove(pod)

    async def close(self) -> None:
        await self.ends.close()
        await self._calls.close()

    async def _created(self, key: RunKey, launch: Launch, settings: ContainerSettings, sandbox: ReadySandbox) -> str:
        try:
            await self._removed_before(key)
            self._log(key).parent.mkdir(parents=True, exist_ok=True)
            config = container_config(key, launch, settings, self._labels(key), self._groups.values())
            request = messages.CreateContainerRequest(
                pod_sandbox_id=sandbox.id, config=config, sandbox_config=sandbox.config
            )
            return await self._calls.create(request)
        except CallFailedError as error:
            raise StartRefused("CreateContainerError", str(error)) from None
        except OSError as error:
            raise StartRefused("CreateContainerError", f"{error.filename}: {error.strerror}") from None

    async def _begun(self, id_: str) -> None:
        try:
            await self._calls.start(id_)
        except CallFailedError as error:
            try:
                state = (await self._calls.status(id_)).state
                if state == messages.CONTAINER_CREATED:
                    # It is made anew at the next try, because its sandbox or what it mounts may be gone.
                    await self._calls.remove(id_)
            except CallFailedError:
                state = messages.CONTAINER_UNKNOWN
            if state not in (messages.CONTAINER_RUNNING, messages.CONTAINER_EXITED):
                raise StartRefused("RunContainerError", str(error)) from None
            # It runs, or its program does not exist: its state says why.

    async def _removed_before(self, key: RunKey) -> None:
        """Remove the runs before the previous one, with their logs."""
        labels = {OWN: self._owner.id, POD: key.pod, _CONTAINER: key.container}
        for one in await self._calls.containers(labels):
            attempt = int(one.labels[_ATTEMPT])
            if attempt < key.attempt - 1:
                await self._calls.remove(one.id)
                log = self._log(RunKey(key.pod, key.container, attempt))
                for path in (log, former_log(log)):
                    path.unlink(missing_ok=True)

    async def _container(self, key: RunKey) -> messages.Container | None:
        """The newest container of this run, if there is one. Returns when the runtime has answered."""
        found = await self._answered(lambda: self._calls.containers(self._labels(key)))
        return found[0] if found else None

    async def _answered(self, call: Callable[[], Awaitable[T]]) -> T:
        """Raises CallFailedError if the runtime does not know the object."""
        while True:
            try:
                found = await call()
            except CallFailedError as error:
                if error.is_absent:
                    raise
                self.ends.note(str(error))
                await self._clock.sleep(_RETRY_S)
            else:
                self.ends.note("")
                return found

    def _labels(self, key: RunKey) -> dict[str, str]:
        return {OWN: self._owner.id, POD: key.pod, _CONTAINER: key.container, _ATTEMPT: str(key.attempt)}

    def _log(self, key: RunKey) -> Path:
        return self.sandboxes.logs(key.pod) / log_path(key)


async def _streamed(opening: Callable[[], Awaitable[T]], what: str) -> T:
    try:
        return await opening()
    except CallFailedError as error:
        raise TemporaryError(str(error), _RETRY_S) from None
    except OSError as error:
        raise TemporaryError(f"the runtime does not open the streams of {what}: {error}", _RETRY_S) from None
