"""Keeps conditions of NodeClaims that removals depend on: whether a node has drifted, and whether it was quiet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from shoal.api.node import Node
from shoal.autoscale.node_claims.claim import CONSOLIDATABLE, DRIFTED, INITIALIZED, POOL_HASH, NodeClaim
from shoal.autoscale.node_claims.claim_objects import pool_hash
from shoal.autoscale.nodes.pools import NodePool
from shoal.autoscale.requirements.requirement_set import requirements_of_labels
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import NODE_CLAIMS
from shoal.client.item import Item
from shoal.client.kind import PODS
from shoal.client.kubelet.pod_facts import nodes_of
from shoal.client.kubelet.times import written
from shoal.controllers.node_scaling.claim_writer import ClaimWriter, SetCondition

_LEAST_APART_S: Final = 10.0


class ClaimConditions:
    def __init__(self, context: Context, writer: ClaimWriter) -> None:
        self._context = context
        self._writer = writer
        self._claims = context.informers.of(NODE_CLAIMS)
        self._last_event_s: dict[str, float] = {}
        """By node: when a pod came or went."""
        self._is_following = False

    def follow_pods(self) -> None:
        """From now on; pods that are there already are no event."""
        self._context.informers.of(PODS).on_change(self._pod_changed)
        self._is_following = True

    def _pod_changed(self, before: Item | None, after: Item | None) -> None:
        if not self._is_following:
            return
        were = nodes_of(before) if before is not None else ()
        are = nodes_of(after) if after is not None else ()
        if were != are:
            now_s = self._context.clock.seconds()
            for name in {*were, *are}:
                self._last_event_s[name] = now_s

    async def refresh(
        self,
        claims: Sequence[NodeClaim],
        nodes: Mapping[str, Node],
        pools: Mapping[str, NodePool],
        pool_items: Mapping[str, Item],
    ) -> float | None:
        """Write the conditions of nodes that have started. `nodes` by name. Returns the seconds until the first of them
        would have been quiet for long enough.
        """
        soonest: list[float] = []
        now_s = self._context.clock.seconds()
        hashes = {name: pool_hash(item.obj()) for name, item in pool_items.items()}
        for claim in claims:
            node, pool = nodes.get(claim.node), pools.get(claim.pool)
            if node is None or pool is None or claim.is_deleting or not claim.has(INITIALIZED):
                continue
            last_s = self._last_event_s.get(claim.node, claim.since_s(INITIALIZED))
            after_s = pool.disruption.consolidate_after_s
            changed: list[SetCondition] = [_drifted(claim, node, pool, hashes.get(claim.pool, ""))]
            is_quiet = after_s is not None and now_s - last_s >= after_s
            if after_s is not None and not is_quiet:
                soonest.append(last_s + after_s - now_s)
            changed.append((CONSOLIDATABLE, "True" if is_quiet else "False", "Quiet" if is_quiet else "Used", ""))
            await self._writer.set_conditions(claim.name, changed, self._last_event(claim, last_s))
        return min(soonest, default=None)

    def _last_event(self, claim: NodeClaim, last_s: float) -> dict[str, str]:
        item = self._claims.get("", claim.name)
        before = None if item is None else (item.obj().get("status") or {}).get("lastPodEventTime")
        if before and last_s - datetime.fromisoformat(before).timestamp() < _LEAST_APART_S:
            return {}
        return {"lastPodEventTime": written(last_s)}


def _drifted(claim: NodeClaim, node: Node, pool: NodePool, wanted_hash: str) -> SetCondition:
    """By the fields of the pool that labels do not show, then by the labels."""
    had = claim.annotations.get(POOL_HASH, "")
    if had and wanted_hash and had != wanted_hash:
        return (DRIFTED, "True", "NodePoolDrifted", "the template of its NodePool has changed")
    labels = requirements_of_labels(node.metadata.labels)
    for key, admitted in pool.requirements.items():
        if key in labels and not labels.get(key).is_compatible(admitted):
            return (DRIFTED, "True", "RequirementsDrifted", f"label {key} is not what its NodePool requires any more")
    return (DRIFTED, "False", "NotDrifted", "")
