"""Marks pods of a node without heartbeats as not ready, since their state is unknown."""

from __future__ import annotations

import asyncio

from shoal.api.partial import PartialPod
from shoal.client.bound_pods import pods_by_node
from shoal.client.context import Context
from shoal.client.item import Item, Obj
from shoal.client.kind import PODS
from shoal.client.refusals import NotFoundError

_AT_ONCE = 16


class UnreadyPods:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._events = context.events.named("node-controller")
        self._by_node = pods_by_node(context.informers)

    async def mark(self, node: str) -> None:
        await self._context.informers.of(PODS).synced()
        ready = [item for item in self._by_node[node] if _is_ready(item)]
        for start in range(0, len(ready), _AT_ONCE):
            await asyncio.gather(*(self._mark(item) for item in ready[start : start + _AT_ONCE]))

    async def _mark(self, item: Item) -> None:
        pod = item.obj()
        for condition in pod["status"]["conditions"]:
            if condition["type"] == "Ready":
                condition |= {"status": "False", "lastTransitionTime": self._context.clock.text()}
        about: Obj = {"kind": "Pod", "apiVersion": "v1", "metadata": pod["metadata"]}
        try:
            await self._context.api.update(PODS, pod, "status")
        except NotFoundError:
            return
        self._events.record(about, "NodeNotReady", "Node is not ready", type_="Warning")


def _is_ready(item: Item) -> bool:
    pod = item.read(PartialPod)
    return pod.is_ready() and not pod.is_finished()
