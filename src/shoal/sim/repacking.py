"""Places all pods of a cluster anew on its nodes under a policy, to compare policies with the present placement.

Pods arrive at once and are placed in the order of the scheduling queue (priority, then age), without preemption and
without moves; pods of DaemonSets stay where they are. Gangs, taints, affinities, MIG instances, fractions and claims
count as in every decision; quotas do not. Claims that are allocated for pods which are placed anew are allocated anew.

Guarantees: the same cluster, policy and seed give the same placement. No pod is added, unless clones are asked for.

Rejected: one random order after the other, as the protocol for traces has it. The pods of a cluster are few, and its
queue has an order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import msgspec

from shoal.engine.cluster import Cluster
from shoal.engine.events import ClaimSeen, Event, NodeSeen, OthersSeen, PodArrived, PodBound
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.pod_identity import NO_IDENTITY
from shoal.engine.pod_mix import PodMix, class_of
from shoal.engine.profile import Builder
from shoal.engine.steps.allocate import allocate
from shoal.sim.draws import Draws
from shoal.sim.rounds import Rounds
from shoal.units.errors import UserError

MOST_CLONES = 100_000


@dataclass(frozen=True, slots=True)
class PlacedFleet:
    """A cluster as events: what surrounds the pods, those that stay, those that run, and those that wait."""

    surroundings: Sequence[Event]
    staying: Sequence[PodBound]
    running: Sequence[PodBound]
    waiting: Sequence[PodArrived]
    now_s: float = 0.0
    clones: int = 0

    @property
    def pods(self) -> int:
        """Without those that stay and without clones."""
        return len(self.running) + len(self.waiting) - self.clones


def fleet_of(events: Iterable[Event], now_s: float) -> PlacedFleet:
    """Terminating pods and those on unknown nodes count as gone."""
    listed = list(events)
    nodes = {event.node.name for event in listed if isinstance(event, NodeSeen)}
    surroundings: list[Event] = []
    staying, running, waiting = list[PodBound](), list[PodBound](), list[PodArrived]()
    for event in listed:
        if isinstance(event, OthersSeen):
            # No other scheduler places pods beside the policy.
            continue
        if isinstance(event, PodArrived):
            waiting.append(event)
        elif not isinstance(event, PodBound):
            surroundings.append(event)
        elif not event.terminating and event.node in nodes:
            (staying if event.daemon_set else running).append(event)
    return PlacedFleet(surroundings, staying, running, waiting, now_s)


def with_clones(fleet: PlacedFleet, load: float, total_gpu_milli: int, seed: int) -> PlacedFleet:
    """With copies of uniformly drawn pods that ask for GPUs, until the next one would pass `load` times the GPUs.

    A copy has the request of its pod and belongs to no gang.
    """
    pods: list[PodBound | PodArrived] = [*fleet.running, *fleet.waiting]
    models = [event for event in pods if class_of(event.ask).total_gpu_milli]
    if not models:
        raise UserError("no pod requests whole GPUs or parts of them, so no load can be reached")
    requested = sum(class_of(event.ask).total_gpu_milli for event in models)
    draws, clones = Draws(seed, "clones"), list[PodArrived]()
    while len(clones) < MOST_CLONES:
        model = models[int(draws.below(len(models), 1)[0])]
        requested += class_of(model.ask).total_gpu_milli
        if requested > load * total_gpu_milli:
            break
        clones.append(PodArrived(f"{model.key}~{len(clones) + 1}", model.ask, model.priority))
    return replace(fleet, waiting=[*fleet.waiting, *clones], clones=len(clones))


def as_placed(fleet: PlacedFleet) -> Cluster:
    """The cluster as it is."""
    return _intake(fleet, [*fleet.running, *fleet.waiting]).cluster


def repacked(fleet: PlacedFleet, builder: Builder, seed: int) -> Cluster:
    """The cluster after the policy has placed all pods anew."""
    pods = [*(_arriving(each) for each in fleet.running), *fleet.waiting]
    anew = frozenset(each.key for each in fleet.running)
    around = [_released(each, anew) if isinstance(each, ClaimSeen) else each for each in fleet.surroundings]
    intake = _intake(replace(fleet, surroundings=around), pods)
    asks = [*(event.ask for event in fleet.staying), *(event.ask for event in pods)]
    mix = PodMix.of(class_of(ask) for ask in asks)
    placement = Placement(intake.cluster, builder(intake.cluster, mix))
    Rounds(intake, placement, seed=seed, now_s=fleet.now_s, steps=(allocate,)).run()
    return intake.cluster


def _intake(fleet: PlacedFleet, pods: Iterable[Event]) -> Intake:
    intake = Intake(Cluster())
    for event in (*fleet.surroundings, *fleet.staying, *pods):
        intake.apply(event)
    return intake


def _released(seen: ClaimSeen, pods: AbstractSet[str]) -> ClaimSeen:
    """The claim without reservations for these pods, and without its allocation if it was reserved for no other."""
    claim = seen.claim
    if not claim.reserved & pods:
        return seen
    if claim.reserved <= pods:
        return ClaimSeen(msgspec.structs.replace(claim, reserved=frozenset(), allocation=None, reach=None))
    return ClaimSeen(msgspec.structs.replace(claim, reserved=claim.reserved - pods))


def _arriving(bound: PodBound) -> PodArrived:
    who = bound.who if bound.who is NO_IDENTITY else msgspec.structs.replace(bound.who, since_s=0.0, saved_s=None)
    return PodArrived(bound.key, bound.ask, bound.priority, who=who)
