"""Keeps the files in the volumes of running pods as their ConfigMaps, Secrets, tokens and own fields are.

All pods are checked each minute, which is how long the kubelet takes at most; each object is read once for all of them.
A pod whose labels or annotations have changed is checked at once. Rejected: a watch of each object, because the server
lets a node that joined read them one by one only.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from shoal.agent.kubelet.pod_on_node import PodOnNode
from shoal.agent.kubelet.source_reader import SourceReader
from shoal.client.clock import Clock

_log = logging.getLogger("shoal.agent.kubelet")
_EVERY_S = 60.0


class VolumeUpdates:
    def __init__(
        self, clock: Clock, pods: Callable[[], Mapping[str, PodOnNode]], reader: Callable[[], SourceReader]
    ) -> None:
        """`pods`: by uid."""
        self._clock, self._pods, self._reader = clock, pods, reader
        self._due: set[str] = set()
        self._wake = asyncio.Event()

    def check(self, uid: str) -> None:
        self._due.add(uid)
        self._wake.set()

    async def run(self) -> None:
        """Runs until cancelled."""
        next_s = self._clock.seconds() + _EVERY_S
        while True:
            await self._until_due(next_s - self._clock.seconds())
            due, self._due = self._due, set()
            if self._clock.seconds() >= next_s:
                due, next_s = {*self._pods()}, self._clock.seconds() + _EVERY_S
            reader = self._reader()
            for uid in due:
                pod = self._pods().get(uid)
                if pod is not None and not pod.run.is_over:
                    await self._update(pod, reader)

    async def _update(self, pod: PodOnNode, reader: SourceReader) -> None:
        try:
            await pod.update_volumes(reader)
        except Exception:  # noqa: BLE001 - a fault in one pod must not end the others
            _log.exception("the volumes of pod %s/%s are not updated", pod.run.namespace, pod.run.name)

    async def _until_due(self, wait_s: float) -> None:
        waits = [asyncio.ensure_future(self._wake.wait()), asyncio.ensure_future(self._clock.sleep(max(wait_s, 0.0)))]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()
        self._wake.clear()
