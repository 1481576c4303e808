"""Tries changes that the workload's owner could make: fewer pods, a higher priority."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs

from shoal.engine.queues.facts import PodSet, WorkloadFacts
from shoal.engine.queues.remedies.hypothetical_facts import HypotheticalFacts
from shoal.engine.queues.remedies.minimum_search import MinimumSearch, smallest
from shoal.engine.queues.remedies.remedy import FieldChange, Remedy, RemedyKind
from shoal.engine.queues.remedies.trials import Trials


def fewer_pods(trials: Trials) -> Iterator[Remedy | None]:
    """A smaller `minCount`, or where that is no help (it is off, or not quota is missing) a smaller count; one pod set
    at a time."""
    sets = trials.waiting.facts.pod_sets
    if "PartialAdmission" in trials.queues.settings.gates:
        elastic = [each for each in sets if each.min_count is not None]
        is_found = False
        for each in elastic or sets:
            found = smallest(trials, RemedyKind.FEWER_PODS, [_least(trials, each)])
            is_found = is_found or found is not None
            yield found
        if is_found:
            return
    for each in sets:
        yield smallest(trials, RemedyKind.FEWER_PODS, [_count(trials, each)])


def higher_priority(trials: Trials) -> Remedy | None:
    """High enough to preempt others; a priority above all in the tree gains nothing more."""
    facts = trials.waiting.facts
    holders = (held for queue in trials.queues.leaves_of(trials.queue.root) for held in queue.held.values())
    highest = max((held.priority for held in holders), default=facts.priority)

    def apply(scene: HypotheticalFacts, amount: int) -> None:
        scene.facts = structs.replace(scene.facts, priority=facts.priority + amount)

    def reported(amount: int) -> FieldChange:
        return FieldChange("Workload", facts.key, "priority", facts.priority, facts.priority + amount)

    return smallest(trials, RemedyKind.PRIORITY, [MinimumSearch(highest + 1 - facts.priority, apply, reported)])


def _least(trials: Trials, pod_set: PodSet) -> MinimumSearch:
    key = trials.waiting.facts.key
    wanted = _wanted(trials, pod_set)
    before = wanted if pod_set.min_count is None else min(wanted, pod_set.min_count)

    def apply(scene: HypotheticalFacts, amount: int) -> None:
        scene.facts = with_pod_set(scene.facts, structs.replace(pod_set, min_count=before - amount))

    def reported(amount: int) -> FieldChange:
        return FieldChange(
            "Workload", key, "minCount", pod_set.min_count or pod_set.count, before - amount, part=pod_set.name
        )

    return MinimumSearch(before - 1, apply, reported)


def _count(trials: Trials, pod_set: PodSet) -> MinimumSearch:
    key = trials.waiting.facts.key

    def apply(scene: HypotheticalFacts, amount: int) -> None:
        scene.facts = with_pod_set(scene.facts, structs.replace(pod_set, count=pod_set.count - amount))

    def reported(amount: int) -> FieldChange:
        return FieldChange("Workload", key, "count", pod_set.count, pod_set.count - amount, part=pod_set.name)

    return MinimumSearch(_wanted(trials, pod_set) - 1, apply, reported)


def _wanted(trials: Trials, pod_set: PodSet) -> int:
    return max(0, pod_set.count - trials.waiting.facts.reclaimable.get(pod_set.name, 0))


def with_pod_set(facts: WorkloadFacts, changed: PodSet) -> WorkloadFacts:
    sets = tuple(changed if each.name == changed.name else each for each in facts.pod_sets)
    return structs.replace(facts, pod_sets=sets)
