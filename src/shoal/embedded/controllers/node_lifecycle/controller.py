"""Detects nodes without heartbeats; sets their conditions and taints, and marks their pods as not ready.

Every five seconds it checks the last heartbeat of each node. Healthy nodes cost nothing else: a heartbeat updates two
floats and causes no reconciliation. A node is reconciled when its status changes, and when its heartbeats stop. The
writes follow from the current node alone, so that a new process can continue after a crash at any point; it gives each
node one more grace period, because it has seen no heartbeat yet.
"""

from __future__ import annotations

import asyncio
from typing import Literal

from shoal.api.partial import PartialPod
from shoal.client.bound_pods import pods_by_node
from shoal.client.context import Context
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import LEASES, NODES, PODS
from shoal.client.loop import Loop
from shoal.client.node_health import NodeFacts
from shoal.client.refusals import NotFoundError
from shoal.embedded.controllers.node_lifecycle.heartbeats import Beat, Heartbeats
from shoal.embedded.controllers.node_lifecycle.marks import (
    evicting,
    evicting_for,
    silenced,
    unschedulable_for,
    with_taints,
)
from shoal.embedded.controllers.node_lifecycle.zones import Zones

_EVERY_S = 5.0
_LEASE_NAMESPACE = "kube-node-lease"


def node_lifecycle_controller(context: Context) -> NodeLifecycle:
    return NodeLifecycle(context)


class NodeLifecycle:
    def __init__(self, context: Context) -> None:
        self.name = context.name
        self._context = context
        self._api = context.api
        self._clock = context.clock
        self._events = context.events.named("node-controller")
        self._nodes = context.informers.of(NODES)
        self._beats = Heartbeats()
        self._zones = Zones()
        self._shown: dict[str, tuple[object, ...]] = {}
        """The fields of each node at its last reconciliation."""
        self._pods = UnreadyPods(context)
        self._loop = Loop(context, self._reconcile, workers=8)
        self._loop.need(NODES, LEASES)
        self._nodes.on_change(self._node_changed)
        context.informers.of(LEASES).on_change(self._lease_changed)

    async def run(self) -> None:
        """Runs until cancelled."""
        await self._context.informers.synced((NODES, LEASES))
        async with asyncio.TaskGroup() as group:
            group.create_task(self._loop.run())
            group.create_task(self._watch_over())

    # -- event handlers
    # ---------------------------------------------------------------------------------------------------

    def _node_changed(self, before: Item | None, after: Item | None) -> None:
        if after is None:
            if before is not None:
                self._beats.forget(before.name)
                self._shown.pop(before.name, None)
                self._report(before.name, before.uid, "RemovingNode", f"Removing Node {before.name} from Controller")
            return
        facts = after.read(NodeFacts)
        is_new = after.name not in self._beats.beats
        self._beats.node(after, facts, self._clock.seconds())
        if is_new:
            self._report(after.name, after.uid, "RegisteredNode", f"Registered Node {after.name} in Controller")
        shown = (after.uid, facts.taints, facts.spec.unschedulable, _statuses(facts))
        if self._shown.get(after.name) != shown:
            self._shown[after.name] = shown
            self._loop.wake(("", after.name))

    def _lease_changed(self, _before: Item | None, after: Item | None) -> None:
        if after is not None and after.namespace == _LEASE_NAMESPACE:
            self._beats.lease(after, self._clock.seconds())

    # -- reconcile
    # ------------------------------------------------------------------------------------------------------

    async def _watch_over(self) -> None:
        looked_s = self._clock.seconds()
        while True:
            now_s = self._clock.seconds()
            # Heartbeats during a suspension or overload of this process are not missing.
            self._beats.pardon(max(now_s - looked_s - _EVERY_S, 0.0), now_s)
            looked_s = now_s
            self._look()
            await self._clock.sleep(_EVERY_S)

    def _look(self) -> None:
        now_s = self._clock.seconds()
        beats = self._beats.beats
        if self._zones.look(beats.values()):
            if not self._zones.all_disrupted:
                self._beats.forgive(now_s)
            for name in beats:
                self._loop.wake(("", name))
        for name, beat in beats.items():
            if beat.ready != "Unknown" and beat.is_silent(now_s):
                self._loop.wake(("", name))

    async def _reconcile(self, key: Key) -> float | None:
        item, beat = self._nodes.get(*key), self._beats.beats.get(key[1])
        if item is None or beat is None:
            return None
        facts = item.read(NodeFacts)
        ready = facts.conditions.get("Ready")
        if beat.is_silent(self._clock.seconds()) and (ready is None or ready.status != "Unknown"):
            item = await self._silence(item, was_ready=ready is not None and ready.status == "True")
            facts = item.read(NodeFacts)
            ready = facts.conditions.get("Ready")
        if ready is not None and ready.status == "Unknown":
            await self._pods.mark(item.name)
        return await self._taint(item, facts, beat)

    async def _silence(self, item: Item, *, was_ready: bool) -> Item:
        obj = item.obj()
        status = obj.setdefault("status", {})
        created = obj["metadata"]["creationTimestamp"]
        status["conditions"] = silenced(status.get("conditions") or [], created, self._clock.text())
        written = await self._api.update(NODES, obj, "status")
        if was_ready:
            self._report(item.name, item.uid, "NodeNotReady", f"Node {item.name} status is now: NodeNotReady", says="")
        return written

    async def _taint(self, item: Item, facts: NodeFacts, beat: Beat) -> float | None:
        """Updates the taints; returns the time until the node may get the NoExecute taint."""
        has, wanted = evicting(facts), evicting_for(facts)
        again_s: float | None = None
        no_execute = {wanted} if wanted else set()
        if wanted and self._zones.all_disrupted:
            no_execute = set()
        elif wanted and not has:
            wait_s = self._zones.wait_s(beat.zone, self._clock.seconds())
            if wait_s > 0:
                no_execute, again_s = set(), wait_s
        obj = item.obj()
        present = obj.setdefault("spec", {}).get("taints") or []
        taints = with_taints(present, unschedulable_for(facts), no_execute, self._clock.text())
        if taints != present:
            obj["spec"]["taints"] = taints
            await self._api.update(NODES, obj)
        return again_s

    def _report(
        self, node: str, uid: str, reason: str, words: str, *, says: Literal["", "event: "] = "event: "
    ) -> None:
        about = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": node, "uid": uid}}
        self._events.record(about, reason, f"Node {node} {says}{words}" if says else words)


def _statuses(facts: NodeFacts) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((one.type, one.status) for one in facts.conditions.values()))


_AT_ONCE = 16


class UnreadyPods:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._events = context.events.named("node-controller")
        self._by_node = pods_by_node(context.informers)

    async def mark(self, node: str) -> None:
        await self._context.informers.of(PODS).synced()
        pods = [(item, item.read(PartialPod)) for item in self._by_node[node]]
        ready = [item for item, pod in pods if pod.is_ready() and not pod.is_finished()]
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
