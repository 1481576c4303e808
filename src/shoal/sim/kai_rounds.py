"""Decides for the pods in KAI's queues of a set of manifests, with the fair-share discipline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from shoal.engine.cluster import Cluster
from shoal.engine.events import Event
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.queues.disciplines.kai.fair_cycle import FairshareCycle
from shoal.engine.queues.disciplines.kai.fair_facts import fair_facts
from shoal.engine.queues.disciplines.kai.fair_queues import QueueTree, fair_queues
from shoal.engine.queues.disciplines.kai.fairshare import Fairshare
from shoal.engine.queues.disciplines.kai.node_preferences import kai_profile
from shoal.engine.queues.disciplines.kai.objects import Queue
from shoal.engine.queues.disciplines.kai.queue_members import DEFAULT_QUEUE, QueueMembers
from shoal.sim.rounds import Rounds

_MOST_ROUNDS = 50


def discipline_of(queues: Mapping[str, Queue]) -> Fairshare | None:
    """None where there are no queues of KAI."""
    return Fairshare(fair_queues(queues.values())) if queues else None


def grouped(queues: Mapping[str, Queue], events: Iterable[Event]) -> list[Event]:
    """The events, with the groups of KAI's queues."""
    members = QueueMembers(has_default=DEFAULT_QUEUE in queues)
    return [translated for event in events for translated in members.translated(event)]


class Decided(NamedTuple):
    cycle: FairshareCycle
    """The last one, once nothing changes any more: who still waits, and why."""
    before: QueueTree
    """What the queues hold in the beginning."""


def decided(queues: Mapping[str, Queue], events: Sequence[Event], now_s: float) -> Decided | None:
    discipline = discipline_of(queues)
    if discipline is None:
        return None
    intake = Intake(Cluster())
    for event in grouped(queues, events):
        intake.apply(event)
    before = fair_facts(intake.cluster, discipline.queues).tree
    placement = Placement(intake.cluster, kai_profile())
    Rounds(intake, placement, now_s=now_s, steps=discipline.steps()).run(_MOST_ROUNDS)
    assert discipline.last is not None  # noqa: S101 - one round at least was decided
    return Decided(discipline.last, before)
