"""Builds the tree above the cluster queues, again whenever one of its quotas or parents changes.

A cohort exists as long as it has an object or is named. A cohort that is its own ancestor has no parent here, so that
walks to the root end; `state.inactive_reason` reports that its queues admit no workloads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.facts import CohortFacts
from shoal.engine.queues.quota_tree import Cohort


def grown(written: Mapping[str, CohortFacts], queues: Collection[ClusterQueue]) -> tuple[dict[str, Cohort], set[str]]:
    """Cohorts by name, with the queues hung below them, and those that are their own ancestors."""
    names = {facts.cohort for facts in (queue.facts for queue in queues) if facts.cohort}
    names |= set(written) | {facts.parent for facts in written.values() if facts.parent}
    cohorts = {name: Cohort(name) for name in sorted(names)}
    for name, facts in sorted(written.items()):
        cohort = cohorts[name]
        cohort.weight = facts.weight
        cohort.set_quotas(facts.groups)
        cohort.parent = cohorts.get(facts.parent) if facts.parent else None
    cycles = _cut_cycles(cohorts)
    for cohort in cohorts.values():
        if cohort.parent is not None:
            cohort.parent.children.append(cohort)
    for queue in queues:
        parent = cohorts.get(queue.facts.cohort)
        queue.parent = parent
        if parent is not None:
            parent.children.append(queue)
    return cohorts, cycles


def sum_all(cohorts: Iterable[Cohort], queues: Collection[ClusterQueue]) -> None:
    """Quotas from the leaves up, then the usage of all admitted workloads."""
    cohorts = list(cohorts)
    for cohort in cohorts:
        if cohort.parent is None:
            _sum_below(cohort)
    for queue in queues:
        queue.sum_quotas(())
    for cohort in cohorts:
        cohort.usage = {}
    for queue in queues:
        queue.usage = {}
        for held in queue.held.values():
            queue.add_all(held.usage)


def _cut_cycles(cohorts: Mapping[str, Cohort]) -> set[str]:
    cycles: set[str] = set()
    for cohort in cohorts.values():
        seen = [cohort.name]
        above = cohort.parent
        while above is not None and above.name not in seen:
            seen.append(above.name)
            above = above.parent
        if above is not None:
            cycles.update(seen)
    for name in cycles:
        cohorts[name].parent = None
    return cycles


def _sum_below(cohort: Cohort) -> None:
    for child in cohort.children:
        if isinstance(child, Cohort):
            _sum_below(child)
        else:
            child.sum_quotas(())
    cohort.sum_quotas(cohort.children)
