"""Updates managed fields after a create, an update or a patch.

Fields that such a write changes are owned by its manager from then on, whatever their owner was; removed fields have no
owner. A manager without fields is removed. Runs before mutating admission: what admission fills in has
no owner, as in Kubernetes.

An object without any managers that is updated stays without (a user reset them on purpose); the next apply starts
again from `before-first-apply`.

When a schema makes a map or a list atomic, the owner of a part becomes the owner of the whole. When a schema makes one
granular, the owner of the whole keeps only the path, as Kubernetes documents.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from shoal.embedded.apiserver.apply.changes import Changes
from shoal.embedded.apiserver.apply.elements import ItemError, shape_at
from shoal.embedded.apiserver.apply.entries import (
    ManagedFieldsEntry,
    Manager,
    Managers,
    capped,
    decoded,
    encoded,
    manager_of,
    same_but_for_times,
)
from shoal.embedded.apiserver.apply.fieldset import Fields, difference, union, whole
from shoal.embedded.apiserver.apply.versions import Elsewhere, Versions
from shoal.embedded.apiserver.apply.zero import zero
from shoal.embedded.apiserver.schema.node import ANY, Schema

Obj = dict[str, Any]

UNTRACKED: Fields = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {
        ".": {},
        "f:clusterName": {},
        "f:creationTimestamp": {},
        "f:generation": {},
        "f:managedFields": {},
        "f:name": {},
        "f:namespace": {},
        "f:resourceVersion": {},
        "f:selfLink": {},
        "f:uid": {},
    },
}
"""Fields of the system and of identity, which have no owner."""


@lru_cache(maxsize=256)
def reset_set(reset: tuple[str, ...]) -> Fields:
    """The set of paths given as texts: `("spec", "metadata.labels")`."""
    return whole(path.split(".") for path in reset)


def track(
    new: Obj,
    old: Obj | None,
    *,
    manager: str,
    api_version: str,
    now: str,
    schema: Schema,
    subresource: str = "",
    reset: tuple[str, ...] = (),
    elsewhere: Elsewhere | None = None,
) -> None:
    """Set metadata.managedFields of `new`. `reset` are the paths that the written resource ignores (`status`)."""
    metadata = new.setdefault("metadata", {})
    given = metadata.pop("managedFields", None)
    before = ((old or {}).get("metadata") or {}).get("managedFields")
    managers = _starting_point(given, before, is_subresource=bool(subresource))
    if not managers and old is not None and old["metadata"].get("uid"):
        return
    who = manager_of(manager, "Update", api_version, subresource)
    versions = Versions(api_version, schema, elsewhere, reset_set(reset))
    if before:
        # The same on both sides while they are compared.
        metadata["managedFields"] = before
    try:
        found = updated(managers, zero(schema) if old is None else old, new, who, versions, now)
    except ItemError:
        return
    if found is managers and given is None:
        return
    if found:
        metadata["managedFields"] = encoded(capped(found))
    else:
        metadata.pop("managedFields", None)


def _starting_point(given: Any, before: Any, *, is_subresource: bool) -> Managers:
    """What is sent counts, so that managers can be edited; an empty list, or one of an empty entry, resets them."""
    if not is_subresource and isinstance(given, list):
        if not given or (len(given) == 1 and isinstance(given[0], dict) and not any(given[0].values())):
            return {}
        managers = decoded(given, is_ours=given == before)
        if managers:
            return managers
    return decoded(before, is_ours=True) or {}


def updated(managers: Managers, old: Obj, new: Obj, who: Manager, versions: Versions, now: str) -> Managers:
    """The managers after a write that is no apply."""
    found = versions.changes(old, new, versions.api_version)
    if found is None or not (found.touched or found.removed):
        return managers
    here = migrated(managers, old, versions)
    alone = here.get(who) if len(here) == 1 else None
    if alone is not None and not found.removed and not difference(found.touched, alone.fields):
        # There is no other manager, and the changed fields were owned before: mostly a heartbeat.
        return {who: alone._replace(time=now)}
    kept = after_changes(here, old, new, found, versions)
    own = difference(found.touched, UNTRACKED)
    if own:
        previous = kept.get(who)
        fields = union(previous.fields, own) if previous else own
        kept[who] = ManagedFieldsEntry(versions.api_version, fields, now)
    return kept


def migrated(managers: Managers, live: Obj, versions: Versions) -> Managers:
    """The managers by today's shapes; those of versions that are served no more are forgotten."""
    kept: Managers = {}
    for who, entry in managers.items():
        here = versions.at(live, entry.api_version)
        if here is not None:
            fields = reconciled(entry.fields, here[1])
            kept[who] = entry if fields is entry.fields else entry._replace(fields=fields)
    return kept


def after_changes(managers: Managers, old: Obj, new: Obj, found: Changes, versions: Versions) -> Managers:
    """The managers without what was changed or removed under them."""
    kept: Managers = {}
    by_version: dict[str, Changes | None] = {}
    for who, entry in managers.items():
        if versions.is_same(entry.api_version):
            here: Changes | None = found
        else:
            if entry.api_version not in by_version:
                by_version[entry.api_version] = versions.changes(old, new, entry.api_version)
            here = by_version[entry.api_version]
        if here is None:
            continue
        fields = difference(difference(entry.fields, here.touched), here.removed)
        if fields:
            kept[who] = entry if fields is entry.fields else entry._replace(fields=fields)
    return kept


def keep_times(new: Obj, old: Obj) -> bool:
    """Take the old managedFields where only their times and the resourceVersion differ; whether that was so.

    To be called last before storing: a write that in the end changes nothing then leaves the stored object as it is.
    """
    metadata, before = new["metadata"], old["metadata"]
    ours, theirs = metadata.get("managedFields"), before.get("managedFields")
    if bool(ours) != bool(theirs) or not _same_apart(new, old, metadata, before):
        return False
    if ours != theirs:
        if not same_but_for_times(ours or (), theirs or ()):
            return False
        metadata["managedFields"] = theirs
    return True


_UNCOMPARED = ("managedFields", "resourceVersion")


def _same_apart(new: Obj, old: Obj, metadata: Obj, before: Obj) -> bool:
    def rest(obj: Obj, keys: Iterable[str]) -> Obj:
        return {key: value for key, value in obj.items() if key not in keys}

    # What was written differs, mostly, and not in the metadata.
    if rest(new, ("metadata",)) != rest(old, ("metadata",)):
        return False
    return rest(metadata, _UNCOMPARED) == rest(before, _UNCOMPARED)


def reconciled(fields: Fields, schema: Schema) -> Fields:
    """The same set object when nothing has to move."""
    changed: Fields | None = None
    for key, below in fields.items():
        if not below:
            continue
        shape = shape_at(schema, key)
        if shape is ANY:
            continue
        moved: Fields = {} if _is_atomic(shape) else reconciled(below, shape)
        if moved is not below:
            changed = changed or dict(fields)
            changed[key] = moved
    return fields if changed is None else changed


def _is_atomic(shape: Schema) -> bool:
    if shape.type == "object":
        return shape.map_type == "atomic"
    return shape.type == "array" and shape.list_type == "atomic"
