"""Deletes pods that do not tolerate a NoExecute taint of their node, after their toleration time.

The time counts from when this process first saw the pod together with the taints. It starts again when all taints were
removed meanwhile or when another process takes over, as in Kubernetes, which does not store it either. Pods on nodes
without such taints cost one look-up in a small table.
"""

from __future__ import annotations

import msgspec

from shoal.api.partial import DeletionMeta
from shoal.client.bound_pods import node_of, pods_by_node, with_condition
from shoal.client.context import Context, Controller
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import NODES, PODS
from shoal.client.loop import Loop
from shoal.client.node_health import NodeFacts, Taint
from shoal.client.port import Deletion, Patch
from shoal.client.refusals import NotFoundError
from shoal.embedded.controllers.taint_eviction.toleration_time import FOR_EVER, Toleration, toleration_time_s

_REASON, _WORDS = "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"


class _ToleratingPodSpec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""
    tolerations: tuple[Toleration, ...] | None = None


class _ToleratingPod(msgspec.Struct, gc=False):
    metadata: DeletionMeta
    spec: _ToleratingPodSpec


def taint_eviction_controller(context: Context) -> Controller:
    return _Eviction(context).loop


class _Eviction:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._events = context.events.named("taint-eviction-controller")
        self._pods = context.informers.of(PODS)
        self._by_node = pods_by_node(context.informers)
        self._tainted: dict[str, tuple[Taint, ...]] = {}
        self._since: dict[Key, tuple[str, float]] = {}
        """Pods with a toleration time: the uid, and the start of that time."""
        self.loop = Loop(context, self._reconcile, workers=8)
        self.loop.need(NODES, PODS)
        context.informers.of(NODES).on_change(self._node_changed)
        self._pods.on_change(self._pod_changed)

    def _node_changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is None:
            return
        name = item.name
        taints = after.read(NodeFacts).taints if after is not None else ()
        found = tuple(one for one in taints if one.effect == "NoExecute")
        if found == self._tainted.get(name, ()):
            return
        if found:
            self._tainted[name] = found
        else:
            self._tainted.pop(name, None)
        for pod in self._by_node[name]:
            self.loop.wake(pod.key)

    def _pod_changed(self, before: Item | None, after: Item | None) -> None:
        if after is None:
            if before is not None:
                self._since.pop(before.key, None)
        elif self._tainted and node_of(after) in self._tainted:
            self.loop.wake(after.key)

    async def _reconcile(self, key: Key) -> float | None:
        item = self._pods.get(*key)
        if item is None:
            self._since.pop(key, None)
            return None
        pod = item.read(_ToleratingPod)
        taints = self._tainted.get(pod.spec.node_name, ())
        if pod.metadata.deletion_timestamp is not None:
            return None
        if not taints:
            if self._since.pop(key, None) is not None:
                self._report(item, "Cancelling deletion of Pod")
            return None
        left_s = toleration_time_s(pod.spec.tolerations or (), taints)
        if left_s == FOR_EVER:
            self._since.pop(key, None)
            return None
        now_s = self._context.clock.seconds()
        uid, since_s = self._since.get(key, ("", now_s))
        if uid != item.uid:
            since_s = now_s
            self._since[key] = (item.uid, since_s)
        due_s = since_s + left_s - now_s
        if due_s > 0:
            return due_s
        await self._evict(item)
        return None

    async def _evict(self, item: Item) -> None:
        api, pod = self._context.api, item.obj()
        conditions = with_condition(pod, _REASON, _WORDS, self._context.clock.text())
        self._report(item, "Marking for deletion Pod")
        try:
            if conditions is not None:
                meta = {"uid": item.uid, "resourceVersion": str(item.version)}
                body = {"metadata": meta, "status": {"conditions": conditions}}
                await api.patch(PODS, item.namespace, item.name, Patch("merge", body), "status")
            await api.delete(PODS, item.namespace, item.name, Deletion(uid=item.uid))
        except NotFoundError:
            return
        self._since.pop(item.key, None)

    def _report(self, item: Item, words: str) -> None:
        meta = {"name": item.name, "namespace": item.namespace, "uid": item.uid}
        about: Obj = {"kind": "Pod", "apiVersion": "v1", "metadata": meta}
        self._events.record(about, "TaintManagerEviction", f"{words} {item.namespace}/{item.name}")
