"""Runs all rounds and keeps, in words, what became of each pod."""

from __future__ import annotations

from shoal.engine.plan import Evict, Nominate, Place
from shoal.sim.device_names import device_names
from shoal.sim.queue_rounds import QueueRecord
from shoal.sim.rounds import Record, Rounds
from shoal.sim.workload_explanation import most_of
from shoal.sim.workload_stops import WorkloadStops
from shoal.views.decision_text import device_words


class DecidedRounds:
    """The outcomes of pods after the last round."""

    def __init__(self, rounds: Rounds) -> None:
        self._rounds = rounds
        self._cluster = rounds.cluster
        self.outcomes: dict[str, str] = {}
        """What became of pods."""
        self.yielded: dict[str, list[str]] = {}
        """The preempted pods, by the pod or gang they were preempted for."""
        self.freed: dict[str, list[str]] = {}
        """What had to happen on its node before a pod was placed: pods that were preempted for others."""
        self.later: set[str] = set()
        """Pods that were placed after others had ended or were told to."""
        self.stops = WorkloadStops()
        self.last: Record | None = None

    def decide(self) -> None:
        names = self._cluster.names
        node_of = {pod: names[allocation.row] for pod, allocation in self._cluster.pods.items()}
        preempted: dict[str, list[Evict]] = {}
        ended = False
        for record in self._rounds.each(most_of(self._rounds)):
            self.last = record
            if isinstance(record, QueueRecord):
                self.stops.see(record)
            if ended:
                self.later.update(placed.pod for placed in record.placed)
            ended = ended or bool(record.ended or record.evicted or record.moved)
            for placed in record.placed:
                freed = [each for each in preempted.get(placed.node, ()) if each.beneficiary != self._whose(placed.pod)]
                if freed:
                    self.freed[placed.pod] = [f"{each.pod} is preempted for {each.beneficiary}" for each in freed]
                self.outcomes[placed.pod] = f"runs on {placed.node}{self.devices_of(placed)}"
            for nominated in record.nominated:
                where = f"{nominated.node}{self.devices_of(nominated)}"
                self.outcomes[nominated.pod] = f"is nominated to {where}, until the preempted pods have ended"
            for moved in record.moved:
                self.outcomes[moved.pod] = f"moves from {moved.source} to {moved.target} for {moved.beneficiary}"
                self.yielded.setdefault(moved.beneficiary, []).append(f"{moved.pod} (moved to {moved.target})")
            for evicted in record.evicted:
                self.outcomes[evicted.pod] = f"is preempted by {evicted.beneficiary} ({evicted.code})"
                self.yielded.setdefault(evicted.beneficiary, []).append(evicted.pod)
                preempted.setdefault(node_of.get(evicted.pod, ""), []).append(evicted)

    def devices_of(self, chosen: Place | Nominate) -> str:
        """The devices of a placement, after a comma; empty where it has none."""
        allocation = self._cluster.pods.get(chosen.pod)
        # One that was placed and made to yield in one round is not there any more.
        devices = [] if allocation is None else device_names(self._cluster, allocation.ask, chosen.node, chosen.grant)
        return f", {device_words(devices)}" if devices else ""

    def _whose(self, pod: str) -> str:
        """The pod or the gang for which others are preempted."""
        allocation = self._cluster.pods.get(pod)
        return pod if allocation is None else allocation.who.group or pod
