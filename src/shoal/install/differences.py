"""The differences between an object as it is applied and as it is in the cluster: `--diff`, and drift.

Only fields that the installation sets are compared: defaults of the server and fields of other writers are no
difference. Elements of lists are compared by their merge key, else by their place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_KEYS = ("name", "containerPort", "mountPath", "type", "topologyKey", "port", "key")
_MOST_LETTERS = 120


class Difference(NamedTuple):
    path: str
    present: Any
    """None: it is absent."""
    desired: Any

    def __str__(self) -> str:
        return f"{self.path}: {shown(self.present)} -> {shown(self.desired)}"


def differences(desired: Any, present: Any, path: str = "") -> Iterator[Difference]:
    if isinstance(desired, Mapping) and isinstance(present, Mapping):
        for name, value in desired.items():
            below = f"{path}.{name}" if path and "." not in name else f"{path}[{name}]" if path else name
            if name in present:
                yield from differences(value, present[name], below)
            elif value not in ({}, [], None):
                yield Difference(below, None, value)
        return
    if isinstance(desired, list) and isinstance(present, list):
        yield from _listed(desired, present, path)
        return
    if desired != present:
        yield Difference(path, present, desired)


def _listed(desired: list[Any], present: list[Any], path: str) -> Iterator[Difference]:
    key = _key_of(desired + present)
    if not key:
        if len(desired) != len(present):
            yield Difference(path, present, desired)
            return
        for place, (one, other) in enumerate(zip(desired, present, strict=True)):
            yield from differences(one, other, f"{path}[{place}]")
        return
    there = {one[key]: one for one in present}
    for one in desired:
        below = f"{path}[{one[key]}]"
        if one[key] in there:
            yield from differences(one, there[one[key]], below)
        else:
            yield Difference(below, None, one)
    wanted = {one[key] for one in desired}
    for name, one in there.items():
        if name not in wanted:
            yield Difference(f"{path}[{name}]", one, None)


def _key_of(listed: list[Any]) -> str:
    """The name by which all elements differ; empty without one."""
    if not listed or not all(isinstance(one, dict) for one in listed):
        return ""
    for key in _KEYS:
        values = [one.get(key) for one in listed]
        if all(isinstance(value, str | int) for value in values):
            return key
    return ""


def shown(value: Any) -> str:
    text = "absent" if value is None else str(value)
    return text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 3]}..."
