"""Reads what the podgrouper needs of a pod or an owner of pods: identity, labels, annotations, owner and spec fields.

Owners of pods come from many projects, most of them without a type here. So the object is kept as plain JSON and read
field by field; a field of an unexpected type counts as absent.
"""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.client.item import Item, Obj


class OwnerReference(msgspec.Struct, frozen=True):
    """A reference to an owner."""

    api_version: str
    kind: str
    name: str
    uid: str

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]


class WorkloadObject(msgspec.Struct, frozen=True):
    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner: OwnerReference | None = None
    """The controller, or else the first owner."""
    obj: Obj = {}

    @property
    def group_kind(self) -> tuple[str, str]:
        return self.api_version.rpartition("/")[0], self.kind

    def reference(self) -> Obj:
        """The owner reference to this object, not as controller: the pods have a controller already."""
        return {"apiVersion": self.api_version, "kind": self.kind, "name": self.name, "uid": self.uid}

    def text(self, *path: str) -> str:
        found = self._at(path)
        return found if isinstance(found, str) else ""

    def number(self, *path: str) -> int | None:
        return whole(self._at(path))

    def mapping(self, *path: str) -> dict[str, Any]:
        found = self._at(path)
        return found if isinstance(found, dict) else {}

    def rows(self, *path: str) -> list[dict[str, Any]]:
        found = self._at(path)
        return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []

    def _at(self, path: tuple[str, ...]) -> Any:
        return at(self.obj, *path)


def at(found: Any, *path: str) -> Any:
    for step in path:
        found = found.get(step) if isinstance(found, dict) else None
    return found


def whole(found: Any) -> int | None:
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None


def workload_object(api_version: str, kind: str, item: Item) -> WorkloadObject:
    obj = item.obj()
    meta = obj.get("metadata") or {}
    references = [one for one in meta.get("ownerReferences") or () if isinstance(one, dict)]
    first = next((one for one in references if one.get("controller")), references[0] if references else None)
    return WorkloadObject(
        api_version,
        kind,
        item.namespace,
        item.name,
        item.uid,
        _texts(meta.get("labels")),
        _texts(meta.get("annotations")),
        None if first is None else OwnerReference(*(str(first.get(name, "")) for name in _FIELDS)),
        obj,
    )


_FIELDS = ("apiVersion", "kind", "name", "uid")


def _texts(found: Any) -> dict[str, str]:
    return {key: value for key, value in found.items() if isinstance(value, str)} if isinstance(found, dict) else {}
