"""Workloads as their jobs see them: found by owner, asked how far they are, and made."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from copy import deepcopy

import msgspec

from shoal.controllers.owned_pods.ownership import controller_reference
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
from shoal.store.live.item import Item, Obj, Seen
from shoal.store.live.kind import Kind
from shoal.store.queues.job_parts import PodPart, dig
from shoal.units.errors import Where

_REPLACED = frozenset({"WorkloadSliceReplaced", "OutOfSync"})
_HASH, _LONGEST_NAME, _LONGEST_LABEL = 5, 253, 63
_COPIED = ("kueue.x-k8s.io/admission-gated-by", "kueue.x-k8s.io/priority-boost")
_COPIED_BEGINNINGS = ("provreq.kueue.x-k8s.io/", "shoal.dev/")


class _Owner(msgspec.Struct, rename="camel", gc=False):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class _Meta(msgspec.Struct, rename="camel", gc=False):
    owner_references: tuple[_Owner, ...] = ()


class Owned(msgspec.Struct, gc=False):
    metadata: _Meta

    @property
    def controller(self) -> _Owner | None:
        return next((one for one in self.metadata.owner_references if one.controller), None)


owned: Seen[Owned] = Seen(Owned)


def owner_values(item: Item) -> Iterable[str]:
    """For an index: `group/Kind/namespace/name` of the job."""
    owner = owned(item).controller
    if owner is not None:
        yield owner_value(owner.api_version.rpartition("/")[0], owner.kind, (item.namespace, owner.name))


def owner_value(group: str, kind: str, key: tuple[str, str]) -> str:
    return f"{group}/{kind}/{key[0]}/{key[1]}"


class Workload:
    """One version of a Workload, as a plain value with questions."""

    def __init__(self, item: Item) -> None:
        self.item = item
        self.obj: Obj = item.obj()

    @property
    def key(self) -> str:
        return f"{self.item.namespace}/{self.item.name}"

    @property
    def slice_name(self) -> str:
        """Of the first of several of one job, of which this may be a later one."""
        return string_map(self.obj["metadata"], "annotations").get(SLICE_NAME) or self.item.name

    @property
    def replaces(self) -> str:
        """Whose place it takes."""
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
        """Why it can never have quota as it is."""
        said = self.condition(QUOTA_RESERVED) or {}
        return lasting_fault(*(str(said.get(key) or "") for key in ("status", "reason", "message")))

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
        """Another one of its job took its place."""
        reason = (self.condition(FINISHED) or {}).get("reason")
        is_slice = SLICE_NAME in string_map(self.obj["metadata"], "annotations")
        return is_slice and self.is_finished and reason in _REPLACED

    @property
    def is_deleting(self) -> bool:
        return "deletionTimestamp" in self.obj["metadata"]

    @property
    def is_held(self) -> bool:
        return IN_USE in (self.obj["metadata"].get("finalizers") or ())

    def is_controlled_by(self, uid: str) -> bool:
        owner = owned(self.item).controller
        return owner is not None and owner.uid == uid


def workload_name(kind: Kind, meta: Obj, generation: int | None = None) -> str:
    """As Kueue calls it: the same for one job at any time, so that two of them would be one; of a job that has one
    after another, for one generation."""
    said = "\n".join((kind.name, kind.group, str(meta["name"]), str(meta["uid"])))
    if generation is not None:
        said += f"\n{generation}"
    digest = hashlib.sha1(said.encode(), usedforsecurity=False).hexdigest()[:_HASH]
    return f"{kind.name.lower()}-{meta['name']}"[: _LONGEST_NAME - 1 - _HASH] + f"-{digest}"


def new_workload(
    kind: Kind, job: Obj, parts: Sequence[PodPart], queue: str, priority: Obj, labels_to_copy: Iterable[str]
) -> Obj:
    """`priority` are the fields of the spec that say it."""
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
    said = string_map(job["metadata"], "labels").get(MAX_EXEC_TIME)
    if said is not None:
        longest = whole_number(said, Where(path="metadata.labels").key(MAX_EXEC_TIME))
        if longest > 0:
            spec["maximumExecutionTimeSeconds"] = longest
    return spec


def pod_set_of(part: PodPart) -> Obj:
    made: Obj = {"name": part.name, "count": part.count, "template": _unmarked(part.template)}
    if part.least is not None:
        made["minCount"] = part.least
    wish = topology_request(part.template, part.index_label, part.sub_group_label, part.sub_groups)
    if wish:
        made["topologyRequest"] = wish
    return made


def _unmarked(template: Obj) -> Obj:
    """Without marks of an earlier admission, whose Workload somebody took away."""
    copy: Obj = deepcopy(template)
    for key, marks in (("labels", OWN_LABELS), ("annotations", OWN_ANNOTATIONS)):
        each = string_map(copy, "metadata", key)
        if each.keys() & marks:
            put_or_drop(copy["metadata"], key, {name: value for name, value in each.items() if name not in marks})
    return copy


def _is_copied(key: str) -> bool:
    return key in _COPIED or key.startswith(_COPIED_BEGINNINGS)
