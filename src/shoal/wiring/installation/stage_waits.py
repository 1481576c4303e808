"""Waits until the objects of a stage are ready, and reports the progress: each state once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shoal.client.kind import DAEMON_SETS, PODS
from shoal.install.manifest import STAGES, Address
from shoal.install.readiness import blocked_pods, has_no_gpus, waits_for
from shoal.operator.components.component import DISCOVERY
from shoal.units.errors import ShoalError
from shoal.wiring.installation.cluster_writer import ClusterWriter
from shoal.wiring.installation.facts_reader import POLICIES

Obj = dict[str, Any]
Report = Callable[[str], None]
EVERY_S = 1.0
_WITH_PODS = ("workloads", STAGES[-1])
_MOST_LINES = 5
_QUICK_POLLS, _LATER_S, _PODS_EVERY_S = 15, 3.0, 10.0
_SETTLES_S = 10.0
"""From the start of the discovery on all nodes to the reaction of the operator to its labels."""


class NotReadyError(ShoalError):
    """A stage was not ready in time: the message names the stage, the node and the next step."""


class StageWaits:
    def __init__(self, writer: ClusterWriter, report: Report, ends_s: float) -> None:
        self.ends_s = ends_s
        self._writer = writer
        self._report = report
        self._told = ""
        self._discovered_s: float | None = None
        self._looked_s = float("-inf")
        self._blocked_pods: list[str] = []

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
        polls = 0
        while True:
            lacking = [(one, why) for one in waiting if (why := await self._lack(one, namespace))]
            if not lacking:
                return
            waiting = [address for address, _ in lacking]
            first = f"{lacking[0][0]}: {lacking[0][1]}"
            blocked = await self._blocked(stage, namespace)
            polls += 1
            self.tell("\n".join([f"{stage}: waiting for {first}", *blocked, *await self._components(stage, namespace)]))
            if self.is_over:
                raise NotReadyError(blocked[0] if blocked else f"{stage}: {first}")
            await self._writer.clock.sleep(EVERY_S if polls < _QUICK_POLLS else _LATER_S)

    async def _lack(self, address: Address, namespace: str) -> str:
        obj = await self._writer.find(address)
        if obj is None:
            return "it was deleted"
        why = waits_for({"kind": address.kind, **obj})
        if not why and address.kind == POLICIES.name and has_no_gpus(obj):
            return await self._undiscovered(namespace)
        return why

    async def _undiscovered(self, namespace: str) -> str:
        """Empty once the discovery has run on all nodes for a while, or if there is none: no node has a GPU then."""
        sets = await self._writer.all(DAEMON_SETS, f"app={DISCOVERY.name}", namespace)
        waiting = [why for one in sets if (why := waits_for(one))]
        if waiting:
            self._discovered_s = None
            return f"discovery: {waiting[0]}"
        now_s = self._writer.clock.seconds()
        if self._discovered_s is None:
            self._discovered_s = now_s
        return "" if now_s >= self._discovered_s + _SETTLES_S else "discovery: no node with GPUs yet"

    async def _blocked(self, stage: str, namespace: str) -> list[str]:
        if stage not in _WITH_PODS:
            return []
        now_s = self._writer.clock.seconds()
        if now_s >= self._looked_s + _PODS_EVERY_S or self.is_over:
            # A stack of 500 nodes has 4,000 pods: they are not listed at each poll.
            self._looked_s = now_s
            pods = await self._writer.all(PODS, "", namespace)
            self._blocked_pods = list(blocked_pods(pods, stage))[:_MOST_LINES]
        return self._blocked_pods

    async def _components(self, stage: str, namespace: str) -> list[str]:
        """The progress of each DaemonSet of the GPU stack over the nodes."""
        if stage != STAGES[-1]:
            return []
        sets = await self._writer.all(DAEMON_SETS, "", namespace)
        return [f"  {one['metadata']['name']}: {why}" for one in sets if (why := waits_for(one))]
