"""Represents the preemptor: a pod, or the next part of a gang, as one unit that fits or does not."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.engine.charges import Charge
from shoal.engine.cluster import Cluster
from shoal.engine.fitter import Fitter
from shoal.engine.gang_members import Gang
from shoal.engine.gangs.attempt import can_place, place_gang
from shoal.engine.gangs.next_pods import GangDemand, PodsToPlace, minimum, one_more
from shoal.engine.gangs.teams import Roster
from shoal.engine.groups import TopologyRequirement
from shoal.engine.reasons import Code
from shoal.engine.scheduling_queue import gang_priority


@dataclass(frozen=True, slots=True)
class Preemptor:
    """A pod or a gang that waits."""

    name: str
    want: PodsToPlace
    """What must find a place."""
    priority: int
    queue: str
    preempts: bool
    gang: Gang | None = None

    @property
    def pods(self) -> list[str]:
        """Those that are wanted first, in the order in which they are tried."""
        return list(wanted(self.want))

    def place(self, fitter: Fitter) -> bool:
        """Place all of it on the ledger, or nothing."""
        if self.gang is not None:
            return place_gang(fitter, self.gang) is Code.PLACED
        return fitter.pod(self.name)

    def fits(self, fitter: Fitter) -> bool:
        """Whether it could be placed now. Leaves no trace."""
        if self.gang is not None:
            return can_place(fitter, self.gang)
        mark = fitter.ledger.mark()
        placed = fitter.pod(self.name)
        fitter.ledger.rollback(mark)
        return placed

    def charge(self, cluster: Cluster) -> Charge | None:
        """What each of its pods asks; None when they differ."""
        charges = {cluster.pending[pod].charge for pod in self.pods}
        return charges.pop() if len(charges) == 1 else None


def pod_preemptor(cluster: Cluster, pod: str) -> Preemptor:
    waiting = cluster.pending[pod]
    who = waiting.who
    return Preemptor(
        pod,
        PodsToPlace("", TopologyRequirement(), [], [GangDemand([pod], 1)]),
        waiting.priority,
        who.queue,
        who.preempts,
    )


def gang_preemptor(cluster: Cluster, gang: Gang) -> Preemptor | None:
    """What the gang needs next; None when its object is missing or malformed, or too few of its pods exist."""
    facts = gang.facts
    if facts is None or gang.fault or not gang.waiting:
        return None
    roster = Roster.of_gang(cluster, gang, facts)
    want = next(one_more(roster), None) if roster.is_met else minimum(roster)
    if want is None:
        return None
    who = [cluster.pending[pod].who for pod in gang.waiting]
    preempts = facts.preempts and all(pod.preempts for pod in who)
    return Preemptor(gang.name, want, gang_priority(cluster, gang), who[0].queue, preempts, gang)


def wanted(want: PodsToPlace) -> list[str]:
    """The pods of a want that come first, parts after the team's own."""
    pods = [pod for demand in want.demands for pod in demand.pods[: demand.need]]
    for part in want.parts[: want.least]:
        pods += wanted(part)
    return pods
