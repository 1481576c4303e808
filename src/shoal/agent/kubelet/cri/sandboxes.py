"""Makes and removes the sandboxes of pods: what the containers of a pod share at the runtime.

A pod has one sandbox that is ready. After a restart of the machine the former one is not ready, and the pod gets
another; it is kept until the pod is removed, because the runtime knows by it how the former containers ended. A pod has
a network of its own where the runtime has one configured; otherwise it has that of the node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec

from shoal.agent.kubelet.container_settings import PodSettings
from shoal.agent.kubelet.cri.calls import CallFailedError, RuntimeCalls
from shoal.agent.kubelet.cri.pod_cgroups import PodCgroups
from shoal.agent.kubelet.cri.requests import sandbox_config
from shoal.agent.kubelet.runtime import StartRefused
from shoal.agent.protos import cri_pb2 as messages
from shoal.units.errors import TemporaryError

OWN, POD = "shoal.dev/kubelet", "shoal.dev/pod-uid"
"""Labels of everything that this kubelet made: the kubelet's own name, and the pod."""
_RETRY_S = 2.0


class ReadySandbox(msgspec.Struct, frozen=True):
    id: str
    config: messages.PodSandboxConfig
    address: str = ""
    """Empty in the network of the node."""


class Sandboxes:
    """`owner`: distinguishes this kubelet from others with the same runtime; `folder`: has a folder for each pod."""

    def __init__(self, calls: RuntimeCalls, owner: str, folder: Path, groups: PodCgroups) -> None:
        self._calls, self._owner, self._folder, self._groups = calls, owner, folder, groups
        self._locks: dict[str, asyncio.Lock] = {}
        self._ready: dict[str, ReadySandbox] = {}

    def logs(self, pod: str) -> Path:
        return self._folder / pod / "logs"

    async def ready(self, pod: PodSettings) -> ReadySandbox:
        """Raises StartRefused."""
        async with self._locks.setdefault(pod.uid, asyncio.Lock()):
            try:
                return await self._found_or_made(pod)
            except CallFailedError as error:
                raise StartRefused("ContainerCreating", f"Failed to create pod sandbox: {error}") from None
            except OSError as error:
                words = f"Failed to create pod sandbox: {error.filename}: {error.strerror}"
                raise StartRefused("ContainerCreating", words) from None

    async def stop(self, pod: str) -> None:
        """With all containers, which are kept with their state. Raises TemporaryError."""
        await self._each(pod, (self._calls.stop_sandbox,))

    async def remove(self, pod: str) -> None:
        """With all containers. Raises TemporaryError."""
        await self._each(pod, (self._calls.stop_sandbox, self._calls.remove_sandbox))
        self._groups.remove(pod)
        self._locks.pop(pod, None)
        self._ready.pop(pod, None)

    async def remove_others(self, is_known: Callable[[str], bool]) -> None:
        """Remove the pods of this kubelet that nothing knows any more. Raises TemporaryError."""
        try:
            listed = await self._calls.sandboxes({OWN: self._owner})
        except CallFailedError as error:
            raise TemporaryError(f"the sandboxes of pods are not listed: {error}", _RETRY_S) from None
        for pod in sorted({one.labels[POD] for one in listed}):
            if not is_known(pod):
                await self.remove(pod)

    async def _found_or_made(self, pod: PodSettings) -> ReadySandbox:
        labels = {OWN: self._owner, POD: pod.uid}
        existing = await self._calls.sandboxes(labels)
        known = self._ready.get(pod.uid)
        for one in existing:
            if one.state == messages.SANDBOX_READY:
                if known is not None and known.id == one.id:
                    return known
                return await self._kept(one.id, pod, labels, one.metadata.attempt)
        attempt = 1 + max((one.metadata.attempt for one in existing), default=-1)
        config = await self._config(pod, labels, attempt)
        self.logs(pod.uid).mkdir(parents=True, exist_ok=True)
        id_ = await self._calls.run_sandbox(config, pod.handler)
        return await self._with_address(pod, id_, config)

    async def _kept(self, id_: str, pod: PodSettings, labels: dict[str, str], attempt: int) -> ReadySandbox:
        """The sandbox that an earlier process made."""
        return await self._with_address(pod, id_, await self._config(pod, labels, attempt))

    async def _config(self, pod: PodSettings, labels: dict[str, str], attempt: int) -> messages.PodSandboxConfig:
        if not pod.is_host_network and not await self._calls.has_network():
            pod = msgspec.structs.replace(pod, is_host_network=True)
        group = self._groups.make(pod.uid)
        return sandbox_config(pod, self.logs(pod.uid), labels, attempt=attempt, group=group)

    async def _with_address(self, pod: PodSettings, id_: str, config: messages.PodSandboxConfig) -> ReadySandbox:
        is_own = config.linux.security_context.namespace_options.network == messages.POD
        found = ReadySandbox(id_, config, await self._calls.sandbox_address(id_) if is_own else "")
        self._ready[pod.uid] = found
        return found

    async def _each(self, pod: str, steps: Sequence[Callable[[str], Awaitable[None]]]) -> None:
        try:
            for one in await self._calls.sandboxes({OWN: self._owner, POD: pod}):
                for step in steps:
                    await _unless_absent(step, one.id)
        except CallFailedError as error:
            what = f"the sandbox of a pod is not removed: {error}"
            raise TemporaryError(what, _RETRY_S) from None


async def _unless_absent(step: Callable[[str], Awaitable[None]], id_: str) -> None:
    try:
        await step(id_)
    except CallFailedError as error:
        if not error.is_absent:
            raise
