"""Lists what the queues decided in a cycle: admissions, preemptions, and all waiting workloads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.decisions import Admitted, StillWaiting
from shoal.engine.queues.facts import PodSetAdmission
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.state import Queues
from shoal.sim.queue_limits import QueueLimits
from shoal.sim.queue_rounds import QueueRecord
from shoal.views import decision
from shoal.views.waits import wait_reason


def told_admitted(kueue: Kueue, record: QueueRecord) -> list[decision.Admitted]:
    """Those whose quota was reserved, with the checks that keep their pods back if any do."""
    return [_admitted(kueue, each) for each in record.admitted]


def told_unproven(record: QueueRecord) -> list[str]:
    """Workloads whose pods may be created although it was not checked that they have places."""
    return [each.workload for each in record.admitted if not (each.proven or each.checks_pending or each.again)]


def told_preempted(record: QueueRecord) -> list[decision.Preempted]:
    """Workloads preempted for others, then workloads stopped for other reasons."""
    yielding = [decision.Preempted(each.workload, each.beneficiary, each.reason) for each in record.preempted]
    return yielding + [decision.Preempted(each.workload, "", each.reason) for each in record.stopped]


def told_waiting(kueue: Kueue, record: QueueRecord) -> list[decision.Waiting]:
    return list(_waiting(kueue, record.waiting, record.unproven))


def _admitted(kueue: Kueue, admitted: Admitted) -> decision.Admitted:
    pod_sets = [_pods(each) for each in admitted.admission.pod_sets]
    if not admitted.checks_pending:
        return decision.Admitted(admitted.workload, admitted.queue, pod_sets)
    queue = kueue.queues.cluster_queues.get(admitted.admission.cluster_queue)
    held = kueue.queues.held.get(admitted.workload)
    passed = held.facts.checks if held is not None else {}
    flavors = {flavor for each in admitted.admission.pod_sets for flavor in each.flavors.values()}
    uses = queue.facts.checks if queue is not None else ()
    checks = [
        use.name for use in uses if passed.get(use.name) != "Ready" and (not use.flavors or flavors & set(use.flavors))
    ]
    return decision.Reserved(admitted.workload, admitted.queue, pod_sets, checks)


def _pods(each: PodSetAdmission) -> decision.AdmittedPods:
    domains = each.topology.domains if each.topology is not None else ()
    topology = [decision.Domain(list(values), count) for values, count in domains]
    return decision.AdmittedPods(each.name, each.count, dict(sorted(each.flavors.items())), topology)


def _waiting(kueue: Kueue, waiting: Iterable[StillWaiting], unproven: str) -> Iterator[decision.Waiting]:
    """In the order in which they stand in line."""
    first: dict[str, str] = {}
    blind: dict[str, str] = {}
    limits = QueueLimits(kueue)
    for each in waiting:
        local = kueue.queues.local_queues.get(each.queue)
        queue = kueue.queues.cluster_queues.get(local.cluster_queue) if local is not None else None
        behind = ""
        if queue is not None and each.state != "none":
            head = first.setdefault(queue.name, each.workload)
            is_strict = queue.facts.strategy == "StrictFIFO"
            behind = head if is_strict and head != each.workload and each.why is Wait.PENDING else ""
        if queue is not None and queue.name not in blind:
            blind[queue.name] = unproven or _unproven(kueue.queues, queue)
        reason = wait_reason(each, behind, unproven if queue is None else blind[queue.name], limits.of(each))
        yield decision.Waiting(each.workload, each.queue, "active" if each.state == "active" else "parked", reason)


def _unproven(queues: Queues, queue: ClusterQueue) -> str:
    """Nodes are known, but perhaps none that this queue could use."""
    names = {flavor.name for group in queue.facts.groups for flavor in group.flavors}
    labels = [queues.flavors[name].labels.items() for name in names if name in queues.flavors]
    nodes = queues.nodes.values()
    is_known = any(wanted <= node.labels.items() for wanted in labels for node in nodes)
    return "" if is_known else "no nodes of its flavors are known"
