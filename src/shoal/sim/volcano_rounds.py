"""Decides for the pod groups in Volcano's queues of a set of manifests, with the discipline of the engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from shoal.engine.cluster import Cluster
from shoal.engine.events import Event
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.profile import NO_PREFERENCES
from shoal.engine.queues.disciplines.volcano.configuration import DEFAULT, VolcanoConfiguration
from shoal.engine.queues.disciplines.volcano.discipline import Volcano
from shoal.engine.queues.disciplines.volcano.known_jobs import KnownJobs
from shoal.engine.queues.disciplines.volcano.objects import GroupPod, QueuedPodGroup
from shoal.engine.queues.disciplines.volcano.queue_tree import QueueTree
from shoal.engine.queues.disciplines.volcano.session import Session
from shoal.sim.rounds import Rounds

_MOST_ROUNDS = 50
Groups = Mapping[str, QueuedPodGroup]


def discipline_of(
    tree: QueueTree | None,
    groups: Groups,
    configuration: VolcanoConfiguration = DEFAULT,
    pods: Iterable[GroupPod] = (),
) -> Volcano | None:
    """None where there are no queues of Volcano. `pods`: those that may run without a group."""
    if tree is None:
        return None
    known = KnownJobs(tree.queues.values(), groups.values(), pods)
    return Volcano(known.facts, configuration, known.admit)


class Decided(msgspec.Struct, frozen=True):
    """What is left once nothing changes any more: who still waits, and why."""

    session: Session
    known: KnownJobs


def decided(known: KnownJobs, events: Sequence[Event], configuration: VolcanoConfiguration = DEFAULT) -> Decided:
    discipline = Volcano(known.facts, configuration, known.admit)
    intake = Intake(Cluster())
    for event in events:
        intake.apply(event)
    placement = Placement(intake.cluster, NO_PREFERENCES)
    Rounds(intake, placement, steps=discipline.steps()).run(_MOST_ROUNDS)
    assert discipline.session is not None  # noqa: S101 - one round at least has opened it
    return Decided(discipline.session, known)
