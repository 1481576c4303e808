"""What was decided, in the words of `expect`: so that one judge compares cycles and components alike.

Only what a run can speak of is in its answer. A component that finds victims says nothing of who is admitted, and is
not asked.
"""

from __future__ import annotations

from typing import Any

from shoal.api.resources import amounts
from shoal.api.wire import to_quantity
from shoal.engine.queues.facts import Amounts, PodSetAdmission, QuotaAssignment
from shoal.engine.queues.topology_facts import TopologyAssignment

Answer = dict[str, Any]
Domains = tuple[tuple[str, ...], tuple[tuple[tuple[str, ...], int], ...]]


def admission_answer(admission: QuotaAssignment) -> Answer:
    return {
        "clusterQueue": admission.cluster_queue,
        "podSets": {each.name: _pod_set(each) for each in admission.pod_sets},
    }


def _pod_set(given: PodSetAdmission) -> Answer:
    return {
        "count": given.count,
        "flavors": dict(given.flavors),
        "usage": nonzero(given.usage),
        "topologyAssignment": None if given.topology is None else domains_of(given.topology),
        "delayedTopologyRequest": given.delayed,
    }


def domains_of(found: TopologyAssignment) -> Domains:
    return found.levels, tuple(sorted((values, count) for values, count in found.domains if count))


def expected_domains(said: Any) -> Domains | None:
    """The same of what a case says; None where it says nothing."""
    if not said:
        return None
    domains = ((tuple(each["values"]), int(each["count"])) for each in said.get("domains", []))
    return tuple(said.get("levels", [])), tuple(sorted(each for each in domains if each[1]))


def expected_usage(said: dict[str, Any]) -> Amounts:
    """Quantities are compared as amounts: `1000m` of cpu is `1`."""
    return nonzero(amounts({name: to_quantity(each) for name, each in said.items()}))


def nonzero(usage: Amounts) -> Amounts:
    return {name: each for name, each in usage.items() if each}
