"""The port to a Kubernetes API server: requests as values, answers as items.

Implementations: `client/http` speaks HTTP to any server; `embedded/apiserver/inside` calls the embedded one in
the same process. One contract suite holds both to the same behaviour. Every instance speaks as one user.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Literal, Protocol

import msgspec

from shoal.client.item import Item, Listed, Obj, WatchEvent
from shoal.client.kind import Kind
from shoal.client.refusals import BusyError


class Select(msgspec.Struct, frozen=True):
    """Which objects of a list or watch; texts as in the API's own `labelSelector` and `fieldSelector`."""

    labels: str = ""
    fields: str = ""


EVERYTHING = Select()
Batch = list[WatchEvent]
Batches = AsyncGenerator[Batch, None]
"""The caller closes them: a watch is an open request."""


class Patch(msgspec.Struct, frozen=True):
    how: Literal["merge", "strategic", "json", "apply"]
    body: Any
    """A patch that must not overwrite others carries metadata.resourceVersion (or .uid) in its body."""
    force: bool = False
    """Of an apply: take fields from their managers."""


class Deletion(msgspec.Struct, frozen=True):
    """How to delete. `uid` and `version` are preconditions."""

    grace_s: int | None = None
    policy: Literal["", "Background", "Foreground", "Orphan"] = ""
    uid: str = ""
    version: int = 0

    def to_api(self) -> Obj:
        """The DeleteOptions that say so."""
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
    """All in which it is served, the preferred one first."""


class SilentGroupError(BusyError):
    """An aggregated API that is registered does not answer, and what it serves is not known. Who only looks for kinds
    goes by `served`; who takes away what is not served must not."""

    def __init__(self, what: str, served: tuple[ServedKind, ...]) -> None:
        super().__init__(what)
        self.served = served
        """By all others."""


class Api(Protocol):
    """Refusals are raised as in `refusals.py`; ConflictError and TemporaryError mean: try again."""

    async def get(self, kind: Kind, namespace: str, name: str) -> Item: ...

    async def list(self, kind: Kind, namespace: str = "", select: Select = EVERYTHING) -> Listed:
        """All of it, however many pages that takes. An empty namespace is every namespace."""
        ...

    def watch(self, kind: Kind, since: int, namespace: str = "", select: Select = EVERYTHING) -> Batches:
        """What happens after `since`, in batches; ends when the server ends it. Raises ExpiredError when it is
        forgotten. Close it with `aclose()`."""
        ...

    async def create(self, kind: Kind, obj: Obj) -> Item:
        """`obj` may lack kind and apiVersion; its metadata says the namespace. It is not the caller's any more."""
        ...

    async def update(self, kind: Kind, obj: Obj, subresource: str = "") -> Item:
        """Replace the whole object (or, by `subresource`, its status). It is not the caller's any more."""
        ...

    async def patch(self, kind: Kind, namespace: str, name: str, patch: Patch, subresource: str = "") -> Item: ...

    async def delete(self, kind: Kind, namespace: str, name: str, how: Deletion = GENTLY) -> Item | None:
        """The object as it waits for its end (finalizers, grace); None when it is gone."""
        ...

    async def post(self, kind: Kind, namespace: str, name: str, subresource: str, obj: Obj) -> Obj:
        """What is posted to a subresource: `binding`, `eviction`, `token`."""
        ...

    async def served(self) -> tuple[ServedKind, ...]:
        """Every resource there is, aggregated ones too where they answer. Raises SilentGroupError if a group does not
        answer and is not known from before."""
        ...

    async def close(self) -> None: ...
