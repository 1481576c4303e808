"""Reading other objects while a request is decided: the one view of the state that admission, RBAC and policies get."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

Obj = dict[str, Any]


class Reader(Protocol):
    """Current, durable objects in their stored version. What is returned is shared: never change it."""

    def get(self, group: str, plural: str, namespace: str, name: str) -> Obj | None: ...

    def all(self, group: str, plural: str, namespace: str | None = None) -> Iterable[Obj]:
        """All objects of a resource, of one namespace where one is given; decoded once per change and kept."""

    def stamp(self, group: str, plural: str) -> int:
        """Grows with every change of the resource: what was computed from `all` at a stamp is good while it stays."""
