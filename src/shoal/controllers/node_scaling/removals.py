"""Removes nodes: carries out decisions that are found twice, replacements first, and what the cloud or a fault forces.

A decision counts once it is found again after a quarter of a minute, so that a moment between two pods of a workload
removes nothing. The nodes of a replacement are written down in its NodeClaims, so a successor of this process goes on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from shoal.api.node import Node
from shoal.autoscale.disruption.decision import DisruptionDecision
from shoal.autoscale.disruption.repair import NodeHealth, unhealthy_nodes
from shoal.autoscale.node_claims.claim import DISRUPTED, DISRUPTED_TAINT, INITIALIZED, NodeClaim
from shoal.client.item import Item
from shoal.client.kubelet.times import written
from shoal.cloud.port import CloudInstance
from shoal.controllers.node_scaling.parts import ScalingParts
from shoal.controllers.node_scaling.provisioning import Provisioning

_CONFIRMED_S: Final = 15.0


class Removals:
    def __init__(self, parts: ScalingParts, provisioning: Provisioning) -> None:
        self._context = parts.context
        self._writer = parts.writer
        self._observer = parts.observer
        self._parts = parts
        self._provisioning = provisioning
        self._found: tuple[tuple[str, ...], float] | None = None
        """The nodes of the last decision, and when it was found first."""

    @property
    def is_undecided(self) -> bool:
        """Whether a decision waits for its confirmation."""
        return self._found is not None

    async def consider(
        self, decision: DisruptionDecision | None, claims: Mapping[str, NodeClaim], pools: Mapping[str, Item]
    ) -> float | None:
        """Carry the decision out if it is confirmed. `claims` by node. Returns the seconds until it would be."""
        if decision is None or decision.action == "none" or not all(name in claims for name in decision.nodes):
            self._found = None
            return None
        now_s = self._context.clock.seconds()
        is_forced = decision.method == "expiry"
        if not is_forced and (self._found is None or self._found[0] != decision.nodes):
            self._found = decision.nodes, now_s
            return _CONFIRMED_S
        if not is_forced and self._found is not None and now_s - self._found[1] < _CONFIRMED_S:
            return self._found[1] + _CONFIRMED_S - now_s
        self._found = None
        if decision.replacements:
            for name in decision.nodes:
                self._say(claims[name], f"is replaced: {decision.why}, saves ${decision.saved:,.2f} per hour")
                await self._writer.taint_disrupted(name, is_disrupted=True)
            await self._provisioning.write_group(decision.replacements, pools, decision.nodes)
            return 1.0
        for name in decision.nodes:
            await self._delete(claims[name], decision.method, decision.why)
        return 1.0

    async def finish_replacements(self, claims: Sequence[NodeClaim], nodes: Mapping[str, Node]) -> None:
        """Delete nodes whose replacements have started, and keep those whose replacement failed. `nodes` by name."""
        by_node = {claim.node: claim for claim in claims if claim.node}
        groups: dict[str, list[NodeClaim]] = {}
        for claim in claims:
            if claim.replaces and not claim.is_deleting:
                groups.setdefault(claim.group, []).append(claim)
        replaced = {name for group in groups.values() for name in group[0].replaces}
        for group in groups.values():
            if len(group) < group[0].group_size or not all(claim.has(INITIALIZED) for claim in group):
                continue
            for name in group[0].replaces:
                old = by_node.get(name)
                if old is not None and not old.is_deleting:
                    await self._delete(old, "replaced", "its replacement has started")
        for name, claim in by_node.items():
            node = nodes.get(name)
            if node is None or claim.is_deleting or name in replaced:
                continue
            if any(taint.key == DISRUPTED_TAINT for taint in node.spec.taints):
                await self._writer.taint_disrupted(name, is_disrupted=False)

    async def shrink(self, claims: Sequence[NodeClaim], names: Collection[str]) -> None:
        """Delete nodes of static pools that have too many. `names`: as plans name nodes."""
        for claim in claims:
            if (claim.node or claim.name) in names and not claim.is_deleting:
                await self._delete(claim, "replicas", "its pool has more nodes than replicas")

    async def interrupted(self, claims: Sequence[NodeClaim], instances: Mapping[str, CloudInstance]) -> None:
        """A notice of the cloud is an eviction of the pods, which are queued again."""
        for claim in claims:
            instance = instances.get(claim.provider_id) if claim.provider_id else None
            if instance is None or instance.interrupted_s is None or claim.is_deleting:
                continue
            await self._delete(claim, "interrupted", f"the cloud takes it back at {written(instance.interrupted_s)}")

    async def repair(self, claims: Mapping[str, NodeClaim], nodes: Mapping[str, Node]) -> None:
        """Replace nodes that have been broken for long. `claims` and `nodes` by node."""
        health = [
            NodeHealth(name, claim.pool, tuple(nodes[name].status.conditions))
            for name, claim in claims.items()
            if name in nodes and claim.has(INITIALIZED) and not claim.is_deleting
        ]
        for name, why in unhealthy_nodes(health, self._context.clock.now()).items():
            await self._delete(claims[name], "unhealthy", why)

    async def _delete(self, claim: NodeClaim, reason: str, why: str) -> None:
        self._say(claim, f"is removed: {why}")
        await self._writer.set_conditions(claim.name, [(DISRUPTED, "True", reason.capitalize(), why)])
        await self._writer.delete(claim)
        self._observer.removed(claim.pool, reason)

    def _say(self, claim: NodeClaim, words: str) -> None:
        about = f"node {claim.node}" if claim.node else "the node"
        self._parts.say(claim, "Disrupted", f"{about} {words}")
