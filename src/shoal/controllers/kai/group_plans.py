"""The PodGroup of a pod, as KAI's podgrouper would write it: of whom, how it is called, its queue, its priority.

Of some owners not they themselves are asked but who stands below: an Argo Workflow's pods and a TrainJob's JobSet go
their own ways, and of a CronJob each Job has a group. Their labels count for those all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from shoal.api.groups.kai import QUEUE_LABEL
from shoal.controllers.kai.group_shapes import shape_of
from shoal.controllers.kai.owned import Owned
from shoal.controllers.kai.shape import Look, Part, Shape, closeness
from shoal.store.live.item import Obj

PREFIX = "pg"
DEFAULT_QUEUE = "default-queue"
OLD_QUEUE_LABEL = "runai/queue"
_PROJECT, _POOL = "project", "kai.scheduler/node-pool"
_CLASS_LABEL, _USER = "priorityClassName", "user"
_PREEMPTIBILITY = "kai.scheduler/preemptibility"
_SPARK = ("spark-app-name", "spark-app-selector")
_LONGEST = 253
_NOT_COPIED = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})

_PASSED = frozenset(
    {
        ("argoproj.io", "Workflow"),
        ("batch", "CronJob"),
        ("trainer.kubeflow.org", "TrainJob"),
        ("serving.knative.dev", "Service"),
        ("serving.knative.dev", "Configuration"),
    }
)


class Plan(msgspec.Struct, frozen=True):
    """One PodGroup, and what the pod is in it."""

    name: str
    owner: Owned
    labels: dict[str, str]
    annotations: dict[str, str]
    spec: Obj
    part: str = ""


def group_owner(pod: Owned, chain: Sequence[Owned]) -> Owned:
    """Whose pods belong together."""
    standing = list(chain)
    while standing and standing[-1].group_kind in _PASSED:
        passed = standing.pop()
        if standing:
            standing[-1] = _labelled(standing[-1], passed)
        else:
            pod = _labelled(pod, passed)
    return standing[-1] if standing else pod


def _labelled(owned: Owned, above: Owned) -> Owned:
    return msgspec.structs.replace(owned, labels={**owned.labels, **above.labels})


def plan_of(pod: Owned, chain: Sequence[Owned], cluster: Owned | None = None) -> Plan:
    """`cluster` is the RayCluster that an owner of Ray's tells of."""
    owner = group_owner(pod, chain)
    shape = shape_of(Look(pod, owner, tuple(chain), cluster))
    of = pod if shape.is_for_one else owner
    annotations = {key: text for key, text in owner.annotations.items() if key not in _NOT_COPIED}
    spec: Obj = {
        "minMember": shape.minimum,
        "queue": _queue(owner, pod),
        "priorityClassName": _priority_class(owner, pod, chain) or shape.priority,
    }
    if said := _first(_PREEMPTIBILITY, *_from(owner, chain), pod):
        spec["preemptibility"] = said
    if wish := closeness(owner.annotations):
        spec["topologyConstraint"] = wish
    if shape.parts:
        spec["subGroups"] = [_sub_group(part) for part in shape.parts]
    labels = dict(owner.labels)
    if _USER not in labels and _USER in pod.labels:
        labels[_USER] = pod.labels[_USER]
    return Plan(_name(of, pod, shape), of, labels, annotations, spec, shape.part)


def _name(of: Owned, pod: Owned, shape: Shape) -> str:
    if of.kind == "Pod" and all(label in pod.labels for label in _SPARK):
        # Driver and executors of one application, which nobody made but Spark itself.
        return pod.labels[_SPARK[1]]
    rest = f"-{of.uid}{shape.suffix}"
    return f"{PREFIX}-{of.name[: _LONGEST - len(PREFIX) - 1 - len(rest)]}{rest}"


def _queue(owner: Owned, pod: Owned) -> str:
    for label in (QUEUE_LABEL, OLD_QUEUE_LABEL):
        if named := _first(label, owner, pod):
            return named
    project = _first(_PROJECT, owner, pod)
    if not project:
        return DEFAULT_QUEUE
    pool = pod.labels.get(_POOL, "")
    return f"{project}-{pool}" if pool else project


def _priority_class(owner: Owned, pod: Owned, chain: Sequence[Owned]) -> str:
    """What somebody named: on an owner, on the pod, or in its spec."""
    ray = owner.labels.get("ray.io/priority-class-name", "") if owner.group_kind[0] == "ray.io" else ""
    return ray or _first(_CLASS_LABEL, *_from(owner, chain), pod) or pod.text("spec", "priorityClassName")


def _from(owner: Owned, chain: Sequence[Owned]) -> list[Owned]:
    """With what it has of those above it, and the others after it."""
    return [owner, *(one for one in chain if one.uid != owner.uid)]


def _first(label: str, *written: Owned) -> str:
    return next((text for one in written if (text := one.labels.get(label))), "")


def _sub_group(part: Part) -> dict[str, Any]:
    found: dict[str, Any] = {"name": part.name}
    if part.minimum:
        found["minMember"] = part.minimum
    if part.parent:
        found["parent"] = part.parent
    if part.closeness:
        found["topologyConstraint"] = dict(part.closeness)
    return found
