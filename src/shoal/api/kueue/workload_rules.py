"""Checks Workloads as Kueue does: pod sets that cannot be admitted, and a status that does not fit them.

Rules that compare an object with the one before (what may not change while quota is reserved) are left to callers
that have both.
"""

from __future__ import annotations

from shoal.api.device_names import dns_label_fault
from shoal.api.kueue.amounts import check_bound
from shoal.api.kueue.lists import check_most, check_some
from shoal.api.kueue.references import check_reference
from shoal.api.kueue.template_rules import check_template
from shoal.api.kueue.topology_request_rules import check_topology_request, check_topology_requests
from shoal.api.kueue.workload_status import Admission, PodSetAssignment, WorkloadStatus
from shoal.api.kueue.workloads import PodSet, PriorityClassRef, Workload, WorkloadSpec
from shoal.api.validity import check_meta
from shoal.units.errors import UserError, Where, excerpt

MOST_POD_SETS = 18
MOST_CHECKS = 8
MOST_GATES = 8
MOST_UNHEALTHY = 8
MOST_CLUSTERS = 20
ELASTIC = "kueue.x-k8s.io/elastic-job"

_KINDS = {"WorkloadPriorityClass": "kueue.x-k8s.io", "PriorityClass": "scheduling.k8s.io"}


def check_workload(workload: Workload, where: Where) -> None:
    check_meta(workload.metadata, where.below("metadata"))
    is_elastic = workload.metadata.annotations.get(ELASTIC) == "true"
    _check_spec(workload.spec, is_elastic, where.below("spec"))
    pod_sets = {pod_set.name: pod_set for pod_set in workload.spec.pod_sets}
    _check_status(workload.status, pod_sets, where.below("status"))


def _check_spec(spec: WorkloadSpec, is_elastic: bool, where: Where) -> None:
    check_some(spec.pod_sets, MOST_POD_SETS, where.below("podSets"))
    names: set[str] = set()
    shrinking = ""
    for index, pod_set in enumerate(spec.pod_sets):
        here = where.below(f"podSets[{index}]")
        _check_pod_set(pod_set, here)
        if pod_set.name in names:
            raise UserError(f"{excerpt(pod_set.name)} is named twice", where=here.below("name"))
        names.add(pod_set.name)
        if pod_set.min_count is not None:
            _check_min_count(pod_set, is_elastic, shrinking, here.below("minCount"))
            shrinking = pod_set.name
    check_topology_requests(spec.pod_sets, where.below("podSets"))
    if spec.queue_name:
        check_reference(spec.queue_name, where.below("queueName"))
    if spec.priority_class_ref is not None:
        _check_priority(spec, spec.priority_class_ref, where)
    check_most(spec.preemption_gates, MOST_GATES, where.below("preemptionGates"))


def _check_pod_set(pod_set: PodSet, where: Where) -> None:
    if fault := dns_label_fault(pod_set.name):
        raise UserError(f"{excerpt(pod_set.name)} is not a pod set name: {fault}", where=where.below("name"))
    check_template(pod_set.template.spec, where.below("template.spec"))
    if pod_set.topology_request is not None:
        check_topology_request(pod_set.topology_request, where.below("topologyRequest"))


def _check_min_count(pod_set: PodSet, is_elastic: bool, other: str, where: Where) -> None:
    if pod_set.min_count is not None and pod_set.min_count > pod_set.count:
        raise UserError(f"must be at most the count of {pod_set.count}, got {pod_set.min_count}", where=where)
    if other:
        raise UserError(f"only one pod set can have it, and {excerpt(other)} has", where=where)
    if is_elastic:
        raise UserError("an elastic workload changes its count by itself", where=where, fix="leave it out")


def _check_priority(spec: WorkloadSpec, reference: PriorityClassRef, where: Where) -> None:
    here = where.below("priorityClassRef")
    check_reference(reference.name, here.below("name"))
    if _KINDS[reference.kind] != reference.group:
        fix = f"write {_KINDS[reference.kind]}"
        raise UserError(f"{reference.kind} is not of {reference.group}", where=here.below("group"), fix=fix)
    if spec.priority is None:
        what = f"is required with a priority class ({excerpt(reference.name)})"
        raise UserError(what, where=where.below("priority"), fix="write the value of the class")


def _check_status(status: WorkloadStatus, pod_sets: dict[str, PodSet], where: Where) -> None:
    if status.admission is not None:
        _check_admission(status.admission, pod_sets, where.below("admission"))
    check_most(status.admission_checks, MOST_CHECKS, where.below("admissionChecks"))
    check_most(status.unhealthy_nodes, MOST_UNHEALTHY, where.below("unhealthyNodes"))
    check_most(status.nominated_cluster_names, MOST_CLUSTERS, where.below("nominatedClusterNames"))
    if status.nominated_cluster_names and status.cluster_name:
        raise UserError("clusterName and nominatedClusterNames cannot be both set", where=where)
    for index, one in enumerate(status.reclaimable_pods):
        here = where.below(f"reclaimablePods[{index}]")
        pod_set = _known(one.name, pod_sets, here)
        if one.count > pod_set.count:
            what = f"must be at most the count of {pod_set.count}, got {one.count}"
            raise UserError(what, where=here.below("count"))


def _check_admission(admission: Admission, pod_sets: dict[str, PodSet], where: Where) -> None:
    check_reference(admission.cluster_queue, where.below("clusterQueue"))
    assigned, where = admission.pod_set_assignments, where.below("podSetAssignments")
    check_some(assigned, MOST_POD_SETS, where)
    seen: set[str] = set()
    for index, one in enumerate(assigned):
        here = where.below(f"[{index}]")
        pod_set = _known(one.name, pod_sets, here)
        if one.name in seen:
            raise UserError(f"{excerpt(one.name)} is named twice", where=here.below("name"))
        seen.add(one.name)
        _check_usage(one, pod_set, here)
    if missing := [name for name in pod_sets if name not in seen]:
        raise UserError(f"pod set {excerpt(missing[0])} has no assignment", where=where)


def _check_usage(assigned: PodSetAssignment, pod_set: PodSet, where: Where) -> None:
    """The total is that of `count` equal pods."""
    count = pod_set.count if assigned.count is None else assigned.count
    for name, amount in assigned.resource_usage.items():
        here = where.below("resourceUsage").key(name)
        check_bound(name, amount, here)
        if count and amount.nano % count:
            raise UserError(f"{amount} is not divisible by the count of {count}", where=here)
    if assigned.topology_assignment is not None:
        assigned.topology_assignment.check(where.below("topologyAssignment"))


def _known(name: str, pod_sets: dict[str, PodSet], where: Where) -> PodSet:
    found = pod_sets.get(name)
    if found is None:
        what = f"{excerpt(name)} is not one of the workload's pod sets"
        raise UserError(what, where=where.below("name"), fix=f"they are {', '.join(pod_sets)}")
    return found
