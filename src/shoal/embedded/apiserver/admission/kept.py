"""A value computed from all objects of a resource, kept until one of them changes.

Which StorageClass is the default is asked with every claim and changes once a year. Rejected: listening to commits;
the reader's stamp has the same information without a subscription.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from shoal.embedded.apiserver.reading import Obj, Reader

T = TypeVar("T")


class Kept(Generic[T]):
    """`get()` computes at most once per change of the resource."""

    __slots__ = ("_build", "_group", "_plural", "_reader", "_stamp", "_value")

    def __init__(self, reader: Reader, group: str, plural: str, build: Callable[[Iterable[Obj]], T]) -> None:
        self._reader = reader
        self._group = group
        self._plural = plural
        self._build = build
        self._stamp: int | None = None
        self._value: T | None = None

    def get(self) -> T:
        stamp = self._reader.stamp(self._group, self._plural)
        if self._value is None or stamp != self._stamp:
            self._value = self._build(self._reader.all(self._group, self._plural))
            self._stamp = stamp
        return self._value


def by_namespace(objects: Iterable[Obj]) -> dict[str, list[Obj]]:
    """Objects of each namespace in the order of their names, so that refusals read the same every time."""
    found: dict[str, list[Obj]] = {}
    for obj in sorted(objects, key=lambda one: str(one["metadata"]["name"])):
        found.setdefault(obj["metadata"].get("namespace", ""), []).append(obj)
    return found
