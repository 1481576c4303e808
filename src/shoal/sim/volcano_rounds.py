"""Decides for the pod groups in Volcano's queues of a set of manifests, with the discipline of the engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shoal.engine.cluster import Cluster
from shoal.engine.events import Event, GroupSeen, PodArrived, PodBound
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.queues.disciplines.volcano.configuration import DEFAULT, VolcanoConfiguration
from shoal.engine.queues.disciplines.volcano.discipline import Volcano
from shoal.engine.queues.disciplines.volcano.jobs import JobFacts
from shoal.engine.queues.disciplines.volcano.node_scores import volcano_profile
from shoal.engine.queues.disciplines.volcano.objects import QueuedPodGroup
from shoal.engine.queues.disciplines.volcano.plugins.arguments import duration_s
from shoal.engine.queues.disciplines.volcano.plugins.sla import WAITING_TIME
from shoal.engine.queues.disciplines.volcano.queue_forest import QueueForest, engine_amounts, scheduler_queue
from shoal.engine.queues.disciplines.volcano.queue_tree import QueueTree
from shoal.engine.queues.disciplines.volcano.session import Session, VolcanoFacts
from shoal.sim.rounds import Rounds

_MOST_ROUNDS = 50
_RESERVING = ("Inqueue", "Running", "Unknown")
Groups = Mapping[str, QueuedPodGroup]


def job_facts(group: QueuedPodGroup, priority: int, *, is_enqueued: bool) -> JobFacts:
    """A group as the discipline reads it."""
    least = group.min_resources()
    return JobFacts(
        "/".join(group.metadata.key),
        group.queue,
        priority,
        group.metadata.created_s,
        engine_amounts(least) if least else None,
        is_enqueued=is_enqueued,
        reserves=group.status.phase in _RESERVING,
        waiting_time_s=duration_s(group.metadata.annotations.get(WAITING_TIME)),
    )


def discipline_of(
    tree: QueueTree | None, groups: Groups, events: Iterable[Event], configuration: VolcanoConfiguration = DEFAULT
) -> Volcano | None:
    """None where there are no queues of Volcano. Groups without pods among the events take no part."""
    if tree is None:
        return None
    forest = QueueForest(map(scheduler_queue, tree.queues.values()))
    priorities: dict[str, int] = {}
    ranks: dict[str, int] = {}
    for event in events:
        if isinstance(event, GroupSeen) and event.group.priority is not None:
            ranks[event.group.name] = event.group.priority
        elif isinstance(event, PodArrived | PodBound) and event.who.group in groups:
            name = event.who.group
            priorities[name] = max(priorities.get(name, event.priority), event.priority)
    admitted: dict[str, None] = {}
    made: list[Volcano] = []

    def facts() -> VolcanoFacts:
        session = made[0].session
        admitted.update(session.enqueued if session is not None else {})
        if len(admitted) != len(known):
            known[:] = admitted
            latest[0] = facts_now()
        return latest[0]

    def facts_now() -> VolcanoFacts:
        jobs = {
            name: job_facts(
                groups[name], ranks.get(name, rank), is_enqueued=not groups[name].is_waiting or name in admitted
            )
            for name, rank in priorities.items()
        }
        return VolcanoFacts(forest, jobs)

    known: list[str] = []
    latest = [facts_now()]
    made.append(Volcano(facts, configuration))
    return made[0]


def decided(
    tree: QueueTree, groups: Groups, events: Sequence[Event], configuration: VolcanoConfiguration = DEFAULT
) -> Session | None:
    """The last session, once nothing changes any more: who still waits, and why."""
    discipline = discipline_of(tree, groups, events, configuration)
    if discipline is None:
        return None
    intake = Intake(Cluster())
    for event in events:
        intake.apply(event)
    placement = Placement(intake.cluster, volcano_profile(configuration))
    Rounds(intake, placement, steps=discipline.steps()).run(_MOST_ROUNDS)
    return discipline.session
