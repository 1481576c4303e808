"""Decides for the pods in KAI's queues of a set of manifests, with the fair-share discipline.

A pod that names a queue and no group is a group of its own, as KAI's podgrouper has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from shoal.api.groups.kai import QUEUE_LABEL
from shoal.engine.cluster import Cluster
from shoal.engine.events import Event, GroupSeen, PodArrived, PodBound
from shoal.engine.groups import GroupFacts
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.queues.disciplines.kai.fair_cycle import FairshareCycle
from shoal.engine.queues.disciplines.kai.fair_queues import fair_queues
from shoal.engine.queues.disciplines.kai.fairshare import Fairshare
from shoal.engine.queues.disciplines.kai.node_preferences import kai_profile
from shoal.engine.queues.disciplines.kai.objects import Queue
from shoal.sim.rounds import Rounds

_MOST_ROUNDS = 50


def discipline_of(queues: Mapping[str, Queue]) -> Fairshare | None:
    """None where there are no queues of KAI."""
    return Fairshare(fair_queues(queues.values())) if queues else None


def grouped(events: Iterable[Event]) -> list[Event]:
    """The events, with a group for every pod in a queue of KAI that names none."""
    found: list[Event] = []
    for event in events:
        if isinstance(event, PodArrived | PodBound) and not event.who.group:
            queue = dict(event.who.traits.labels).get(QUEUE_LABEL, "")
            if queue:
                facts = GroupFacts(event.key, 1, is_preemptible=event.who.is_preemptible, queue=queue)
                found.append(GroupSeen(facts))
                event = replace(event, who=replace(event.who, group=event.key))  # noqa: PLW2901 - the same pod
        found.append(event)
    return found


def decided(queues: Mapping[str, Queue], events: Sequence[Event], now_s: float) -> FairshareCycle | None:
    """The last cycle, once nothing changes any more: who still waits, and why."""
    discipline = discipline_of(queues)
    if discipline is None:
        return None
    intake = Intake(Cluster())
    for event in grouped(events):
        intake.apply(event)
    placement = Placement(intake.cluster, kai_profile())
    Rounds(intake, placement, now_s=now_s, steps=discipline.steps()).run(_MOST_ROUNDS)
    return discipline.last
