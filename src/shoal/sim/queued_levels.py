"""Finds topology levels of a queued workload that no node has as a label, and tries the nearest label instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import structs

from shoal.engine.queues.facts import PodSet, WorkloadFacts
from shoal.engine.queues.remedies import is_admitted_as
from shoal.engine.queues.topology_facts import TopologyRequest
from shoal.engine.unmatched import Unmatched, unmatched_levels
from shoal.sim.queue_rounds import QueueRounds
from shoal.sim.remedies import Objects
from shoal.views.remedies import Remedy
from shoal.views.remedy_commands import edit_commands, edit_words


def unmatched_levels_of(rounds: QueueRounds, facts: WorkloadFacts) -> tuple[Unmatched, ...]:
    """Preferred levels too: a queue refuses a workload for one that it does not know."""
    return unmatched_levels(rounds.cluster, _levels(facts)) if rounds.cluster.row_of else ()


def respelling(
    rounds: QueueRounds, facts: WorkloadFacts, levels: tuple[Unmatched, ...], objects: Objects
) -> Remedy | None:
    """The nearest labels instead, if the workload is then admitted."""
    if not levels or not all(level.near for level in levels):
        return None
    names = {level.key: level.near[0] for level in levels}
    pod_sets = tuple(_respelt(each, names) for each in facts.pod_sets)
    corrected = structs.replace(facts, pod_sets=pod_sets)
    rounds.placement.renew()
    if not is_admitted_as(rounds.kueue, facts.key, corrected, prover=rounds.prover, now_s=rounds.now_s):
        return None
    pods = tuple(rounds.pods.each_of(facts.key))[:1] or (f"{facts.key}/0",)
    objects.adopt(facts.key, pods)
    edits = [edit for old, new in names.items() for edit in objects.edits(pods[0], old, new)]
    if not edits:
        return Remedy(f"Ask for {', '.join(f'{new} instead of {old}' for old, new in names.items())}.")
    target = objects.target(pods)
    return Remedy(edit_words(edits, target), edit_commands(edits, target) if objects.is_living else ())


def flavors_without_topology(rounds: QueueRounds, facts: WorkloadFacts) -> str:
    """Which flavors of its queue refuse every workload that requests a topology; empty where none does."""
    queues = rounds.kueue.queues
    local = queues.local_queues.get(facts.queue)
    queue = queues.cluster_queues.get(local.cluster_queue) if local is not None else None
    if queue is None or not any(_levels(facts)):
        return ""
    names = [flavor.name for group in queue.facts.groups for flavor in group.flavors]
    lacking = [name for name in names if (found := queues.flavors.get(name)) is not None and not found.topology]
    return " ".join(
        f"ResourceFlavor {name} has no spec.topologyName: it takes no workload that requests a topology."
        for name in dict.fromkeys(lacking)
    )


def _levels(facts: WorkloadFacts) -> Iterator[str]:
    for each in facts.pod_sets:
        if each.topology is not None:
            yield from (each.topology.required, each.topology.preferred, each.topology.slice_level)


def _respelt(pod_set: PodSet, names: Mapping[str, str]) -> PodSet:
    wish = pod_set.topology
    if wish is None:
        return pod_set
    return structs.replace(pod_set, topology=_renamed(wish, names))


def _renamed(wish: TopologyRequest, names: Mapping[str, str]) -> TopologyRequest:
    return structs.replace(
        wish,
        required=names.get(wish.required, wish.required),
        preferred=names.get(wish.preferred, wish.preferred),
        slice_level=names.get(wish.slice_level, wish.slice_level),
    )
