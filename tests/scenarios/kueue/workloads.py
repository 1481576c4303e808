"""The workloads of a case as the engine's facts: those in line, and those that hold quota."""

from __future__ import annotations

from shoal.api.node_affinity import NodeSelector
from shoal.api.resources import amounts
from shoal.engine.queues import facts as q
from shoal.engine.queues import topology_facts as places
from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.readiness import stamp_of
from shoal.engine.queues.state import Queues

from .case import Case, PodSet, TopologyAssignment, TopologyRequest, Workload
from .facts import queue_key

NOW_S = 1_000_000.0
"""The moment to which a case's offsets relate."""
_BOOST = "kueue.x-k8s.io/priority-boost"
_GATED = "kueue.x-k8s.io/admission-gated-by"


def waiting_of(case: Case) -> list[q.WorkloadFacts]:
    """In the order in which they were made."""
    return [workload_of(case, each) for each in sorted(case.pending, key=lambda each: each.creation_order)]


def holding_of(case: Case) -> list[q.WorkloadFacts]:
    return [workload_of(case, each, holds=True) for each in sorted(case.admitted, key=lambda each: each.creation_order)]


def workload_of(case: Case, workload: Workload, *, holds: bool = False) -> q.WorkloadFacts:
    evicted = workload.evicted
    return q.WorkloadFacts(
        key=workload.key,
        queue=queue_key(workload.key, workload.queue, workload.cluster_queue),
        priority=workload.priority + _boost(case, workload),
        created_s=NOW_S + workload.creation_offset_seconds,
        # Where a case gives no uid, the order in which workloads were made stands for it.
        uid=workload.uid or f"{workload.creation_order:06}",
        pod_sets=tuple(_pod_set(each) for each in workload.pod_sets),
        active=workload.active,
        checks={each.name: each.state for each in workload.admission_check_states},
        reclaimable={each.name: each.count for each in workload.reclaimable_pods},
        evicted_s=None if evicted is None else NOW_S + evicted.offset_seconds,
        evicted_why="" if evicted is None else evicted.reason,
        closed_gates=tuple(filter(None, workload.annotations.get(_GATED, "").split(","))),
        admission=_admission(workload) if holds else None,
        reserved_s=NOW_S + workload.quota_reserved_offset_seconds if holds else 0.0,
        admitted=holds and workload.admitted,
        admitted_s=NOW_S + workload.quota_reserved_offset_seconds if holds and workload.admitted else 0.0,
        pods_ready=workload.pods_ready,
        unhealthy_nodes=tuple(workload.unhealthy_nodes),
    )


def _boost(case: Case, workload: Workload) -> int:
    gate = case.feature_gates.get("PriorityBoost")
    return int(workload.annotations.get(_BOOST, "0")) if gate is not None and gate.value else 0


def _pod_set(pod_set: PodSet) -> q.PodSet:
    terms = pod_set.required_node_affinity
    return q.PodSet(
        name=pod_set.name,
        count=pod_set.count,
        min_count=pod_set.min_count,
        requests=amounts(pod_set.requests),
        selector=pod_set.node_selector,
        affinity=NodeSelector(terms) if terms else None,
        preferred=pod_set.preferred_node_affinity,
        tolerations=pod_set.tolerations,
        topology=None if pod_set.topology_request is None else _topology_request(pod_set.topology_request),
    )


def _topology_request(request: TopologyRequest) -> places.TopologyRequest:
    layers = (
        *request.podset_slice_required_topology_constraints,
        *request.pod_set_slice_required_topology_constraints,
    )
    return places.TopologyRequest(
        required=request.required,
        preferred=request.preferred,
        unconstrained=request.unconstrained,
        group=request.pod_set_group_name,
        slice_level=request.pod_set_slice_required_topology or (layers[0].topology if layers else ""),
        slice_size=request.pod_set_slice_size or (layers[0].size if layers else 0),
        layers=tuple(places.SliceLayer(layer.topology, layer.size) for layer in layers),
    )


def _admission(workload: Workload) -> q.QuotaAssignment:
    return q.QuotaAssignment(
        workload.cluster_queue,
        tuple(
            q.PodSetAdmission(
                name=each.name,
                count=each.count if each.admitted_count is None else each.admitted_count,
                flavors=each.flavors,
                usage=amounts(each.usage),
                topology=None if each.topology_assignment is None else _assignment(each.topology_assignment),
                delayed=each.delayed_topology_request,
            )
            for each in workload.pod_sets
        ),
    )


def _assignment(given: TopologyAssignment) -> places.TopologyAssignment:
    domains = sorted((domain.values, domain.count) for domain in given.domains)
    return places.TopologyAssignment(given.levels, tuple(domains))


def hold_all(case: Case, queues: Queues) -> None:
    """Seat everybody who holds quota, for components that are asked without a discipline around them."""
    for facts in holding_of(case):
        queues.hold(facts, stamp_of(queues.settings, facts))


def cluster_queue_of(queues: Queues, case: Case, facts: q.WorkloadFacts) -> ClusterQueue:
    """The one that a waiting workload is for: named by itself, or by its local queue."""
    named = next(each.cluster_queue for each in case.pending if each.key == facts.key)
    return queues.cluster_queues[named or queues.local_queues[facts.queue].cluster_queue]
