"""Finds the Workloads of a job by owner, reads their state, and makes new ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from copy import deepcopy

import msgspec

from shoal.api.meta import OwnerReference
from shoal.api.partial import OwnedMeta
from shoal.client.item import Item, Obj, Seen
from shoal.client.kind import Kind
from shoal.client.owned_pods.ownership import controller_reference
from shoal.controllers.queued_work.fields import put_or_drop, string_map
from shoal.controllers.queued_work.kueue_names import (
    ADMITTED,
    EVICTED,
    FINISHED,
    IN_USE,
    JOB_UID,
    MAX_EXEC_TIME,
    QUOTA_RESERVED,
    REPLACES,
    SLICE_NAME,
)
from shoal.controllers.queued_work.pod_set_info import OWN_ANNOTATIONS, OWN_LABELS
from shoal.controllers.queued_work.quota_condition import Fault, lasting_fault
from shoal.controllers.queued_work.topology_requests import topology_request
from shoal.engine.from_api.membership import whole_number
from shoal.store.queues.job_parts import PodPart, dig
from shoal.units.errors import Where

_REPLACED = frozenset({"WorkloadSliceReplaced", "OutOfSync"})
_HASH, _LONGEST_NAME, _LONGEST_LABEL = 5, 253, 63
_COPIED = ("kueue.x-k8s.io/admission-gated-by", "kueue.x-k8s.io/priority-boost")
_COPIED_BEGINNINGS = ("provreq.kueue.x-k8s.io/", "shoal.dev/")


class _Owned(msgspec.Struct, gc=False):
    metadata: OwnedMeta


_owned: Seen[_Owned] = Seen(_Owned)


def controller_of(item: Item) -> OwnerReference | None:
    """The owner that controls the object."""
    return next((one for one in _owned(item).metadata.owner_references if one.controller), None)


def owner_values(item: Item) -> Iterable[str]:
    """Index values: `group/Kind/namespace/name` of the job."""
    owner = controller_of(item)
    if owner is not None:
        yield owner_value(owner.api_version.rpartition("/")[0], owner.kind, (item.namespace, owner.name))


def owner_value(group: str, kind: str, key: tuple[str, str]) -> str:
    return f"{group}/{kind}/{key[0]}/{key[1]}"


class OwnedWorkload:
    """One version of a job's Workload."""

    def __init__(self, item: Item) -> None:
        self.item = item
        self.obj: Obj = item.obj()

    @property
    def key(self) -> str:
        return f"{self.item.namespace}/{self.item.name}"

    @property
    def slice_name(self) -> str:
        """Name of the first Workload of an elastic job, of which this may be a later one."""
        return string_map(self.obj["metadata"], "annotations").get(SLICE_NAME) or self.item.name

    @property
    def replaces(self) -> str:
        """Key of the Workload that it replaces."""
        return string_map(self.obj["metadata"], "annotations").get(REPLACES, "")

    @property
    def pod_sets(self) -> dict[str, Obj]:
        return {str(one.get("name", "main")): one for one in dig(self.obj, ("spec", "podSets")) or ()}

    def condition(self, kind: str) -> Obj | None:
        each = dig(self.obj, ("status", "conditions")) or ()
        return next((one for one in each if one.get("type") == kind), None)

    def is_true(self, kind: str) -> bool:
        found = self.condition(kind)
        return found is not None and found.get("status") == "True"

    @property
    def fault(self) -> Fault | None:
        """Why it can never get quota as it is written."""
        condition = self.condition(QUOTA_RESERVED) or {}
        return lasting_fault(*(str(condition.get(key) or "") for key in ("status", "reason", "message")))

    @property
    def has_quota(self) -> bool:
        return self.is_true(QUOTA_RESERVED)

    @property
    def is_admitted(self) -> bool:
        return self.is_true(ADMITTED)

    @property
    def is_evicted(self) -> bool:
        return self.is_true(EVICTED)

    @property
    def is_finished(self) -> bool:
        return self.is_true(FINISHED)

    @property
    def is_replaced(self) -> bool:
        """It was replaced by another Workload of its job."""
        reason = (self.condition(FINISHED) or {}).get("reason")
        is_slice = SLICE_NAME in string_map(self.obj["metadata"], "annotations")
        return is_slice and self.is_finished and reason in _REPLACED

    @property
    def is_deleting(self) -> bool:
        return "deletionTimestamp" in self.obj["metadata"]

    @property
    def has_finalizer(self) -> bool:
        return IN_USE in (self.obj["metadata"].get("finalizers") or ())

    def is_controlled_by(self, uid: str) -> bool:
        owner = controller_of(self.item)
        return owner is not None and owner.uid == uid


def workload_name(kind: Kind, meta: Obj, generation: int | None = None) -> str:
    """Kueue's name for the Workload of a job. It depends only on the job, so that two controllers create one Workload;
    an elastic job has one for each generation."""
    identity = "\n".join((kind.name, kind.group, str(meta["name"]), str(meta["uid"])))
    if generation is not None:
        identity += f"\n{generation}"
    digest = hashlib.sha1(identity.encode(), usedforsecurity=False).hexdigest()[:_HASH]
    return f"{kind.name.lower()}-{meta['name']}"[: _LONGEST_NAME - 1 - _HASH] + f"-{digest}"


def new_workload(
    kind: Kind, job: Obj, parts: Sequence[PodPart], queue: str, priority: Obj, labels_to_copy: Iterable[str]
) -> Obj:
    """`priority` are the fields of the spec for the priority."""
    meta = job["metadata"]
    labels = {key: value for key, value in string_map(meta, "labels").items() if key in labels_to_copy}
    if len(meta["uid"]) <= _LONGEST_LABEL:
        labels[JOB_UID] = meta["uid"]
    made: Obj = {
        "name": workload_name(kind, meta),
        "namespace": meta["namespace"],
        "labels": labels,
        "finalizers": [IN_USE],
        "ownerReferences": [controller_reference(kind, meta)],
    }
    annotations = {key: value for key, value in string_map(meta, "annotations").items() if _is_copied(key)}
    if annotations:
        made["annotations"] = annotations
    return {"metadata": made, "spec": workload_spec(job, parts, queue, priority)}


def workload_spec(job: Obj, parts: Sequence[PodPart], queue: str, priority: Obj) -> Obj:
    spec: Obj = {"podSets": [pod_set_of(part) for part in parts], "queueName": queue, "active": True, **priority}
    label = string_map(job["metadata"], "labels").get(MAX_EXEC_TIME)
    if label is not None:
        longest = whole_number(label, Where(path="metadata.labels").key(MAX_EXEC_TIME))
        if longest > 0:
            spec["maximumExecutionTimeSeconds"] = longest
    return spec


def pod_set_of(part: PodPart) -> Obj:
    made: Obj = {"name": part.name, "count": part.count, "template": _without_own_marks(part.template)}
    if part.least is not None:
        made["minCount"] = part.least
    request = topology_request(part.template, part.index_label, part.sub_group_label, part.sub_groups)
    if request:
        made["topologyRequest"] = request
    return made


def _without_own_marks(template: Obj) -> Obj:
    """The template without labels and annotations of an earlier admission whose Workload was deleted."""
    copy: Obj = deepcopy(template)
    for key, marks in (("labels", OWN_LABELS), ("annotations", OWN_ANNOTATIONS)):
        each = string_map(copy, "metadata", key)
        if each.keys() & marks:
            put_or_drop(copy["metadata"], key, {name: value for name, value in each.items() if name not in marks})
    return copy


def _is_copied(key: str) -> bool:
    return key in _COPIED or key.startswith(_COPIED_BEGINNINGS)
