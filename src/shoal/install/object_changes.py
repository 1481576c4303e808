"""Compares the objects of a cluster before and after an upgrade: what is added, changed, removed, and which fields
objects of users lose.

Fields that the API server writes, and the labels with the version, are no change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from shoal.install.differences import Difference, differences
from shoal.install.manifest import Address

Obj = dict[str, Any]
_SERVER_SIDE = frozenset({"resourceVersion", "uid", "generation", "managedFields", "creationTimestamp", "selfLink"})
_VERSION = "app.kubernetes.io/version"


class ObjectChange(msgspec.Struct, frozen=True):
    address: Address
    sign: str
    """+ added, ~ changed, - removed."""
    fields: tuple[Difference, ...] = ()

    @property
    def lost(self) -> tuple[Difference, ...]:
        """Fields that are not there any more."""
        return tuple(one for one in self.fields if one.desired is None)


def object_changes(before: Mapping[Address, Obj], after: Mapping[Address, Obj]) -> Iterator[ObjectChange]:
    """In the order of `after`, then what is removed."""
    for address, obj in after.items():
        present = before.get(address)
        if present is None:
            yield ObjectChange(address, "+")
            continue
        fields = tuple(changed_fields(present, obj))
        if fields:
            yield ObjectChange(address, "~", fields)
    for address in before:
        if address not in after:
            yield ObjectChange(address, "-")


def changed_fields(before: Obj, after: Obj) -> Iterator[Difference]:
    old, new = _compared(before), _compared(after)
    yield from differences(new, old)
    for one in differences(old, new):
        if one.present is None:
            yield Difference(one.path, one.desired, None)


def _compared(obj: Obj) -> Obj:
    found = {name: value for name, value in obj.items() if name not in ("metadata", "status")}
    meta = {name: value for name, value in obj["metadata"].items() if name not in _SERVER_SIDE}
    compared: Obj = _without_version({**found, "metadata": meta})
    return compared


def _without_version(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_version(one) for name, one in value.items() if name != _VERSION}
    if isinstance(value, list):
        return [_without_version(one) for one in value]
    return value
