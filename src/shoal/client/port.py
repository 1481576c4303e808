"""Defines the protocol of requests to a Kubernetes API server: requests as values, answers as items.

Implementations: `client/http` speaks HTTP to any server; `embedded/apiserver/inside` calls the embedded one in the same
process. One contract suite tests that both behave the same. Every instance acts as one user.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Literal, Protocol

import msgspec

from shoal.client.item import Item, Listed, Obj, WatchEvent
from shoal.client.kind import Kind
from shoal.client.refusals import BusyError


class Select(msgspec.Struct, frozen=True):
    """The objects of a list or watch; the texts have the format of the API's `labelSelector` and `fieldSelector`."""

    labels: str = ""
    fields: str = ""


EVERYTHING = Select()
Batch = list[WatchEvent]
Batches = AsyncGenerator[Batch, None]
"""The caller must close it, because a watch is an open request."""


class Patch(msgspec.Struct, frozen=True):
    how: Literal["merge", "strategic", "json", "apply"]
    body: Any
    """A patch that must not overwrite others carries metadata.resourceVersion (or .uid) in its body."""
    force: bool = False
    """For an apply: take over fields from other managers."""


class Deletion(msgspec.Struct, frozen=True):
    """The options of a deletion. `uid` and `version` are preconditions."""

    grace_s: int | None = None
    policy: Literal["", "Background", "Foreground", "Orphan"] = ""
    uid: str = ""
    version: int = 0

    def to_api(self) -> Obj:
        """The DeleteOptions with these values."""
        options: Obj = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if self.grace_s is not None:
            options["gracePeriodSeconds"] = self.grace_s
        if self.policy:
            options["propagationPolicy"] = self.policy
        conditions = {"uid": self.uid} if self.uid else {}
        if self.version:
            conditions["resourceVersion"] = str(self.version)
        if conditions:
            options["preconditions"] = conditions
        return options


GENTLY = Deletion()


class ServedKind(msgspec.Struct, frozen=True):
    """A resource found by discovery, in the version its group prefers."""

    kind: Kind
    verbs: frozenset[str]
    versions: tuple[str, ...]
    """All served versions, the preferred one first."""


class SilentGroupError(BusyError):
    """A registered aggregated API does not answer, so its kinds are unknown. Code that only looks for kinds may use
    `served`; code that deletes objects of unserved kinds must not.
    """

    def __init__(self, what: str, served: tuple[ServedKind, ...]) -> None:
        super().__init__(what)
        self.served = served
        """The kinds of all other APIs."""


class Api(Protocol):
    """Refusals are raised as the errors of `refusals.py`; ConflictError and TemporaryError mean that the caller should
    retry.
    """

    async def get(self, kind: Kind, namespace: str, name: str) -> Item: ...

    async def list(self, kind: Kind, namespace: str = "", select: Select = EVERYTHING) -> Listed:
        """All objects, in as many pages as needed. An empty namespace means all namespaces."""
        ...

    def watch(self, kind: Kind, since: int, namespace: str = "", select: Select = EVERYTHING) -> Batches:
        """The changes after `since`, in batches; ends when the server ends the watch. Raises ExpiredError when the
        server no longer has that version. Must be closed with `aclose()`.
        """
        ...

    async def create(self, kind: Kind, obj: Obj) -> Item:
        """`obj` may lack kind and apiVersion; its metadata has the namespace. The caller must not use it afterwards."""
        ...

    async def update(self, kind: Kind, obj: Obj, subresource: str = "") -> Item:
        """Replace the whole object (or, with `subresource`, its status). The caller must not use `obj` afterwards."""
        ...

    async def patch(self, kind: Kind, namespace: str, name: str, patch: Patch, subresource: str = "") -> Item: ...

    async def delete(self, kind: Kind, namespace: str, name: str, how: Deletion = GENTLY) -> Item | None:
        """The object while it is terminating (finalizers, grace period); None when it is deleted."""
        ...

    async def post(self, kind: Kind, namespace: str, name: str, subresource: str, obj: Obj) -> Obj:
        """Post an object to a subresource: `binding`, `eviction`, `token`."""
        ...

    async def served(self) -> tuple[ServedKind, ...]:
        """All served resources, including those of aggregated APIs that answer. Raises SilentGroupError if a group does
        not answer and has no earlier state.
        """
        ...

    async def close(self) -> None: ...
