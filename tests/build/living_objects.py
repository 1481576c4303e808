"""A cluster of few objects behind the port, for whoever only lists and gets."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from build.manifests import Object
from shoal.client.item import Item, Listed, item_of
from shoal.client.kind import Kind
from shoal.client.port import EVERYTHING, Select, ServedKind
from shoal.client.refusals import ForbiddenError, NotFoundError


class LivingObjects:
    """`forbidden` and `gone` are plurals: those that may not be listed, and those that discovery alone still knows."""

    def __init__(self, *objects: Object, forbidden: Iterable[str] = (), gone: Iterable[str] = ()) -> None:
        self._objects = objects
        self._forbidden = frozenset(forbidden)
        self._gone = frozenset(gone)
        self.listed: list[Kind] = []

    def serving(self, *kinds: Kind) -> LivingObjects:
        self._kinds = kinds
        return self

    async def served(self) -> tuple[ServedKind, ...]:
        verbs = frozenset({"get", "list", "watch"})
        return tuple(ServedKind(kind, verbs, (kind.version,)) for kind in self._kinds)

    async def list(self, kind: Kind, namespace: str = "", select: Select = EVERYTHING) -> Listed:
        self.listed.append(kind)
        if kind.plural in self._forbidden:
            raise ForbiddenError(f'{kind.plural} is forbidden: User "eve" cannot list resource "{kind.plural}"')
        if kind.plural in self._gone:
            raise NotFoundError("the server could not find the requested resource")
        return Listed([_item(obj) for obj in self._objects if obj["kind"] == kind.name], 1)

    async def get(self, kind: Kind, namespace: str, name: str) -> Item:
        for obj in self._objects:
            meta = obj["metadata"]
            if (obj["kind"], meta.get("namespace", ""), meta["name"]) == (kind.name, namespace, name):
                return _item(obj)
        raise NotFoundError(f'{kind.plural} "{name}" not found')


def _item(obj: Object) -> Item:
    return item_of(msgspec.json.encode(obj))
