"""Requests nodes from another autoscaler, such as Karpenter, by placeholder pods: one for each node of Shoal's plan.

The pods that wait are not `Unschedulable` in the eyes of the other autoscaler; only their placeholders are. So it
provisions for whole gangs, on the machines that Shoal's plan chose. Each pass compares the placeholders that exist with
the pods that wait, so a process that is killed anywhere is continued by its successor.

Nothing is created while no other autoscaler is known to run, and nothing is done before all objects are known.

Rejected: placeholders that run on the new node until the pods come. They would take the GPUs, and each of them would
have to be evicted first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from shoal.api.pod import Pod
from shoal.autoscale.node_claims.offering_failures import OfferingFailures
from shoal.autoscale.nodes.gpu_instances import types_for_pool
from shoal.autoscale.nodes.plan import PlanningSettings
from shoal.autoscale.placeholders.changes import NewPlaceholder, PlaceholderChanges
from shoal.autoscale.placeholders.placeholder import (
    PLACEHOLDER,
    WAITS_FOR_NODES,
    Placeholder,
    placeholder_object,
    placeholder_of,
)
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import NODE_CLAIMS, NODE_POOLS
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import NODES, PODS, Kind
from shoal.client.loop import Loop
from shoal.client.port import Deletion, Patch
from shoal.client.presence import Presence
from shoal.client.refusals import AlreadyExistsError, NotFoundError
from shoal.client.served import Served
from shoal.controllers.node_scaling.claim_events import pod_reference, pool_reference
from shoal.controllers.node_scaling.cluster_state import ScalingState, unschedulable
from shoal.controllers.node_scaling.computations import Computations
from shoal.controllers.node_scaling.pools import mode_of
from shoal.controllers.node_scaling.relevant_changes import is_relevant_node, is_relevant_pod
from shoal.store.node_planning import ScalingOptions, undecided_scaling

_log = logging.getLogger("shoal.nodes")
_PASS: Final[Key] = ("", "pass")
_GATHER_S: Final = 1.0
"""Pods are often created one after the other; they are planned together."""
_PROMPT_S: Final = 0.1
"""A placeholder whose pod has a node must go before the other autoscaler plans again."""
_EVERY_S: Final = 10.0
_MOST_TOLD: Final = 50


class _PlaceholderMeta(msgspec.Struct):
    labels: dict[str, str] = {}


class _PlaceholderSpec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _PlaceholderPod(msgspec.Struct):
    metadata: _PlaceholderMeta = msgspec.field(default_factory=_PlaceholderMeta)
    spec: _PlaceholderSpec = msgspec.field(default_factory=_PlaceholderSpec)


class PlaceholderPods:
    def __init__(
        self,
        context: Context,
        served: Served,
        schedulers: frozenset[str],
        others: Sequence[Presence],
        namespace: str,
    ) -> None:
        """`others`: the autoscalers that provision nodes. `namespace`: of the placeholder pods."""
        self.name = context.name
        self._context = context
        self._served = served
        self._schedulers = schedulers
        self._others = others
        self._namespace = namespace
        self._loop = Loop(context, self._reconcile, workers=1)
        self._failures = OfferingFailures()
        self._computations = Computations()
        self._found = asyncio.Event()
        self._pools = NODE_POOLS
        self._state: ScalingState | None = None
        self._unseen: dict[str, Placeholder] = {}
        """By name: placeholders that were created and that the cache does not show yet."""
        served.when_there(NODE_POOLS, self._start, NODE_POOLS._replace(version="v1beta1"))

    async def run(self) -> None:
        """Until cancelled. Nothing is read before the server has NodePools."""
        await self._found.wait()
        await self._context.informers.synced((self._pools, NODE_CLAIMS, NODES, PODS))
        watching = [asyncio.ensure_future(one.run(self._wake)) for one in self._others]
        try:
            for one in self._others:
                await one.look()
            await self._loop.run()
        finally:
            for task in watching:
                task.cancel()
            self._computations.close()

    def _start(self, kind: Kind) -> None:
        self._pools = kind
        self._loop.need(kind, NODE_CLAIMS, NODES, PODS)
        for each in (kind, NODE_CLAIMS):
            self._context.informers.of(each).on_change(lambda _before, _after: self._wake())
        self._found.set()
        self._wake()

    def _wake(self) -> None:
        self._loop.wake(_PASS, _GATHER_S)

    def _node_changed(self, before: Item | None, after: Item | None) -> None:
        if is_relevant_node(before, after):
            self._wake()

    def _pod_changed(self, before: Item | None, after: Item | None) -> None:
        if is_relevant_pod(before, after):
            has_node = after is None or bool(after.read(_PlaceholderPod).spec.node_name)
            self._loop.wake(_PASS, _PROMPT_S if has_node else _GATHER_S)

    # -- one pass -----------------------------------------------------------------------------------------------------

    async def _reconcile(self, _: Key) -> float | None:
        pools = {item.name: item for item in self._context.informers.of(self._pools)}
        state = await self._ready_state()
        state.refresh()
        present = await self._present()
        inventory = state.inventory()
        waiting = unschedulable(inventory, WAITS_FOR_NODES)
        if not (present or waiting):
            return None
        now_s = self._context.clock.seconds()
        options = ScalingOptions(
            lambda pool, zones: self._failures.applied(types_for_pool(pool, zones), now_s),
            self._context.clock.now(),
            PlanningSettings(packing="LeastCost"),
        )
        given = undecided_scaling(inventory, state.cluster, waiting, {}, options)[1]
        active = {name for name, item in pools.items() if mode_of(item) == "active"}
        given = msgspec.structs.replace(given, pools=tuple(each for each in given.pools if each.name in active))
        changes = await self._computations.placeholders(given, present, now_s)
        await self._delete(changes, pools)
        if any(one.is_there for one in self._others):
            for new in changes.create:
                await self._create(new, pools, waiting)
        self._tell_refused(changes, waiting)
        return _EVERY_S

    async def _ready_state(self) -> ScalingState:
        if self._state is None:
            self._state = ScalingState(self._context, self._served, self._schedulers, self._pools, self._wake)
            await self._state.synced()
            self._context.informers.of(NODES).on_change(self._node_changed)
            self._context.informers.of(PODS).on_change(self._pod_changed)
        return self._state

    async def _present(self) -> list[Placeholder]:
        """Those that exist. One that was changed is deleted; one whose creator was killed before it wrote the
        condition gets it."""
        found: dict[str, Placeholder] = {}
        for item in list(self._context.informers.of(PODS)):
            if item.namespace != self._namespace or PLACEHOLDER not in item.read(_PlaceholderPod).metadata.labels:
                continue
            raw = item.obj()
            if raw["metadata"].get("deletionTimestamp"):
                continue
            placeholder = placeholder_of(raw)
            if placeholder is None:
                await self._remove(item.name, item.uid)
                continue
            found[item.name] = placeholder
            if not any(each["type"] == "PodScheduled" for each in (raw.get("status") or {}).get("conditions") or ()):
                await self._refuse(item)
        for name in found:
            self._unseen.pop(name, None)
        return [*found.values(), *self._unseen.values()]

    async def _create(self, new: NewPlaceholder, pools: Mapping[str, Item], waiting: Mapping[str, Pod]) -> None:
        placeholder, node = new.placeholder, new.node
        if (pool := pools.get(placeholder.pool)) is None:
            return
        raw = {"apiVersion": self._pools.api_version, **pool.obj()}
        obj = placeholder_object(placeholder, self._namespace, raw, node.launch, new.pods)
        try:
            item = await self._context.api.create(PODS, obj)
        except AlreadyExistsError:
            # Its deletion has not ended, or the cache does not show it yet.
            return
        self._unseen[item.name] = msgspec.structs.replace(placeholder, uid=item.uid)
        await self._refuse(item)
        place = f"{node.launch.name} in {node.offering.zone} ({node.offering.capacity_type})"
        by = f"by placeholder pod {self._namespace}/{item.name}"
        words = f"{place} is requested for {len(node.pods)} pods {by}, ${node.price:,.2f} per hour"
        self._context.events.record(pool_reference(pool), "CapacityRequested", words)
        for key in node.pods[:_MOST_TOLD]:
            if (pod := waiting.get(key)) is not None:
                self._tell(pod, "CapacityRequested", f"a {place} of pool {placeholder.pool} is requested {by}")

    async def _refuse(self, item: Item) -> None:
        """What a scheduler would write: other autoscalers act on it."""
        condition: Obj = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "the pod requests a node that Shoal's plan needs; it is never placed",
            "lastTransitionTime": self._context.clock.text(),
        }
        body = {"metadata": {"uid": item.uid}, "status": {"conditions": [condition]}}
        await self._context.api.patch(PODS, *item.key, Patch("strategic", body), "status")

    async def _delete(self, changes: PlaceholderChanges, pools: Mapping[str, Item]) -> None:
        for each in changes.delete:
            if each.uid:
                await self._remove(each.name, each.uid)
                self._unseen.pop(each.name, None)
        for each in changes.given_up:
            self._failures.note_failure(each.offer, self._context.clock.seconds())
            kind, zone, capacity = each.offer
            words = (
                f"no node came for placeholder pod {each.name}: {kind} in {zone} ({capacity}) is avoided for a while"
            )
            _log.warning("%s", words)
            if (pool := pools.get(each.pool)) is not None:
                self._context.events.record(pool_reference(pool), "PlaceholderGivenUp", words, type_="Warning")

    async def _remove(self, name: str, uid: str) -> None:
        try:
            await self._context.api.delete(PODS, self._namespace, name, Deletion(grace_s=0, uid=uid))
        except NotFoundError:
            return

    def _tell_refused(self, changes: PlaceholderChanges, waiting: Mapping[str, Pod]) -> None:
        for refusal in changes.refused[:_MOST_TOLD]:
            if (pod := waiting.get(refusal.pod)) is not None:
                by_pool = "; ".join(f"pool {pool}: {why}" for pool, why in sorted(refusal.by_pool.items()))
                words = f"no node is requested: {by_pool or refusal.reason}"
                self._tell(pod, "NotProvisioned", words, is_normal=False)

    def _tell(self, pod: Pod, reason: str, words: str, *, is_normal: bool = True) -> None:
        about = pod_reference(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)
        self._context.events.record(about, reason, words, type_="Normal" if is_normal else "Warning")
