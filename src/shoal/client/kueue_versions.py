"""Adapts an Api so that Kueue's objects have the newest version's fields, whichever version the server stores.

Where only v1beta1 is served, objects are converted when they are read and written, by the table of
`api/kueue/conversion.py`, so that no other module needs to know the version: a server drops fields that its version
does not have, so a newer field would be written again and again.

A server without a conversion webhook takes an object of one version for the other: an object that was written as
v1beta1 is v1beta2 there, with the fields and defaults of v1beta1. These are converted here too.

Rejected: a check of the version wherever a status is written. A missing check would be noticed on old clusters only.
"""

from __future__ import annotations

from contextlib import aclosing

import msgspec
from msgspec import structs

from shoal.api.kueue.conversion import GROUP, V1BETA1, V1BETA2, convert, differs
from shoal.client.item import Item, Listed, Obj
from shoal.client.kind import Kind
from shoal.client.port import EVERYTHING, GENTLY, Api, Batches, Deletion, Patch, Select, ServedKind
from shoal.units.errors import UserError

_HEAD = ("apiVersion", "kind")
_OLD_SIGNS = {
    "ClusterQueue": (b'"cohort":', b'"Borrow"', b'"Preempt"', b'"admissionChecks":["'),
    "Workload": (b'"priorityClassSource":',),
}
"""Fields and values that only objects of the older version contain, in the kinds that users write."""


class KueueVersionsApi:
    def __init__(self, api: Api) -> None:
        self._api = api

    async def get(self, kind: Kind, namespace: str, name: str) -> Item:
        return _raised(kind, await self._api.get(kind, namespace, name))

    async def list(self, kind: Kind, namespace: str = "", select: Select = EVERYTHING) -> Listed:
        listed = await self._api.list(kind, namespace, select)
        return Listed([_raised(kind, item) for item in listed.items], listed.version) if _may_be_old(kind) else listed

    def watch(self, kind: Kind, since: int, namespace: str = "", select: Select = EVERYTHING) -> Batches:
        batches = self._api.watch(kind, since, namespace, select)
        return _raised_batches(kind, batches) if _may_be_old(kind) else batches

    async def create(self, kind: Kind, obj: Obj) -> Item:
        return _raised(kind, await self._api.create(kind, _lowered(kind, obj)))

    async def update(self, kind: Kind, obj: Obj, subresource: str = "") -> Item:
        return _raised(kind, await self._api.update(kind, _lowered(kind, obj), subresource))

    async def patch(self, kind: Kind, namespace: str, name: str, patch: Patch, subresource: str = "") -> Item:
        if _is_old(kind) and isinstance(patch.body, dict):
            patch = structs.replace(patch, body=_lowered(kind, patch.body))
        return _raised(kind, await self._api.patch(kind, namespace, name, patch, subresource))

    async def delete(self, kind: Kind, namespace: str, name: str, how: Deletion = GENTLY) -> Item | None:
        left = await self._api.delete(kind, namespace, name, how)
        return None if left is None else _raised(kind, left)

    async def post(self, kind: Kind, namespace: str, name: str, subresource: str, obj: Obj) -> Obj:
        return await self._api.post(kind, namespace, name, subresource, obj)

    async def served(self) -> tuple[ServedKind, ...]:
        return await self._api.served()

    async def close(self) -> None:
        await self._api.close()


def _is_old(kind: Kind) -> bool:
    return kind.group == GROUP and kind.api_version == V1BETA1 and differs(kind.name)


def _may_be_old(kind: Kind) -> bool:
    return kind.group == GROUP and (_is_old(kind) or kind.name in _OLD_SIGNS)


def relabelled(kind: Kind, item: Item) -> Item:
    """Convert an object that has the newer version's apiVersion but the fields of the older one."""
    signs = _OLD_SIGNS.get(kind.name, ()) if kind.api_version == V1BETA2 else ()
    return _up(kind, item) if any(sign in item.data for sign in signs) else item


def _raised(kind: Kind, item: Item) -> Item:
    return _up(kind, item) if _is_old(kind) else relabelled(kind, item)


def _up(kind: Kind, item: Item) -> Item:
    obj = item.obj()
    spec = obj.get("spec")
    if isinstance(spec, dict) and spec.get("cohortName"):
        # The object was since written in the newer version.
        spec.pop("cohort", None)
    try:
        newer = convert({**obj, "apiVersion": V1BETA1, "kind": kind.name}, V1BETA2)
    except UserError:
        # The reader of the object reports its fault.
        return item
    return structs.replace(item, data=msgspec.json.encode(_headed(newer, obj)))


async def _raised_batches(kind: Kind, batches: Batches) -> Batches:
    async with aclosing(batches):
        async for changes in batches:
            yield [one if one.item is None else structs.replace(one, item=_raised(kind, one.item)) for one in changes]


def _lowered(kind: Kind, obj: Obj) -> Obj:
    """Convert an object, or the parts of one in a patch, to the older version."""
    if not _is_old(kind):
        return obj
    return _headed(convert({**obj, "apiVersion": V1BETA2, "kind": kind.name}, V1BETA1), obj)


def _headed(converted: Obj, obj: Obj) -> Obj:
    """The converted object, with the kind and version of the original if it has them."""
    found = {name: part for name, part in converted.items() if name not in _HEAD}
    return found | {name: obj[name] for name in _HEAD if name in obj}
