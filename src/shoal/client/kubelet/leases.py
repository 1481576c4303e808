"""Renews the Leases of nodes, their heartbeats, one after the other, evenly distributed over the period.

A renewal is a merge patch of one field without a read: with a thousand nodes it is the most frequent request, so it
must be cheap.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from shoal.client.clock import Clock
from shoal.client.item import Obj
from shoal.client.kind import LEASES
from shoal.client.kubelet.writes import Writes
from shoal.client.port import Api, Patch
from shoal.client.refusals import AlreadyExistsError, NotFoundError

NAMESPACE = "kube-node-lease"
_DURATION_S = 40


class Leases:
    def __init__(self, api: Api, clock: Clock, every_s: float, owner_uid: Callable[[str], str]) -> None:
        """`owner_uid`: returns the uid of the Node of that name; empty while its lease is not to be renewed."""
        self._api = api
        self._clock = clock
        self._every_s = every_s
        self._owner_uid = owner_uid
        self._writes: Writes[str] = Writes(clock, 8, self._renew)
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def start(self, node: str, share: float) -> None:
        """`share`: this node's time within the period, 0 to 1."""
        self._writes.add(node)
        self._next(node, self._every_s * (share or 1.0))

    def now(self, node: str) -> None:
        """Renew at once, for a node that is reachable again."""
        self._writes.add(node)

    def stop(self, node: str) -> None:
        """The node is gone: its lease is not renewed any more."""
        timer = self._timers.pop(node, None)
        if timer is not None:
            timer.cancel()

    async def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        await self._writes.close()

    def _next(self, node: str, after_s: float) -> None:
        self._timers[node] = self._clock.call_later(after_s, lambda: self._ring(node))

    def _ring(self, node: str) -> None:
        self._next(node, self._every_s)
        if self._owner_uid(node):
            self._writes.add(node)

    async def _renew(self, node: str) -> None:
        uid = self._owner_uid(node)
        if not uid:
            return
        now = self._clock.micro_text()
        try:
            await self._api.patch(LEASES, NAMESPACE, node, Patch("merge", {"spec": {"renewTime": now}}))
        except NotFoundError:
            try:
                await self._api.create(LEASES, self._lease(node, uid, now))
            except AlreadyExistsError:
                self._writes.add(node)

    def _lease(self, node: str, uid: str, now: str) -> Obj:
        owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
        return {
            "metadata": {"name": node, "namespace": NAMESPACE, "ownerReferences": [owner]},
            "spec": {
                "holderIdentity": node,
                "leaseDurationSeconds": max(_DURATION_S, int(self._every_s)),
                "renewTime": now,
            },
        }
