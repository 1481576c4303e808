"""Server-side apply: a manager says all it wants of an object, and owns just that.

What the configuration sets is laid over the live object; what the manager set the last time and sets no more goes,
unless another manager owns it too. Fields that others own with another value are conflicts, and force takes them over.
Equal values are owned together.

The steps are those of Kubernetes' updater, in its order, because what is removed depends on it. Rejected: computing
removals from a three-way diff as client-side apply does; it cannot know of co-owners.
"""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.embedded.apiserver.apply.changes import Changes
from shoal.embedded.apiserver.apply.checking import check
from shoal.embedded.apiserver.apply.conflicts import Conflict, ConflictError, listed, refusal
from shoal.embedded.apiserver.apply.elements import ItemError
from shoal.embedded.apiserver.apply.entries import ManagedFieldsEntry, Manager, Managers, decoded, encoded, manager_of
from shoal.embedded.apiserver.apply.fieldset import Fields, difference, has, intersection
from shoal.embedded.apiserver.apply.last_applied import KUBECTL, follow, still_as_applied
from shoal.embedded.apiserver.apply.merging import merged
from shoal.embedded.apiserver.apply.nulls import without_nulls
from shoal.embedded.apiserver.apply.owned import field_set
from shoal.embedded.apiserver.apply.pruning import pruned
from shoal.embedded.apiserver.apply.tracking import UNTRACKED, after_changes, migrated, reset_set, updated
from shoal.embedded.apiserver.apply.versions import Elsewhere, Versions
from shoal.embedded.apiserver.apply.zero import zero
from shoal.embedded.apiserver.patches.copying import copied
from shoal.embedded.apiserver.schema.node import Schema
from shoal.embedded.apiserver.status import bad_request, internal

Obj = dict[str, Any]


class Applier(msgspec.Struct, frozen=True):
    """Who applies, in which version and to what part of the object."""

    manager: str
    api_version: str
    schema: Schema
    force: bool = False
    subresource: str = ""
    reset: tuple[str, ...] = ()
    """Paths that the written resource ignores (`status`): never owned through it."""
    elsewhere: Elsewhere | None = None

    @property
    def identity(self) -> Manager:
        return manager_of(self.manager, "Apply", self.api_version, self.subresource)


def apply(live: Obj | None, config: Obj, applier: Applier, *, now: str) -> Obj:
    """The object with the configuration applied, its managedFields set. Shares nothing with what it was made of."""
    if config.get("apiVersion") != applier.api_version:
        raise bad_request(f"invalid object type: {_kind_text(config)}")
    metadata = config.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    check(config, applier.schema)
    managers = decoded(((live or {}).get("metadata") or {}).get("managedFields"), is_ours=True) or {}
    try:
        return _applied(live, config, managers, applier, now)
    except ItemError as fault:
        raise internal(str(fault)) from fault


def _kind_text(config: Obj) -> str:
    version = str(config.get("apiVersion", ""))
    return f"{version if '/' in version else '/' + version}, Kind={config.get('kind', '')}"


def _applied(live: Obj | None, config: Obj, managers: Managers, applier: Applier, now: str) -> Obj:
    try:
        result = _attempt(live, config, managers, applier, now)
    except ConflictError as met:
        left = _unexcused(met, live or {}, applier)
        if left:
            raise refusal(left) from None
        result = _attempt(live, config, managers, msgspec.structs.replace(applier, force=True), now)
    if applier.manager == KUBECTL:
        follow(result, config)
    return result


def _unexcused(met: ConflictError, live: Obj, applier: Applier) -> list[Conflict]:
    """The conflicts that are not just with the same user's client-side apply."""
    conflicts = list(met.conflicts)
    if applier.manager != KUBECTL:
        return conflicts
    excused = still_as_applied(live, applier.api_version, applier.schema)
    if excused is None:
        return conflicts
    return [one for one in conflicts if not has(excused, one.path)]


def _attempt(live: Obj | None, config: Obj, managers: Managers, applier: Applier, now: str) -> Obj:
    reset = reset_set(applier.reset)
    versions = Versions(applier.api_version, applier.schema, applier.elsewhere, reset)
    bare = _without_managers(live)
    if not managers and live is not None:
        first = manager_of("before-first-apply", "Update", applier.api_version, applier.subresource)
        managers = updated({}, zero(applier.schema), bare, first, versions, now)
    managers = migrated(managers, bare, versions)
    last = managers.get(applier.identity)
    laid = merged(bare, config, applier.schema)
    owned = difference(field_set(config, applier.schema), reset, with_children=True)
    after = {**managers, applier.identity: ManagedFieldsEntry(applier.api_version, owned, last.time if last else None)}
    if last is not None:
        laid = pruned(laid, after, last, versions)
    after = _settled(after, bare, laid, applier, versions)
    result = without_nulls(copied(laid), applier.schema)
    _keep_birth(result, bare)
    own = difference(after[applier.identity].fields, UNTRACKED) if applier.identity in after else {}
    after.pop(applier.identity, None)
    if own:
        time = (last.time if last else None) if result == bare else now
        after[applier.identity] = ManagedFieldsEntry(applier.api_version, own, time)
    if after:
        result.setdefault("metadata", {})["managedFields"] = encoded(after)
    return result


def _without_managers(live: Obj | None) -> Obj:
    if live is None:
        return {}
    return {**live, "metadata": {key: value for key, value in live["metadata"].items() if key != "managedFields"}}


def _keep_birth(result: Obj, live: Obj) -> None:
    """Generated manifests carry `creationTimestamp: null`, which means nothing."""
    creation_time = (live.get("metadata") or {}).get("creationTimestamp")
    metadata = result.get("metadata")
    if isinstance(metadata, dict) and not metadata.get("creationTimestamp"):
        metadata.pop("creationTimestamp", None)
        if creation_time:
            metadata["creationTimestamp"] = creation_time


def _settled(managers: Managers, live: Obj, laid: Obj, applier: Applier, versions: Versions) -> Managers:
    """The managers once others have lost what was taken from them; raises where that is not allowed."""
    others = {who: entry for who, entry in managers.items() if who != applier.identity}
    found = versions.changes(live, laid, applier.api_version) or Changes({}, {})
    if not applier.force:
        _refuse_conflicts(others, live, laid, found, versions)
    result = after_changes(others, live, laid, found, versions)
    mine = managers[applier.identity]
    if mine.fields:
        result[applier.identity] = mine
    return result


def _refuse_conflicts(others: Managers, live: Obj, laid: Obj, found: Changes, versions: Versions) -> None:
    met: dict[Manager, tuple[str, Fields]] = {}
    for who, entry in others.items():
        same = versions.is_same(entry.api_version)
        here = found if same else versions.changes(live, laid, entry.api_version)
        clash = intersection(entry.fields, here.touched) if here else {}
        if clash:
            met[who] = (entry.api_version, clash)
    if met:
        raise ConflictError(listed(met))
