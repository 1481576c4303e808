"""Groups plain pods to workloads by Kueue's pod group label, and counts the pods of each group.

Groups of other projects are in `group_members.py`.

Every pod names its group and the group's total count. The workload is created once all pods exist, or at once for
groups with fast admission. Pods of one shape form one pod set. Pods beyond the total count do not belong to the group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from msgspec import structs

from shoal.api.meta import ObjectMeta
from shoal.api.pod import Pod, PodTemplate
from shoal.api.wire import to_json
from shoal.engine.from_api.membership import KUEUE_FAST_ANNOTATION, KUEUE_TOTAL_ANNOTATION, whole_number
from shoal.engine.from_api.queues import ExpectedWorkload, TemplatePods
from shoal.store.inventory import Placed
from shoal.store.queues.members import is_running

_PLACING = "kueue.x-k8s.io/podset-"
"""Annotations that are part of the shape."""
_FIRST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class GroupedPods:
    unmade: ExpectedWorkload
    placed: Placed[Pod]
    """Its oldest pod."""
    pods: tuple[str, ...]


@dataclass(slots=True)
class PodGroups:
    """Pods by namespace and group."""

    _groups: dict[tuple[str, str], list[Placed[Pod]]] = field(default_factory=dict)
    _queues: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, group: str, queue: str, placed: Placed[Pod]) -> None:
        key = placed.value.metadata.namespace, group
        self._groups.setdefault(key, []).append(placed)
        self._queues.setdefault(key, queue)

    def each(self, warnings: list[str]) -> Iterator[GroupedPods]:
        """The complete groups; a warning says why each other group is incomplete."""
        for (namespace, group), members in self._groups.items():
            members.sort(key=lambda placed: (age_of(placed.value), placed.value.metadata.name))
            first = members[0]
            if any(is_running(placed.value) for placed in members):
                warnings.append(runs_unadmitted(first, f"{namespace}/{group}"))
                continue
            total = _total(first)
            fast = first.value.metadata.annotations.get(KUEUE_FAST_ANNOTATION) == "true"
            if total is None:
                place = first.at("metadata.annotations").key(KUEUE_TOTAL_ANNOTATION)
                warnings.append(f"{place}: is required of the pods of a group: {namespace}/{group} is held back")
            elif len(members) < total and not fast:
                warnings.append(
                    f"{first.where}: pod group {namespace}/{group} waits for {total} pods, and only {len(members)} "
                    "exist: held back"
                )
            else:
                yield self._grouped(namespace, group, members[:total], total)

    def _grouped(self, namespace: str, group: str, members: list[Placed[Pod]], total: int) -> GroupedPods:
        first = members[0]
        meta = structs.replace(first.value.metadata, name=group)
        unmade = ExpectedWorkload(
            f"{namespace}/{group}", self._queues[namespace, group], meta, _batches(members, total - len(members))
        )
        return GroupedPods(unmade, first, tuple(placed.value.metadata.key for placed in members))


def runs_unadmitted(first: Placed[Pod], group: str) -> str:
    return (
        f"{first.where}: pod group {group} runs without an admission: its Workload is not among the manifests, and it "
        "is left as it is"
    )


def _batches(members: list[Placed[Pod]], missing: int) -> tuple[TemplatePods, ...]:
    """One pod set for each shape, in the order of the oldest pods; missing pods count as equal to the first."""
    shapes: dict[bytes, list[Pod]] = {}
    for placed in members:
        shapes.setdefault(shape_of(placed.value), []).append(placed.value)
    counts = [len(pods) for pods in shapes.values()]
    counts[0] += missing
    names = ["main"] if len(shapes) == 1 else [f"main-{index}" for index in range(len(shapes))]
    return tuple(
        TemplatePods(PodTemplate(pods[0].metadata, pods[0].spec), count, name=name, path="")
        for pods, count, name in zip(shapes.values(), counts, names, strict=True)
    )


def shape_of(pod: Pod) -> bytes:
    placing = {key: text for key, text in sorted(pod.metadata.annotations.items()) if key.startswith(_PLACING)}
    spec = structs.replace(pod.spec, scheduling_gates=())
    return to_json(PodTemplate(ObjectMeta(annotations=placing), spec))


def _total(placed: Placed[Pod]) -> int | None:
    text = placed.value.metadata.annotations.get(KUEUE_TOTAL_ANNOTATION)
    return None if text is None else whole_number(text, placed.at("metadata.annotations").key(KUEUE_TOTAL_ANNOTATION))


def age_of(pod: Pod) -> datetime:
    return pod.metadata.creation_timestamp or _FIRST
