"""Builds the PodGroup of a pod as KAI's podgrouper would write it: its owner, name, queue, priority and subgroups.

For some owners, an object below them counts as the top owner: the pods of an Argo Workflow, the JobSet of a TrainJob,
and each Job of a CronJob. The labels of the skipped owners still count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from shoal.api.groups.kai import NODE_POOL_LABEL, QUEUE_LABEL
from shoal.client.item import Obj
from shoal.controllers.kai.grouping_rules import grouping_of
from shoal.controllers.kai.grouping_types import GroupingInput, GroupingResult, SubGroup, topology_constraint
from shoal.controllers.kai.workload_object import WorkloadObject
from shoal.engine.queues.disciplines.kai.queue_members import DEFAULT_QUEUE

PREFIX = "pg"
LEGACY_QUEUE_LABEL = "runai/queue"
_PROJECT = "project"
_CLASS_LABEL, _USER = "priorityClassName", "user"
_PREEMPTIBILITY = "kai.scheduler/preemptibility"
_SPARK = ("spark-app-name", "spark-app-selector")
_MAX_NAME = 253
_NOT_COPIED = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})

_SKIPPED_OWNERS = frozenset(
    {
        ("argoproj.io", "Workflow"),
        ("batch", "CronJob"),
        ("trainer.kubeflow.org", "TrainJob"),
        ("serving.knative.dev", "Service"),
        ("serving.knative.dev", "Configuration"),
    }
)


class DesiredPodGroup(msgspec.Struct, frozen=True):
    """One PodGroup, and the subgroup of the pod in it."""

    name: str
    owner: WorkloadObject
    labels: dict[str, str]
    annotations: dict[str, str]
    spec: Obj
    part: str = ""


def group_owner(pod: WorkloadObject, chain: Sequence[WorkloadObject]) -> WorkloadObject:
    """The owner whose pods form one group."""
    owners = list(chain)
    while owners and owners[-1].group_kind in _SKIPPED_OWNERS:
        skipped = owners.pop()
        if owners:
            owners[-1] = _with_labels(owners[-1], skipped)
        else:
            pod = _with_labels(pod, skipped)
    return owners[-1] if owners else pod


def _with_labels(owned: WorkloadObject, above: WorkloadObject) -> WorkloadObject:
    return msgspec.structs.replace(owned, labels={**owned.labels, **above.labels})


def desired_pod_group(
    pod: WorkloadObject,
    chain: Sequence[WorkloadObject],
    cluster: WorkloadObject | None = None,
    pool_label: str = NODE_POOL_LABEL,
) -> DesiredPodGroup:
    """`cluster`: the RayCluster that a Ray owner refers to. `pool_label`: the label that names the node pool."""
    owner = group_owner(pod, chain)
    grouping = grouping_of(GroupingInput(pod, owner, tuple(chain), cluster))
    of = pod if grouping.is_per_pod else owner
    annotations = {key: text for key, text in owner.annotations.items() if key not in _NOT_COPIED}
    spec: Obj = {
        "minMember": grouping.minimum,
        "queue": _queue(owner, pod, pool_label),
        "priorityClassName": _priority_class(owner, pod, chain) or grouping.priority,
    }
    if preemptibility := _first(_PREEMPTIBILITY, *_from(owner, chain), pod):
        spec["preemptibility"] = preemptibility
    if constraint := topology_constraint(owner.annotations):
        spec["topologyConstraint"] = constraint
    if grouping.sub_groups:
        spec["subGroups"] = [_sub_group(part) for part in grouping.sub_groups]
    labels = dict(owner.labels)
    if _USER not in labels and _USER in pod.labels:
        labels[_USER] = pod.labels[_USER]
    return DesiredPodGroup(_name(of, pod, grouping), of, labels, annotations, spec, grouping.sub_group)


def _name(of: WorkloadObject, pod: WorkloadObject, grouping: GroupingResult) -> str:
    if of.kind == "Pod" and all(label in pod.labels for label in _SPARK):
        # The driver and executors of one application, which were created by Spark itself.
        return pod.labels[_SPARK[1]]
    rest = f"-{of.uid}{grouping.suffix}"
    return f"{PREFIX}-{of.name[: _MAX_NAME - len(PREFIX) - 1 - len(rest)]}{rest}"


def _queue(owner: WorkloadObject, pod: WorkloadObject, pool_label: str) -> str:
    for label in (QUEUE_LABEL, LEGACY_QUEUE_LABEL):
        if named := _first(label, owner, pod):
            return named
    project = _first(_PROJECT, owner, pod)
    if not project:
        return DEFAULT_QUEUE
    pool = pod.labels.get(pool_label, "")
    return f"{project}-{pool}" if pool else project


def _priority_class(owner: WorkloadObject, pod: WorkloadObject, chain: Sequence[WorkloadObject]) -> str:
    """The priority class named by an owner, by a label of the pod, or by its spec."""
    ray = owner.labels.get("ray.io/priority-class-name", "") if owner.group_kind[0] == "ray.io" else ""
    return ray or _first(_CLASS_LABEL, *_from(owner, chain), pod) or pod.text("spec", "priorityClassName")


def _from(owner: WorkloadObject, chain: Sequence[WorkloadObject]) -> list[WorkloadObject]:
    """The owner with its inherited labels, then the rest of the chain."""
    return [owner, *(one for one in chain if one.uid != owner.uid)]


def _first(label: str, *written: WorkloadObject) -> str:
    return next((text for one in written if (text := one.labels.get(label))), "")


def _sub_group(part: SubGroup) -> dict[str, Any]:
    found: dict[str, Any] = {"name": part.name}
    if part.minimum:
        found["minMember"] = part.minimum
    if part.parent:
        found["parent"] = part.parent
    if part.topology_constraint:
        found["topologyConstraint"] = dict(part.topology_constraint)
    return found
