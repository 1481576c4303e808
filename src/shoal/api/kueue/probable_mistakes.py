"""Collects values that are accepted although they are probably mistakes, with their interpretation: the source of
warnings.

Here is what one document shows. A queue that leads nowhere, a flavor that is missing or a circle of cohorts shows only
beside the other documents, and is reported by the callers that hold them all.

The name of a queue is a label on the object that is queued. As an annotation, or on the template of a Job's pods, a
cluster does not see it; `misplaced_queue` finds it, and callers that know the local queues decide whether to follow it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from shoal.api.decode import Unknown
from shoal.api.kueue.cluster_queues import ClusterQueue
from shoal.api.kueue.priority_classes import WorkloadPriorityClass
from shoal.api.meta import ObjectMeta
from shoal.api.pod import Pod, PodTemplate
from shoal.api.wire import ApiStruct
from shoal.api.workloads import Deployment, Job, StatefulSet
from shoal.units.errors import Where, excerpt, one_line

QUEUE_NAME = "kueue.x-k8s.io/queue-name"

_DEEPEST = 12
_PUT_IT_THERE = f"put {QUEUE_NAME} under metadata.labels of the object itself"


@dataclass(frozen=True, slots=True)
class Slip:
    """`path` is the field within its document."""

    path: str
    what: str
    fix: str

    def warning(self, where: Where) -> str:
        """One line; `where` is the document."""
        return one_line(f"{where.with_path(self.path)}: {self.what}; {self.fix}")


@dataclass(frozen=True, slots=True)
class MisplacedQueue:
    path: str
    name: str
    is_label: bool
    """On the template, where it would have been right on the object."""


def slips(value: ApiStruct | Unknown) -> list[Slip]:
    """All slips of one document, in the order of its fields."""
    find = _FINDERS.get(type(value))
    found = list(find(value)) if find is not None else []
    misplaced = misplaced_queue(value)
    return [*found, *([] if misplaced is None else [_queue_slip(misplaced)])]


def misplaced_queue(value: ApiStruct | Unknown) -> MisplacedQueue | None:
    """The queue that an object names where no cluster looks for it; none where it names one in the right place."""
    places = list(_unknown_places(value) if isinstance(value, Unknown) else _places(value))
    if not places or places[0].labels.get(QUEUE_NAME):
        return None
    for place in places:
        if name := place.annotations.get(QUEUE_NAME):
            return MisplacedQueue(str(Where(path=place.path).below("annotations").key(QUEUE_NAME)), name, False)
    template_is_seen = isinstance(value, (Deployment, StatefulSet))
    for place in places[1:]:
        if (name := place.labels.get(QUEUE_NAME)) and not template_is_seen:
            return MisplacedQueue(str(Where(path=place.path).below("labels").key(QUEUE_NAME)), name, True)
    return None


def _queue_slip(queue: MisplacedQueue) -> Slip:
    what = "is on the pod template" if queue.is_label else "is an annotation"
    return Slip(queue.path, f"{excerpt(queue.name)} {what}, where no cluster looks for it", _PUT_IT_THERE)


def _cluster_queue(queue: ClusterQueue) -> Iterator[Slip]:
    if queue.spec.cohort:
        what = "is called cohortName in v1beta2, where a cluster drops this field; taken as cohortName"
        yield Slip("spec.cohort", what, "write cohortName")
    if queue.spec.namespace_selector is None:
        what = "is absent, so no namespace may use the queue and all of its workloads wait"
        yield Slip("spec.namespaceSelector", what, "write {} to let every namespace in")


def _priority_class(priority_class: WorkloadPriorityClass) -> Iterator[Slip]:
    if priority_class.spec is not None and priority_class.spec.value is not None:
        what = "is below spec, where a cluster refuses it; it is used as value"
        yield Slip("spec.value", what, "write value at the top, beside metadata")


_FINDERS: dict[type, Callable[[Any], Iterator[Slip]]] = {
    ClusterQueue: _cluster_queue,
    WorkloadPriorityClass: _priority_class,
}


@dataclass(frozen=True, slots=True)
class _Place:
    """Labels and annotations of an object or of a template in it."""

    path: str
    labels: dict[str, str]
    annotations: dict[str, str]


def _places(value: ApiStruct) -> Iterator[_Place]:
    """The object's own comes first."""
    if not isinstance(value, (Pod, Job, Deployment, StatefulSet)):
        return
    yield _place("metadata", value.metadata)
    if not isinstance(value, Pod):
        template: PodTemplate = value.spec.template
        yield _place("spec.template.metadata", template.metadata)


def _place(path: str, meta: ObjectMeta) -> _Place:
    return _Place(path, meta.labels, meta.annotations)


def _unknown_places(value: Unknown) -> Iterator[_Place]:
    """Jobs of kinds without a type have their templates anywhere below `spec`."""
    yield _place("metadata", value.metadata)
    yield from _templates(value.raw.get("spec"), Where(path="spec"), _DEEPEST)


def _templates(raw: Any, where: Where, depth: int) -> Iterator[_Place]:
    if not depth:
        return
    if isinstance(raw, list):
        for index, inner in enumerate(raw):
            yield from _templates(inner, where.below(f"[{index}]"), depth - 1)
    if not isinstance(raw, dict):
        return
    meta = raw.get("metadata")
    if isinstance(meta, dict) and "spec" in raw:
        here = str(where.below("metadata"))
        yield _Place(here, _texts(meta.get("labels")), _texts(meta.get("annotations")))
    for key, inner in raw.items():
        if key != "metadata":
            yield from _templates(inner, where.key(str(key)), depth - 1)


def _texts(raw: Any) -> dict[str, str]:
    if not isinstance(raw, dict):
        return {}
    return {key: text for key, text in raw.items() if isinstance(key, str) and isinstance(text, str)}
