"""Enforces limits of ephemeral storage: measures the disk use of pods at an interval, and evicts those above a limit.

Guarantees: only pods with such a limit are measured, one after the other in a thread, and the next measurement begins
at the earliest after ten times what the last one took. Rejected: quotas of the file system, which few machines have.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from shoal.agent.kubelet.disk_use import disk_use, files_use
from shoal.agent.kubelet.pod_on_node import PodOnNode
from shoal.agent.kubelet.runtime import RunKey
from shoal.client.clock import Clock
from shoal.client.kubelet.pod_run import ContainerRun
from shoal.client.kubelet.storage_limits import StorageUse, has_storage_limits, storage_excess
from shoal.units.errors import TemporaryError

_log = logging.getLogger("shoal.agent.kubelet")
_EVERY_S, _SHARE = 10.0, 10.0


class StorageWatch:
    def __init__(
        self, clock: Clock, pods: Callable[[], Mapping[str, PodOnNode]], evict: Callable[[str, str], None]
    ) -> None:
        """`pods`: by uid; `evict`: is called with the uid and the message."""
        self._clock, self._pods, self._evict = clock, pods, evict

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            began_s = self._clock.seconds()
            await self.check()
            await self._clock.sleep(max(_EVERY_S, (self._clock.seconds() - began_s) * _SHARE))

    async def check(self) -> None:
        for uid, pod in [*self._pods().items()]:
            if pod.run.is_over or pod.run.phase or not has_storage_limits(pod.pod):
                continue
            try:
                used = await storage_use(pod)
            except TemporaryError as error:
                _log.debug("the storage of pod %s/%s is not measured now: %s", pod.run.namespace, pod.run.name, error)
                continue
            message = storage_excess(pod.pod, used)
            if message:
                self._evict(uid, message)


async def storage_use(pod: PodOnNode) -> StorageUse:
    """Raises TemporaryError."""
    alive = {RunKey(pod.run.uid, one.name, one.restarts): one for one in pod.run.containers if one.is_alive}
    written = await pod.runtime.written(tuple(alive))
    layers = {one.name: written.get(key, 0) for key, one in alive.items()}
    return await asyncio.to_thread(_measured, pod, layers)


def _measured(pod: PodOnNode, layers: Mapping[str, int]) -> StorageUse:
    volumes, mains = pod.folder / "volumes", pod.run.of("main")
    empty = [one["name"] for one in pod.pod["spec"].get("volumes") or () if "emptyDir" in one]
    containers = {one.name: _logs(pod, one) + layers.get(one.name, 0) for one in pod.run.containers}
    others = disk_use(pod.folder / "work")
    if len(mains) == 1:
        # The working folder of processes is that of the pod. With one container it is clear who writes to it.
        containers[mains[0].name] += others
        others = 0
    return StorageUse(containers, {name: disk_use(volumes / name) for name in empty}, others)


def _logs(pod: PodOnNode, one: ContainerRun) -> int:
    """Of this run and the one before."""
    attempts = (one.restarts - 1, one.restarts) if one.restarts else (0,)
    keys = (RunKey(pod.run.uid, one.name, attempt) for attempt in attempts)
    return files_use(file for key in keys for file in pod.runtime.log_files(key))
