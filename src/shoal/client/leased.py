"""Rejects writes of a process that is no longer the leader: a process that was suspended longer than its lease binds
nothing when it resumes.

The election stops the work of a leader that lost its lease, but a process that was suspended runs all due tasks in any
order when it resumes, and a binding may run before that stop. The check costs nothing: it compares the time since the
last renewal, by the loop's own time.

A write may still wait after this check: for its turn, for credentials, for a connection. `client/http` repeats the
check right before the request is sent. The check here makes a write that cannot succeed fail at once.

Rejected: reading the Lease before each write. The answer is as outdated as this check when the write arrives.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.client.item import Item, Obj
from shoal.client.kind import Kind
from shoal.client.kueue_versions import KueueVersionsApi
from shoal.client.port import GENTLY, Api, Deletion, Patch
from shoal.client.refusals import LeaseEndedError


class LeasedApi(KueueVersionsApi):
    def __init__(self, api: Api, is_leading: Callable[[], bool]) -> None:
        super().__init__(api)
        self._is_leading = is_leading

    async def create(self, kind: Kind, obj: Obj) -> Item:
        self._check()
        return await super().create(kind, obj)

    async def update(self, kind: Kind, obj: Obj, subresource: str = "") -> Item:
        self._check()
        return await super().update(kind, obj, subresource)

    async def patch(self, kind: Kind, namespace: str, name: str, patch: Patch, subresource: str = "") -> Item:
        self._check()
        return await super().patch(kind, namespace, name, patch, subresource)

    async def delete(self, kind: Kind, namespace: str, name: str, how: Deletion = GENTLY) -> Item | None:
        self._check()
        return await super().delete(kind, namespace, name, how)

    async def post(self, kind: Kind, namespace: str, name: str, subresource: str, obj: Obj) -> Obj:
        self._check()
        return await super().post(kind, namespace, name, subresource, obj)

    def _check(self) -> None:
        if not self._is_leading():
            raise LeaseEndedError()
