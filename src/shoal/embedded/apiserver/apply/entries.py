"""managedFields as sent and as kept while a write is decided: who owns what since when.

Fields stay in the form they are sent in (`fieldset`), so managers that a write does not touch pass through as they are.
Who applies is one manager whatever version he applied in; who updates is another one for each version.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from shoal.embedded.apiserver.apply.fieldset import Fields, union

Obj = dict[str, Any]


class Manager(NamedTuple):
    """Who a manager is. The version is empty for appliers."""

    name: str
    operation: str
    api_version: str
    subresource: str

    def rank(self) -> tuple[str, ...]:
        """The order in which conflicts name managers: that of their identities as JSON text."""
        return (self.name + '"', self.operation, self.api_version, self.subresource)


class ManagedFieldsEntry(NamedTuple):
    """What a manager owns, in which version he said so, and when; the time may be unknown."""

    api_version: str
    fields: Fields
    time: str | None = None


Managers = dict[Manager, ManagedFieldsEntry]


def manager_of(name: str, operation: str, api_version: str, subresource: str) -> Manager:
    return Manager(name or "unknown", operation, "" if operation == "Apply" else api_version, subresource)


def decoded(entries: Any, *, is_ours: bool) -> Managers | None:
    """The managers of an object; None if a list that was sent is not valid."""
    found: Managers = {}
    for entry in entries or ():
        if not isinstance(entry, dict) or entry.get("operation") not in ("Apply", "Update"):
            return None
        fields = entry.get("fieldsV1") or {}
        if not entry.get("apiVersion") or entry.get("fieldsType") != "FieldsV1":
            return None
        if not is_ours:
            canonical = _canonical(fields)
            if canonical is None:
                return None
            fields = canonical
        manager = Manager(
            entry.get("manager") or "",
            entry["operation"],
            "" if entry["operation"] == "Apply" else entry["apiVersion"],
            entry.get("subresource") or "",
        )
        found[manager] = ManagedFieldsEntry(entry["apiVersion"], fields, entry.get("time"))
    return found


def _canonical(fields: Any) -> Fields | None:
    """The same set with items named as they are named here; None when it is no set."""
    if not isinstance(fields, dict):
        return None
    made: Fields = {}
    for key, below in fields.items():
        name = _canonical_key(key)
        sub = _canonical(below)
        if name is None or sub is None:
            return None
        made[name] = sub
    return made


def _canonical_key(key: str) -> str | None:
    kind, text = key[:2], key[2:]
    if key == "." or kind == "f:":
        return key
    if kind not in ("k:", "v:", "i:"):
        return None
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
    if kind == "k:":
        if not isinstance(value, dict):
            return None
        value = {name: value[name] for name in sorted(value)}
    return kind + msgspec.json.encode(value).decode()


def encoded(managers: Managers) -> list[Obj]:
    """As sent: appliers first, then by age, then by name."""
    ordered = sorted(
        managers.items(),
        key=lambda one: (one[0].operation, one[1].time or "", one[0].name, one[1].api_version, one[0].subresource),
    )
    return [_encoded(manager, entry) for manager, entry in ordered]


def _encoded(manager: Manager, entry: ManagedFieldsEntry) -> Obj:
    made: Obj = {"manager": manager.name} if manager.name else {}
    made["operation"] = manager.operation
    made["apiVersion"] = entry.api_version
    if entry.time is not None:
        made["time"] = entry.time
    made["fieldsType"] = "FieldsV1"
    made["fieldsV1"] = entry.fields
    if manager.subresource:
        made["subresource"] = manager.subresource
    return made


_MOST_UPDATERS = 10
_OLD = "ancient-changes"


def capped(managers: Managers) -> Managers:
    """With at most ten updaters: the oldest of a version are merged into one that represents all of them."""
    updaters = [manager for manager in managers if manager.operation == "Update"]
    too_many = len(updaters) - _MOST_UPDATERS
    if too_many <= 0:
        return managers
    updaters.sort(key=lambda one: (managers[one].time or "", one.rank()))
    kept = dict(managers)
    first_of: dict[str, Manager] = {}
    for manager in updaters:
        if too_many <= 0:
            break
        version = kept[manager].api_version
        if version not in first_of:
            first_of[version] = manager
            continue
        bucket = Manager(_OLD, "Update", version, "")
        if bucket not in kept:
            kept[bucket] = kept.pop(first_of[version])
        entry = kept.pop(manager)
        kept[bucket] = ManagedFieldsEntry(version, union(entry.fields, kept[bucket].fields), entry.time)
        too_many -= 1
    return kept


def same_but_for_times(left: Iterable[Obj], right: Iterable[Obj]) -> bool:
    def timeless(entries: Iterable[Obj]) -> list[Obj]:
        bare = [{key: value for key, value in entry.items() if key != "time"} for entry in entries]
        return sorted(bare, key=lambda entry: [str(entry.get(key)) for key in ("operation", "manager", "subresource")])

    return timeless(left) == timeless(right)
