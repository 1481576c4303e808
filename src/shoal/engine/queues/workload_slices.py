"""Replaces the workload of a job that grows while it runs by a new one of the whole size.

Only what it wants more is asked for: quota in the flavors that it has, and places for the pods that are not there. Once
it holds its quota the other holds none, whatever its Workload still says; should it have to give all of it back before
that one is over, the other one holds again what it held.

Rejected: counting both until the older one is finished. The tree would be over its quota meanwhile, and borrowers would
be preempted needlessly.
"""

from __future__ import annotations

from collections import Counter

from shoal.engine.queues.clusterqueue import AdmittedWorkload, ClusterQueue
from shoal.engine.queues.facts import Amounts, PodSetAdmission, QuotaAssignment, WorkloadFacts
from shoal.engine.queues.state import Queues
from shoal.engine.queues.topology_facts import TopologyAssignment


def predecessor(queues: Queues, facts: WorkloadFacts, queue: ClusterQueue) -> AdmittedWorkload | None:
    """The admitted workload that it replaces."""
    held = queues.held.get(facts.replaces) if facts.replaces else None
    if held is None or held.facts.owner != facts.owner:
        return None
    # Of one that a trial has unseated nothing is there to take over.
    return held if held.queue is queue and held.key in queue.held else None


def more_counts(facts: WorkloadFacts, held: AdmittedWorkload) -> tuple[int, ...]:
    """By pod set, how many pods it wants more than are paid for."""
    present = {each.name: _paid(each, held) for each in held.admission.pod_sets}
    return tuple(
        max(0, each.count - facts.reclaimable.get(each.name, 0) - present.get(each.name, 0)) for each in facts.pod_sets
    )


def other_flavors(held: AdmittedWorkload) -> frozenset[str]:
    """Those of its queue that it does not have: its pods stay where they are."""
    used = {flavor for each in held.admission.pod_sets for flavor in each.flavors.values()}
    return frozenset(flavor.name for group in held.queue.facts.groups for flavor in group.flavors) - used


def together(facts: WorkloadFacts, held: AdmittedWorkload, more: QuotaAssignment) -> QuotaAssignment:
    """The whole admission of a workload that takes over what is held, and gets so much more."""
    before = {each.name: each for each in held.admission.pod_sets}
    sizes = {each.name: each.count for each in facts.pod_sets}
    pod_sets = tuple(
        _joined(each, before.get(each.name), held, sizes.get(each.name, each.count)) for each in more.pod_sets
    )
    return QuotaAssignment(more.cluster_queue, pod_sets)


def _paid(each: PodSetAdmission, held: AdmittedWorkload) -> int:
    wanted = next((one.count for one in held.facts.pod_sets if one.name == each.name), each.count)
    return max(0, min(each.count, wanted) - held.facts.reclaimable.get(each.name, 0))


def _joined(
    more: PodSetAdmission, before: PodSetAdmission | None, held: AdmittedWorkload, count: int
) -> PodSetAdmission:
    if before is None:
        return more
    paid = _paid(before, held)
    there = paid + more.count
    usage: Amounts = Counter(before.usage)
    usage.update(more.usage)
    if there > count > 0:
        # One set grew and this one shrank.
        usage = {name: amount // there * count for name, amount in usage.items()}
    # It may grow by fewer pods than it wants.
    count = min(count, there) if there else count
    topology = _domains(before.topology, more.topology, count)
    return PodSetAdmission(more.name, count, {**before.flavors, **more.flavors}, dict(usage), topology, more.delayed)


def _domains(
    before: TopologyAssignment | None, more: TopologyAssignment | None, count: int
) -> TopologyAssignment | None:
    if before is None or more is None:
        return more or before
    counts = Counter(dict(before.domains))
    for values, number in more.domains:
        counts[values] += number
    left, domains = count, []
    for values, number in sorted(counts.items()):
        domains.append((values, min(number, left)))
        left -= min(number, left)
    return TopologyAssignment(before.levels, tuple((values, number) for values, number in domains if number))
