"""Determines the gang of a pod, in the notation of any ecosystem.

Every scheduler has its own spelling, and manifests that have moved between schedulers carry several. They may agree; a
pod that names two different groups contradicts itself and is refused, for either choice would leave one gang short.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from shoal.api.pod import Pod, WorkloadReference
from shoal.units.errors import UserError, Where, excerpt

KUEUE_GROUP_LABEL = "kueue.x-k8s.io/pod-group-name"
KUEUE_TOTAL_ANNOTATION = "kueue.x-k8s.io/pod-group-total-count"
KUEUE_FAST_ANNOTATION = "kueue.x-k8s.io/pod-group-fast-admission"
KUEUE_SERVING_ANNOTATION = "kueue.x-k8s.io/pod-group-serving"
LIGHT_GROUP_LABEL = "pod-group.scheduling.sigs.k8s.io/name"
LIGHT_MINIMUM_LABEL = "pod-group.scheduling.sigs.k8s.io/min-available"

_ANNOTATIONS = (
    "scheduling.k8s.io/group-name",
    "scheduling.volcano.sh/group-name",
    "pod-group-name",
)
SCHEDULER_PLUGINS_LABEL = "scheduling.x-k8s.io/pod-group"
_LABELS = (
    SCHEDULER_PLUGINS_LABEL,
    "pod-group.scheduling.sigs.k8s.io",
    LIGHT_GROUP_LABEL,
    KUEUE_GROUP_LABEL,
)
_KUEUE_PATH = f"metadata.labels[{KUEUE_GROUP_LABEL}]"
IN_LABELS, IN_ANNOTATIONS = frozenset(_LABELS), frozenset(_ANNOTATIONS)
"""Where a pod may name its group."""
ONE_BY_ONE = (KUEUE_FAST_ANNOTATION, KUEUE_SERVING_ANNOTATION)
"""Kueue admits the pods of such a group before all of them exist: a StatefulSet creates its second pod only when the
first one is ready."""


class GroupReference(msgspec.Struct, frozen=True):
    """One place where a pod names its group."""

    path: str
    name: str
    steps: tuple[str, ...] = ()
    """The path, step by step."""

    @property
    def kind(self) -> str:
        """The project whose group object is meant; empty for a notation without objects."""
        return _PROJECTS.get(self.steps[-1], "")


_PROJECTS = {
    "scheduling.k8s.io/group-name": "volcano",
    "scheduling.volcano.sh/group-name": "volcano",
    "pod-group-name": "kai",
    SCHEDULER_PLUGINS_LABEL: "coscheduling",
    "podGroupName": "kubernetes",
}


def group_references(pod: Pod) -> list[GroupReference]:
    """All places where the pod names its group."""
    return list(_spellings(pod))


def group_of(pod: Pod, where: Where) -> str:
    """The gang as namespace/name; empty for a pod on its own."""
    if _is_alone(pod):
        return ""
    found = list(_spellings(pod))
    for spelling in found[1:]:
        if spelling.name != found[0].name:
            raise UserError(
                f"names the group {excerpt(spelling.name)}, and {found[0].path} names {excerpt(found[0].name)}",
                where=where.with_path(spelling.path),
                fix="a pod belongs to one group",
            )
    return f"{pod.metadata.namespace}/{found[0].name}" if found else ""


def is_one_by_one(pod: Pod) -> bool:
    """Whether Kueue lets each pod of its group start as it comes, so that the group is no gang."""
    annotations = pod.metadata.annotations
    return any(annotations.get(key) == "true" for key in ONE_BY_ONE) and KUEUE_GROUP_LABEL in pod.metadata.labels


def is_in_kueue_group_only(pod: Pod) -> bool:
    """Whether Kueue's label is the only place where the pod names a group."""
    return [spelling.path for spelling in _spellings(pod)] == [_KUEUE_PATH]


def _is_alone(pod: Pod) -> bool:
    """Whether the pod names no group in any way: a quick check, because most pods do not, and there are many."""
    meta, spec = pod.metadata, pod.spec
    if spec.scheduling_group is not None or spec.workload_ref is not None:
        return False
    return IN_LABELS.isdisjoint(meta.labels) and IN_ANNOTATIONS.isdisjoint(meta.annotations)


def _spellings(pod: Pod) -> Iterator[GroupReference]:
    meta = pod.metadata
    for field, known, there in (
        ("annotations", _ANNOTATIONS, meta.annotations),
        ("labels", _LABELS, meta.labels),
    ):
        for key in known:
            if (name := there.get(key)) and not (key == KUEUE_GROUP_LABEL and is_one_by_one(pod)):
                yield GroupReference(f"metadata.{field}[{key}]", name, ("metadata", field, key))
    yield from _of_spec(pod)


def _of_spec(pod: Pod) -> Iterator[GroupReference]:
    spec = pod.spec
    if spec.scheduling_group is not None:
        steps = ("spec", "schedulingGroup", "podGroupName")
        yield GroupReference(".".join(steps), spec.scheduling_group.pod_group_name, steps)
    if spec.workload_ref is not None:
        yield GroupReference("spec.workloadRef", workload_gang(spec.workload_ref), ("spec", "workloadRef"))


def workload_gang(reference: WorkloadReference) -> str:
    """A group inside a Workload has no object, hence no name, of its own."""
    names = (reference.name, reference.pod_group, reference.pod_group_replica_key)
    return "/".join(name for name in names if name)


def least_of_label(pod: Pod, where: Where) -> int | None:
    """The minimum that pods without a group object carry themselves."""
    for field, key, there in (
        ("labels", LIGHT_MINIMUM_LABEL, pod.metadata.labels),
        ("annotations", KUEUE_TOTAL_ANNOTATION, pod.metadata.annotations),
    ):
        if key in there:
            return whole_number(there[key], where.with_path(f"metadata.{field}[{key}]"))
    return None


def whole_number(text: str, where: Where) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise UserError(f"{excerpt(text)} is not a whole number", where=where)
    return int(text)
