"""Deletes pods that no other component deletes, every twenty seconds.

These are: terminating pods that were never bound; pods on nodes that have been missing for forty seconds (after another
request to the server); terminating pods on nodes that are not ready and have the out-of-service taint; and the oldest
finished pods above a threshold. An unfinished pod is marked as failed first, so that its owner sees the failure. The
decoded fields are cached for each pod, so that a pass over ten thousand pods is cheap.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.client.bound_pods import with_condition
from shoal.client.context import Context
from shoal.client.item import Item
from shoal.client.kind import NODES, PODS
from shoal.client.node_health import NodeFacts
from shoal.client.port import Deletion, Patch
from shoal.client.refusals import NotFoundError
from shoal.embedded.controllers.pod_garbage.pod_index import PodGcIndex
from shoal.units.errors import ShoalError

_log = logging.getLogger("shoal.controllers")
_EVERY_S = 20.0
_QUARANTINE_S = 40.0
_THRESHOLD = 12_500
_AT_ONCE = 16
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
_ORPHANED = ("DeletionByPodGC", "PodGC: node no longer exists")


def pod_garbage_collector(context: Context) -> PodGarbage:
    return PodGarbage(context)


class PodGarbage:
    def __init__(self, context: Context, threshold: int = _THRESHOLD) -> None:
        self.name = context.name
        self._context = context
        self._api = context.api
        self._threshold = threshold
        self._nodes = context.informers.of(NODES)
        self._pods = context.informers.of(PODS)
        self._pod_index = PodGcIndex()
        self._pods.on_change(self._pod_index.changed)
        self._missing_s: dict[str, float] = {}
        """Since when each node has been missing."""

    async def run(self) -> None:
        """Runs until cancelled."""
        await self._context.informers.synced((NODES, PODS))
        while True:
            try:
                await self._look()
            except ShoalError as error:
                _log.warning("%s: %s", self.name, error)
            await self._context.clock.sleep(_EVERY_S)

    async def _look(self) -> None:
        pod_index = self._pod_index
        finished = sorted(pod_index.finished.items(), key=lambda one: (one[1], one[0]))
        await self._end_all(key for key, _ in finished[: max(len(finished) - self._threshold, 0)])
        for name in self._out_of_service():
            await self._end_all(pod_index.by_node.get(name, {}).keys() & pod_index.ending.keys())
        for name in await self._gone():
            await self._end_all(list(pod_index.by_node.get(name, ())), _ORPHANED)
        await self._end_all(pod_index.by_node.get("", {}).keys() & pod_index.ending.keys())

    def _out_of_service(self) -> list[str]:
        found = []
        for item in self._nodes:
            if _OUT_OF_SERVICE.encode() in item.data:
                facts = item.read(NodeFacts)
                ready = facts.conditions.get("Ready")
                is_ready = ready is not None and ready.status == "True"
                if not is_ready and any(taint.key == _OUT_OF_SERVICE for taint in facts.taints):
                    found.append(item.name)
        return found

    async def _gone(self) -> list[str]:
        now_s = self._context.clock.seconds()
        missed = {name for name in self._pod_index.by_node if name and self._nodes.get("", name) is None}
        self._missing_s = {name: self._missing_s.get(name, now_s) for name in missed}
        found = []
        for name, since_s in self._missing_s.items():
            if now_s - since_s >= _QUARANTINE_S:
                try:
                    await self._api.get(NODES, "", name)
                except NotFoundError:
                    found.append(name)
        return found

    async def _end_all(self, keys: Iterable[tuple[str, str]], why: tuple[str, str] | None = None) -> None:
        items = [item for key in list(keys) if (item := self._pods.get(*key)) is not None]
        for start in range(0, len(items), _AT_ONCE):
            await asyncio.gather(*(self._end(item, why) for item in items[start : start + _AT_ONCE]))

    async def _end(self, item: Item, why: tuple[str, str] | None) -> None:
        try:
            await self._mark(item, why)
            await self._api.delete(PODS, item.namespace, item.name, Deletion(grace_s=0, uid=item.uid))
        except NotFoundError:
            return
        except ShoalError as error:
            _log.info("%s: %s/%s: %s; at the next look", self.name, item.namespace, item.name, error)

    async def _mark(self, item: Item, why: tuple[str, str] | None) -> None:
        pod = item.obj()
        if (pod.get("status") or {}).get("phase") in TERMINAL_PHASES:
            return
        status: dict[str, object] = {"phase": "Failed"}
        conditions = with_condition(pod, *why, self._context.clock.text()) if why is not None else None
        if conditions is not None:
            status["conditions"] = conditions
        body = {"metadata": {"uid": item.uid, "resourceVersion": str(item.version)}, "status": status}
        await self._api.patch(PODS, item.namespace, item.name, Patch("merge", body), "status")
