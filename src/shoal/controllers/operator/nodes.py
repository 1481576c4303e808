"""Labels the nodes with GPUs, and records on each how far its components are.

The stages are an annotation of the node, so that everyone who may read nodes sees why a node has no GPUs yet. Without a
policy the labels are removed from the nodes that have this annotation.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from shoal.client.context import Context
from shoal.client.item import Item, Key
from shoal.client.kind import NODES, PODS
from shoal.client.loop import Loop
from shoal.client.port import Patch
from shoal.client.slim_informer import SlimInformer
from shoal.controllers.operator.active_policy import ActivePolicy, SharedPolicy
from shoal.controllers.operator.owned_objects import OURS
from shoal.controllers.operator.policies import about
from shoal.controllers.operator.views import STAGES, CachedOperandPod, OperatedNode, node_of, operand_pod, seen_node
from shoal.operator.components.node_labels import label_changes, placing_labels, removed_labels
from shoal.operator.progress.node_stages import NodeSight, NodeStages, node_stages

_INDEX = "node"
FOUND = "shoal.dev/former-gpu-labels"
"""An annotation of a node: the labels that it had before the operator, which stay when the policy is deleted."""
_GATHER_S = 2.0
"""The delay that combines the changes of the pods of a node."""


class OperatedNodes:
    """`facts_changed` is called when a node changes in something that decides about the objects of the components."""

    def __init__(self, context: Context, namespace: str, facts_changed: Callable[[], None]) -> None:
        self.policy = SharedPolicy(self._wake_all)
        self.loop = Loop(context, self._reconcile)
        self.pods = SlimInformer(
            context.api,
            PODS,
            context.clock,
            context.draw,
            CachedOperandPod,
            OURS,
            namespace,
            context.informers.outage,
        )
        self.nodes = SlimInformer(
            context.api, NODES, context.clock, context.draw, OperatedNode, outage=context.informers.outage
        )
        self.pods.on_change(self._pod_changed)
        self._context = context
        self._facts_changed = facts_changed
        self._warned: dict[str, str] = {}
        self.nodes.on_change(self._node_changed)

    def all(self) -> list[OperatedNode]:
        return [seen_node(one) for one in self.nodes]

    def _node_changed(self, before: Item | None, after: Item | None) -> None:
        old = seen_node(before) if before is not None else None
        new = seen_node(after) if after is not None else None
        # The heartbeats of nodes change nothing here.
        if old == new:
            return
        if (old.facts() if old else None) != (new.facts() if new else None):
            self._facts_changed()
        if new is not None:
            self.loop.wake(("", new.metadata.name))

    def _pod_changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        for name in () if item is None else node_of(item):
            self.loop.wake(("", name), _GATHER_S)

    def _wake_all(self) -> None:
        for item in self.nodes:
            self.loop.wake(item.key)

    async def _reconcile(self, key: Key) -> None:
        item = self.nodes.get(*key)
        if item is None or not self.policy.is_known:
            return
        node, policy = seen_node(item), self.policy.now
        labels: dict[str, str | None]
        if policy is None:
            has_ours = STAGES in node.metadata.annotations
            kept = (node.metadata.annotations.get(FOUND) or "").split()
            labels = removed_labels(node.facts(), kept) if has_ours else {}
            annotations: dict[str, str | None] = {name: None for name in (STAGES, FOUND) if has_ours}
        else:
            labels = self._labels(item, node, policy)
            annotations = self._stages(item, node, policy)
        if labels or annotations:
            meta = {"uid": item.uid} | ({"labels": labels} if labels else {})
            meta |= {"annotations": annotations} if annotations else {}
            self.nodes.learn(await self._context.api.patch(NODES, "", item.name, Patch("merge", {"metadata": meta})))

    def _labels(self, item: Item, node: OperatedNode, policy: ActivePolicy) -> dict[str, str | None]:
        changes = label_changes(node.facts(), policy.spec, policy.pool_of(item.name))
        if changes.warning != self._warned.get(item.name, ""):
            self._warned[item.name] = changes.warning
            if changes.warning:
                self._context.events.record(
                    about(NODES, item), "UnknownWorkloadConfig", changes.warning, type_="Warning"
                )
        return changes.labels

    def _stages(self, item: Item, node: OperatedNode, policy: ActivePolicy) -> dict[str, str | None]:
        before = node.stages()
        if not node.facts().has_gpus:
            return {STAGES: None} if STAGES in node.metadata.annotations else {}
        pods = (operand_pod(one) for one in self.pods.index(_INDEX, node_of)[item.name])
        sight = NodeSight(
            node.metadata.labels,
            node.metadata.creation_timestamp,
            node.has_resources(),
            tuple(one for one in pods if one is not None),
        )
        after = node_stages(sight, policy.components, before or NodeStages(), self._context.clock.text())
        if after == before:
            return {}
        self._tell(item, before or NodeStages(), after)
        found = "" if before is not None else " ".join(placing_labels(node.facts()))
        return {STAGES: msgspec.json.encode(after).decode(), **({FOUND: found} if found else {})}

    def _tell(self, item: Item, before: NodeStages, after: NodeStages) -> None:
        if after.state == "failed" and (before.layer, before.message) != (after.layer, after.message):
            words = f"layer {after.layer}: {after.message}"
            self._context.events.record(about(NODES, item), "GPULayerFailed", words, type_="Warning")
        if after.state == "ready" and before.stages and before.state != "ready":
            self._context.events.record(about(NODES, item), "GPULayersReady", "all GPU layers of the node are ready")
