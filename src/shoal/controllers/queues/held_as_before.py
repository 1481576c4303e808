"""Whether a Workload as it is read now holds what it held: most of its changes are words, and move nobody."""

from __future__ import annotations

from msgspec import structs

from shoal.engine.queues.facts import Admission, WorkloadFacts
from shoal.engine.queues.held import Held


def holds_as_before(held: Held, facts: WorkloadFacts) -> bool:
    """Whether it is held as before, and nothing else of it matters to others."""
    said, known = facts.admission, held.facts
    if said is None or held.evicted != (facts.evicted_s is not None) or facts.unhealthy_nodes != known.unhealthy_nodes:
        return False
    if facts.checks != known.checks and any(each.delayed for each in held.admission.pod_sets):
        return False
    same = (facts.priority, facts.queue, facts.pod_sets, facts.reclaimable)
    if same != (known.priority, known.queue, known.pod_sets, known.reclaimable):
        return False
    return _in_order(said) == _in_order(held.admission)


def _in_order(admission: Admission) -> Admission:
    """Domains in an order that does not depend on who wrote them."""
    pod_sets = tuple(
        each
        if each.topology is None
        else structs.replace(
            each, topology=structs.replace(each.topology, domains=tuple(sorted(each.topology.domains)))
        )
        for each in admission.pod_sets
    )
    return structs.replace(admission, pod_sets=pod_sets)
