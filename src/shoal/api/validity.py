"""Checks whole objects as the API server does, so that no decision is made about an object that cannot exist.

Every check names its field. What only *looks* wrong, such as a selector that no node satisfies, is not
refused here: it is a reason for the pod to wait, and the engine says so. Object names are taken as they
come, apart from characters that would make two of them look alike, and those that a shell reads: names are
written into commands to be copied. Manifests of other systems are freer than Kubernetes otherwise.
"""

from __future__ import annotations

import re

from shoal.api.affinity import check_spread
from shoal.api.container import Container
from shoal.api.disruption import PodDisruptionBudget, PriorityClass
from shoal.api.meta import Namespace, ObjectMeta
from shoal.api.node import Node
from shoal.api.node_affinity import check_node_selector
from shoal.api.pod import Pod, PodSpec, check_pod_claims
from shoal.api.resource_rules import check_amounts, check_pod_resources
from shoal.api.taints import check_taints
from shoal.api.workloads import DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from shoal.units.errors import UserError, Where, excerpt

_HIGHEST_USER_PRIORITY = 1_000_000_000
_SYSTEM_PREFIX = "system-"
_CONFUSING = re.compile(r"[/\s\x00-\x1f\x7f]")
_OF_SHELLS = re.compile(r"^-|[$`;&|<>()\"'\\#*?!~{}]")


def check_meta(meta: ObjectMeta, where: Where) -> None:
    names = (("name", meta.name), ("namespace", meta.namespace), ("generateName", meta.generate_name))
    for field, text in names:
        if _CONFUSING.search(text):
            raise UserError(f"{excerpt(text)} contains a blank or a slash", where=where.below(field))
        if found := _OF_SHELLS.search(text):
            raise UserError(f"{excerpt(text)} contains {found[0]}, which no name has", where=where.below(field))
    if not meta.name and not meta.generate_name:
        raise UserError("is required", where=where.below("name"))


def check_node(node: Node, where: Where) -> None:
    check_meta(node.metadata, where.below("metadata"))
    check_taints(node.spec.taints, where.below("spec.taints"))
    check_amounts(node.status.capacity, where.below("status.capacity"))
    check_amounts(node.status.allocatable, where.below("status.allocatable"))


def check_pod(pod: Pod, where: Where) -> None:
    check_meta(pod.metadata, where.below("metadata"))
    check_pod_spec(pod.spec, where.below("spec"))


def check_pod_spec(spec: PodSpec, where: Where) -> None:
    if not spec.containers:
        raise UserError("at least one container is required", where=where.below("containers"))
    _check_containers(spec, where)
    check_pod_resources(spec, where)
    check_pod_claims(spec.resource_claims, where.below("resourceClaims"))
    if spec.node_selector:
        check_node_selector(spec.node_selector, where.below("nodeSelector"))
    if spec.affinity is not None:
        spec.affinity.check(where.below("affinity"))
    for index, toleration in enumerate(spec.tolerations):
        toleration.check(where.below(f"tolerations[{index}]"))
    if spec.topology_spread_constraints:
        check_spread(spec.topology_spread_constraints, where.below("topologySpreadConstraints"))
    _check_group(spec, where)


def check_daemon_set(daemon_set: DaemonSet, where: Where) -> None:
    check_meta(daemon_set.metadata, where.below("metadata"))
    check_pod_spec(daemon_set.spec.template.spec, where.below("spec.template.spec"))


def check_job(job: Job, where: Where) -> None:
    check_meta(job.metadata, where.below("metadata"))
    check_pod_spec(job.spec.template.spec, where.below("spec.template.spec"))


def check_replicas(owner: Deployment | ReplicaSet | StatefulSet, where: Where) -> None:
    check_meta(owner.metadata, where.below("metadata"))
    spec, where = owner.spec, where.below("spec")
    spec.selector.check(where.below("selector"))
    if spec.selector.selector().is_everything():
        raise UserError("an empty selector would take every pod for its own", where=where.below("selector"))
    template, where = spec.template, where.below("template")
    if not spec.selector.matches(template.metadata.labels):
        raise UserError("selector does not match template labels", where=where.below("metadata.labels"))
    check_pod_spec(template.spec, where.below("spec"))
    if template.spec.restart_policy != "Always":
        what = f"unsupported value {excerpt(template.spec.restart_policy)}"
        raise UserError(what, where=where.below("spec.restartPolicy"), fix="supported values are Always")


def check_namespace(namespace: Namespace, where: Where) -> None:
    check_meta(namespace.metadata, where.below("metadata"))


def check_priority_class(priority_class: PriorityClass, where: Where) -> None:
    check_meta(priority_class.metadata, where.below("metadata"))
    is_system = priority_class.metadata.name.startswith(_SYSTEM_PREFIX)
    if priority_class.value > _HIGHEST_USER_PRIORITY and not is_system:
        raise UserError(
            f"must be at most {_HIGHEST_USER_PRIORITY}, got {priority_class.value}",
            where=where.below("value"),
            fix="higher values are kept for the system's own classes",
        )


def check_disruption_budget(budget: PodDisruptionBudget, where: Where) -> None:
    check_meta(budget.metadata, where.below("metadata"))
    budget.check(where)


def _check_group(spec: PodSpec, where: Where) -> None:
    group, reference = spec.scheduling_group, spec.workload_ref
    if group is not None and not group.pod_group_name:
        raise UserError("is required", where=where.below("schedulingGroup.podGroupName"))
    if reference is not None:
        for field, text in (("name", reference.name), ("podGroup", reference.pod_group)):
            if not text:
                raise UserError("is required", where=where.below("workloadRef").below(field))


def _check_containers(spec: PodSpec, where: Where) -> None:
    claims = {claim.name for claim in spec.resource_claims}
    names: set[str] = set()
    for field, containers in (("initContainers", spec.init_containers), ("containers", spec.containers)):
        for index, container in enumerate(containers):
            fault = _container_fault(container, names, claims, spec.host_network)
            if fault is not None:
                raise fault.at(where.below(f"{field}[{index}].{fault.where.path}"))
            names.add(container.name)


def _container_fault(container: Container, names: set[str], claims: set[str], host_network: bool) -> UserError | None:
    if container.name and container.name in names:
        return UserError(f"duplicate container name {excerpt(container.name)}", where=Where(path="name"))
    for index, claim in enumerate(container.resources.claims):
        if claim.name not in claims:
            what = f"{excerpt(claim.name)} is not one of the pod's resourceClaims"
            return UserError(what, where=Where(path=f"resources.claims[{index}].name"))
    for index, port in enumerate(container.ports):
        if host_network and port.host_port and port.host_port != port.container_port:
            what = f"must match containerPort {port.container_port} when hostNetwork is true"
            return UserError(what, where=Where(path=f"ports[{index}].hostPort"))
    return None
