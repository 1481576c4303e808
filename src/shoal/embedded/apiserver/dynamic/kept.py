"""Caches what is compiled from admission configurations until they change.

Every write of any of them has all of them read again, the write of their status too; but compiling is what takes time,
and one that says what it said has been compiled. Told by what is written and not by the generation: a configuration
that was deleted and made again begins with 1 again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

Made = TypeVar("Made")
Written = Mapping[str, Any]


class Kept(Generic[Made]):
    def __init__(self, make: Callable[[Written], Made]) -> None:
        self._make = make
        self._made: dict[str, tuple[Written, Made]] = {}

    def of(self, configurations: Iterable[Written]) -> list[Made]:
        """In the order of their names. Who is not among them is forgotten."""
        before, self._made = self._made, {}
        for one in sorted(configurations, key=name_of):
            name, said = name_of(one), {key: value for key, value in one.items() if key not in ("metadata", "status")}
            known = before.get(name)
            self._made[name] = known if known is not None and known[0] == said else (said, self._make(one))
        return [made for _, made in self._made.values()]


def name_of(obj: Written) -> str:
    return str(obj["metadata"]["name"])
