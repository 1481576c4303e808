"""Accepts the names of a definition, and sets the conditions NamesAccepted and Established.

Kubernetes runs two controllers for this; here it is one pure function that the server calls after every write of a
definition, with the other definitions of the cluster. A name that another definition of the group has accepted is
refused, and once established a definition stays so: names it asks for later are added only when they are free.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

Obj = dict[str, Any]

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer under which a definition waits for its objects to be gone."""


def condition(crd: Obj, kind: str) -> Obj | None:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return next((one for one in conditions if one["type"] == kind), None)


def is_established(crd: Obj) -> bool:
    found = condition(crd, "Established")
    return found is not None and found["status"] == "True"


def establish(crd: Obj, others: Iterable[Obj], now: str) -> Obj:
    """The definition with the status it has among the others; the same object where nothing changes."""
    status = deepcopy(crd.get("status") or {})
    accepted, fault = _accept(crd["spec"]["names"], status.get("acceptedNames") or {}, _taken(crd, others))
    status["acceptedNames"] = accepted
    conditions = status.setdefault("conditions", []) or []
    status["conditions"] = conditions
    if fault:
        _set(conditions, "NamesAccepted", "False", *fault, now)
    else:
        _set(conditions, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now)
    if not is_established(crd):
        if fault:
            _set(conditions, "Established", "False", "NotAccepted", "not all names are accepted", now)
        else:
            words = "the initial names have been accepted"
            _set(conditions, "Established", "True", "InitialNamesAccepted", words, now)
    return crd if status == crd.get("status") else {**crd, "status": status}


def terminate(crd: Obj, now: str) -> Obj:
    """The definition as it is while its objects are being deleted."""
    changed = deepcopy(crd)
    status = changed.setdefault("status", {})
    # One that is deleted before it was looked at says null.
    conditions = status["conditions"] = status.get("conditions") or []
    words = "CustomResource deletion is in progress"
    _set(conditions, "Terminating", "True", "InstanceDeletionInProgress", words, now)
    return changed


def add_stored_version(crd: Obj) -> None:
    """The storage version joins the versions that objects may be stored in; in place."""
    stored = crd.setdefault("status", {}).setdefault("storedVersions", []) or []
    crd["status"]["storedVersions"] = stored
    for version in crd["spec"].get("versions") or ():
        if version.get("storage") and version["name"] not in stored:
            stored.append(version["name"])


class _Taken:
    """Names of one group that other definitions hold."""

    def __init__(self) -> None:
        self.resources: set[str] = set()
        self.kinds: set[str] = set()


def _taken(crd: Obj, others: Iterable[Obj]) -> _Taken:
    taken = _Taken()
    for other in others:
        if other["metadata"]["name"] == crd["metadata"]["name"] or other["spec"]["group"] != crd["spec"]["group"]:
            continue
        names = (other.get("status") or {}).get("acceptedNames") or {}
        taken.resources |= {names.get("plural", ""), names.get("singular", ""), *(names.get("shortNames") or ())}
        taken.kinds |= {names.get("kind", ""), names.get("listKind", "")}
    taken.resources.discard("")
    taken.kinds.discard("")
    return taken


def _accept(asked: Obj, before: Obj, taken: _Taken) -> tuple[Obj, tuple[str, str] | None]:
    """The names that are given; of what is refused, the last reason and its words."""
    accepted: Obj = dict(before)
    fault: tuple[str, str] | None = None
    for key, reason, used in (
        ("plural", "PluralConflict", taken.resources),
        ("singular", "SingularConflict", taken.resources),
        ("shortNames", "ShortNamesConflict", taken.resources),
        ("kind", "KindConflict", taken.kinds),
        ("listKind", "ListKindConflict", taken.kinds),
    ):
        wanted = asked.get(key)
        clashes = [name for name in (wanted if isinstance(wanted, list) else [wanted]) if name in used]
        if clashes and wanted != before.get(key):
            fault = (reason, ", ".join(f'"{name}" is already in use' for name in clashes))
        else:
            _put(accepted, key, wanted)
    _put(accepted, "categories", asked.get("categories"))
    accepted.setdefault("plural", "")
    accepted.setdefault("kind", "")
    return accepted, fault


def _put(names: Obj, key: str, value: Any) -> None:
    if value:
        names[key] = value
    else:
        names.pop(key, None)


def _set(conditions: list[Obj], kind: str, value: str, reason: str, message: str, now: str) -> None:
    made = {"lastTransitionTime": now, "message": message, "reason": reason, "status": value, "type": kind}
    for index, found in enumerate(conditions):
        if found["type"] == kind:
            if found["status"] == value:
                made["lastTransitionTime"] = found.get("lastTransitionTime", now)
            conditions[index] = made
            return
    conditions.append(made)
