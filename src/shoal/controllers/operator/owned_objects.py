"""Keeps the objects of the components as they are desired: writes those that differ, and deletes the others.

Guarantees: an object that is as desired is not written, also after a restart; a change by another client is undone;
only objects with the operator's label and a ClusterPolicy or an NVIDIADriver as owner are deleted; an object that
another client created gets neither the label nor the owner, so that it stays when the policy is deleted. If it says
what is desired, such as a RuntimeClass of the distribution, it is used.

Rejected: comparing only a hash of the desired object in an annotation. A change by another client would remain.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Collection, Iterator
from typing import Any

import msgspec

from shoal.api.partial import MetadataOf, OwnedMeta
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import SERVICE_MONITORS
from shoal.client.informer import Informer
from shoal.client.item import Item, Key, Obj, Seen
from shoal.client.kind import (
    CLUSTER_ROLES,
    CONFIG_MAPS,
    DAEMON_SETS,
    NAMESPACES,
    SERVICE_ACCOUNTS,
    SERVICES,
    Kind,
)
from shoal.client.port import Deletion, Patch, Select
from shoal.client.refusals import NotFoundError, RefusedError
from shoal.client.wanted_fields import says

_RBAC = "rbac.authorization.k8s.io"
ROLES = Kind(_RBAC, "v1", "roles", "Role")
ROLE_BINDINGS = Kind(_RBAC, "v1", "rolebindings", "RoleBinding")
CLUSTER_ROLE_BINDINGS = Kind(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", is_namespaced=False)
RUNTIME_CLASSES = Kind("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", is_namespaced=False)
OWNED_KINDS = (
    SERVICE_ACCOUNTS,
    ROLES,
    ROLE_BINDINGS,
    CLUSTER_ROLES,
    CLUSTER_ROLE_BINDINGS,
    RUNTIME_CLASSES,
    CONFIG_MAPS,
    SERVICES,
    DAEMON_SETS,
)
_BY_NAME = {one.name: one for one in (*OWNED_KINDS, SERVICE_MONITORS, NAMESPACES)}
MANAGED_BY, MANAGER = "app.kubernetes.io/managed-by", "shoal-operator"
OURS = Select(labels=f"{MANAGED_BY}={MANAGER}")
HASH = "shoal.dev/desired-hash"
_OWNERS = ("ClusterPolicy", "NVIDIADriver")
_VOLATILE = ("resourceVersion", "generation", "managedFields")

_owned: Seen[MetadataOf[OwnedMeta]] = Seen(MetadataOf[OwnedMeta])


class _Right(msgspec.Struct):
    """An object that was found to be as desired."""

    digest: str
    content: str
    version: int


class OwnedObjects:
    """`changed` is called when an object of the operator changes. `run` follows them until cancelled."""

    def __init__(self, context: Context, namespace: str, changed: Callable[[Kind, Item], None]) -> None:
        self._context = context
        self._namespace = namespace
        self._changed = changed
        self._right: dict[tuple[Kind, Key], _Right] = {}
        self._informers: dict[Kind, Informer] = {}
        self._group: asyncio.TaskGroup | None = None
        for kind in OWNED_KINDS:
            self.follow(kind)

    def follow(self, kind: Kind) -> None:
        space = self._namespace if kind.is_namespaced else ""
        context = self._context
        made = Informer(context.api, kind, context.clock, context.draw, OURS, space, context.informers.outage)
        made.on_change(lambda before, after: self._seen(kind, before, after))
        self._informers[kind] = made
        if self._group is not None:
            self._group.create_task(made.run())

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            self._group = group
            for informer in list(self._informers.values()):
                group.create_task(informer.run())

    async def synced(self) -> None:
        for informer in list(self._informers.values()):
            await informer.synced()

    def has(self, kind: Kind) -> bool:
        return kind in self._informers

    def of(self, kind: Kind) -> Informer:
        return self._informers[kind]

    async def put(self, desired: Obj, owner: Obj) -> None:
        """Create or correct it. Raises what the server refuses."""
        kind = _BY_NAME[desired["kind"]]
        if kind == NAMESPACES:
            await self._label_namespace(desired)
            return
        wanted, digest = _wanted(desired, owner)
        meta = wanted["metadata"]
        key = (meta.get("namespace", ""), meta["name"])
        informer = self._informers[kind]
        present = informer.get(*key)
        if present is not None and self._is_right(kind, present, wanted, digest):
            return
        if present is None and await self._is_there_already(kind, key, wanted):
            return
        # Fields of our own objects are taken over.
        patch = Patch("apply", wanted, force=present is not None)
        item = await self._context.api.patch(kind, *key, patch)
        informer.learn(item)
        self._right[kind, key] = _Right(digest, _content(item), item.version)

    async def _is_there_already(self, kind: Kind, key: Key, wanted: Obj) -> bool:
        """Whether another client created it, as it is desired. Raises RefusedError if it is another object.

        An apply alone would not conflict with equal fields, and would make the policy the owner.
        """
        try:
            present = (await self._context.api.get(kind, *key)).obj()
        except NotFoundError:
            return False
        meta = present["metadata"]
        owners = {one["uid"] for one in wanted["metadata"]["ownerReferences"]}
        is_owned = any(one.get("uid") in owners for one in meta.get("ownerReferences") or ())
        if is_owned or (meta.get("labels") or {}).get(MANAGED_BY) == MANAGER:
            return False
        content = {name: value for name, value in wanted.items() if name not in ("apiVersion", "kind", "metadata")}
        if says(present, content):
            return True
        raise RefusedError(
            "exists, was not created by the operator and has other content; delete it, and the operator creates its own"
        )

    async def remove_others(self, wanted: Collection[tuple[str, str]], kept: Collection[str]) -> None:
        """Delete what is not `wanted` (kind and name). `kept`: components of which nothing is deleted."""
        for kind, item in self._others(wanted, kept):
            deletion = Deletion(policy="Background", uid=item.uid)
            with contextlib.suppress(NotFoundError):
                await self._context.api.delete(kind, *item.key, deletion)
            self._informers[kind].learn_gone(item.key, item.uid)
            self._right.pop((kind, item.key), None)

    def _others(self, wanted: Collection[tuple[str, str]], kept: Collection[str]) -> Iterator[tuple[Kind, Item]]:
        # DaemonSets first: a pod without its account would fail.
        for kind in sorted(self._informers, key=lambda one: one != DAEMON_SETS):
            for item in self._informers[kind]:
                meta = _owned(item).metadata
                is_owned = any(one.kind in _OWNERS for one in meta.owner_references)
                component = meta.labels.get("app.kubernetes.io/component", "")
                if is_owned and (kind.name, item.name) not in wanted and component not in kept:
                    yield kind, item

    async def _label_namespace(self, desired: Obj) -> None:
        """The namespace has no owner, so that it is never deleted."""
        meta = desired["metadata"]
        present = await self._context.api.get(NAMESPACES, "", meta["name"])
        if not says(present.obj()["metadata"].get("labels", {}), meta["labels"]):
            await self._context.api.patch(NAMESPACES, "", meta["name"], Patch("apply", desired, force=True))

    def _is_right(self, kind: Kind, item: Item, wanted: Obj, digest: str) -> bool:
        known = self._right.get((kind, item.key))
        if known is None:
            # After a restart: the content is compared once.
            present = item.obj()
            if (present["metadata"].get("annotations") or {}).get(HASH) != digest or not says(present, wanted):
                return False
            self._right[kind, item.key] = _Right(digest, _content(item), item.version)
            return True
        if known.digest != digest:
            return False
        if known.version != item.version:
            if known.content != _content(item):
                return False
            known.version = item.version
        return True

    def _seen(self, kind: Kind, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is not None:
            if after is None:
                self._right.pop((kind, item.key), None)
            self._changed(kind, item)


def _wanted(desired: Obj, owner: Obj) -> tuple[Obj, str]:
    meta = {**desired["metadata"], "ownerReferences": [owner]}
    wanted = {**desired, "metadata": meta}
    digest = hashlib.sha256(msgspec.json.encode(wanted, order="sorted")).hexdigest()[:16]
    meta["annotations"] = {**meta.get("annotations", {}), HASH: digest}
    return wanted, digest


def _content(item: Item) -> str:
    """A hash of the object without its status."""
    obj: dict[str, Any] = item.obj()
    obj.pop("status", None)
    for name in _VOLATILE:
        obj["metadata"].pop(name, None)
    return hashlib.sha256(msgspec.json.encode(obj, order="sorted")).hexdigest()
