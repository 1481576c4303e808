"""Waits until the objects of a stage are ready, and reports the progress: each state once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shoal.client.kind import DAEMON_SETS, PODS
from shoal.install.manifest import STAGES, Address
from shoal.install.readiness import blocked_pods, waits_for
from shoal.units.errors import ShoalError
from shoal.wiring.installation.cluster_writer import ClusterWriter

Obj = dict[str, Any]
Report = Callable[[str], None]
EVERY_S = 1.0
_WITH_PODS = ("workloads", STAGES[-1])
_MOST_LINES = 5


class NotReadyError(ShoalError):
    """A stage was not ready in time: the message names the stage, the node and the next step."""


class StageWaits:
    def __init__(self, writer: ClusterWriter, report: Report, ends_s: float) -> None:
        self.ends_s = ends_s
        self._writer = writer
        self._report = report
        self._told = ""

    @property
    def is_over(self) -> bool:
        return self._writer.clock.seconds() >= self.ends_s

    def tell(self, text: str) -> None:
        if text != self._told:
            self._told = text
            for line in text.split("\n"):
                self._report(line)

    async def until_ready(self, stage: str, waiting: Sequence[Address], namespace: str) -> None:
        """Raises NotReadyError after the time limit."""
        while True:
            lacking = [(one, why) for one in waiting if (why := await self._lack(one))]
            if not lacking:
                return
            waiting = [address for address, _ in lacking]
            first = f"{lacking[0][0]}: {lacking[0][1]}"
            blocked = await self._blocked(stage, namespace)
            self.tell("\n".join([f"{stage}: waiting for {first}", *blocked, *await self._components(stage, namespace)]))
            if self.is_over:
                raise NotReadyError(blocked[0] if blocked else f"{stage}: {first}")
            await self._writer.clock.sleep(EVERY_S)

    async def _lack(self, address: Address) -> str:
        obj = await self._writer.find(address)
        return "it was deleted" if obj is None else waits_for({"kind": address.kind, **obj})

    async def _blocked(self, stage: str, namespace: str) -> list[str]:
        if stage not in _WITH_PODS:
            return []
        return list(blocked_pods(await self._writer.all(PODS, "", namespace), stage))[:_MOST_LINES]

    async def _components(self, stage: str, namespace: str) -> list[str]:
        """The progress of each DaemonSet of the GPU stack over the nodes."""
        if stage != STAGES[-1]:
            return []
        sets = await self._writer.all(DAEMON_SETS, "", namespace)
        return [f"  {one['metadata']['name']}: {why}" for one in sets if (why := waits_for(one))]
