"""Follows the ClusterPolicies of a server that serves this kind.

Servers without a GPU operator do not serve the kind, and some serve it later: discovery is repeated at intervals, and
the kind is followed once it is served. Rejected: following it without discovery. A cache of an unserved kind logs
errors continuously.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Mapping
from typing import Any

from shoal.client.cluster_policies import ranked_policies
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import CLUSTER_POLICIES, MISPLACED_CLUSTER_POLICIES
from shoal.client.item import Item
from shoal.client.served import answering
from shoal.embedded.kubelets.cluster_policy import ClusterPolicy, read_policy
from shoal.units.errors import ShoalError, UserError

Obj = dict[str, Any]
_FIRST_S, _LONGEST_S = 1.0, 60.0


class PolicyWatch:
    def __init__(self, context: Context, changed: Callable[[], None]) -> None:
        self.policy: ClusterPolicy | None = None
        self._context = context
        self._changed = changed
        self._events = context.events.named("gpu-operator")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.ensure_future(self._look())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def remark(self, gpu_nodes: Collection[Mapping[str, str]], configs: Mapping[str, Obj]) -> None:
        """Record Events on the policy about fields without effect."""
        first = next(iter(self._ranked()), None)
        if first is None or self.policy is None:
            return
        for reason, words in self.policy.remarks(gpu_nodes, configs):
            self._events.record(_about(first), reason, words, type_="Warning")

    async def _look(self) -> None:
        left, wait_s = {CLUSTER_POLICIES, MISPLACED_CLUSTER_POLICIES}, _FIRST_S
        while left:
            with contextlib.suppress(ShoalError):
                for kind in left & {one.kind for one in await answering(self._context.api)}:
                    self._context.informers.of(kind).on_change(lambda _before, _after: self._see())
                    left.discard(kind)
            await self._context.clock.sleep(wait_s)
            wait_s = min(wait_s * 2, _LONGEST_S)

    def _see(self) -> None:
        if self._task is None:
            return
        ranked = self._ranked()
        try:
            policy = read_policy(ranked[0]) if ranked else None
        except UserError as error:
            # As with the operator, the nodes stay as they are until the policy is corrected.
            self._events.record(_about(ranked[0]), "ReconcileFailed", str(error), type_="Warning")
            policy = self.policy
        for other in ranked[1:]:
            words = f"only one ClusterPolicy is honoured, and that is {ranked[0].name}"
            self._events.record(_about(other), "Ignored", words, type_="Warning")
        if policy != self.policy:
            self.policy = policy
            self._changed()

    def _ranked(self) -> list[Item]:
        return [item for _, item in ranked_policies(self._context.informers)]


def _about(item: Item) -> Obj:
    obj = item.obj()
    return {"kind": obj["kind"], "apiVersion": obj["apiVersion"], "metadata": obj["metadata"]}
