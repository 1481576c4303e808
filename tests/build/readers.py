"""A reader over objects in a dict: what admission, RBAC and tokens see, without a server behind it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Obj = dict[str, Any]
_PLURALS = {"Endpoints": "endpoints", "PriorityClass": "priorityclasses"}


class FixedReader:
    """Objects as given; `put` and `drop` count as changes of their resource."""

    def __init__(self, *objs: Obj) -> None:
        self._objs: dict[tuple[str, str, str, str], Obj] = {}
        self._stamps: dict[tuple[str, str], int] = {}
        for obj in objs:
            self.put(obj)

    def put(self, obj: Obj) -> None:
        key = _key(obj)
        self._objs[key] = obj
        self._changed(key)

    def drop(self, obj: Obj) -> None:
        key = _key(obj)
        del self._objs[key]
        self._changed(key)

    def get(self, group: str, plural: str, namespace: str, name: str) -> Obj | None:
        return self._objs.get((group, plural, namespace, name))

    def all(self, group: str, plural: str, namespace: str | None = None) -> Iterable[Obj]:
        return [
            obj
            for key, obj in self._objs.items()
            if key[:2] == (group, plural) and (namespace is None or key[2] == namespace)
        ]

    def stamp(self, group: str, plural: str) -> int:
        return self._stamps.get((group, plural), 0)

    def _changed(self, key: tuple[str, str, str, str]) -> None:
        self._stamps[key[:2]] = self._stamps.get(key[:2], 0) + 1


def _key(obj: Obj) -> tuple[str, str, str, str]:
    group = obj["apiVersion"].rpartition("/")[0]
    kind = obj["kind"]
    plural = _PLURALS.get(kind, f"{kind.lower()}s")
    return group, plural, obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
