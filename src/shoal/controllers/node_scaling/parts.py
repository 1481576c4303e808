"""Holds what all parts of node scaling share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from shoal.autoscale.node_claims.claim import NodeClaim
from shoal.autoscale.node_claims.offering_failures import OfferingFailures
from shoal.autoscale.node_claims.pool_refusals import PoolRefusals
from shoal.autoscale.nodes.instance_types import InstanceType
from shoal.client.context import Context
from shoal.client.item import Item
from shoal.cloud.port import Cloud
from shoal.controllers.node_scaling.claim_events import claim_reference
from shoal.controllers.node_scaling.claim_writer import ClaimWriter
from shoal.controllers.node_scaling.figures import NodeScalingObserver
from shoal.controllers.node_scaling.pools import node_class_of


class ScalingParts(msgspec.Struct, frozen=True):
    context: Context
    cloud: Cloud
    writer: ClaimWriter
    failures: OfferingFailures
    observer: NodeScalingObserver
    refusals: PoolRefusals = msgspec.field(default_factory=PoolRefusals)

    def usable(self, pool: Item, types: Iterable[InstanceType]) -> dict[str, InstanceType]:
        """The types of the pool by name; offerings that plans avoid now are not available."""
        now_s = self.context.clock.seconds()
        left = self.failures.applied(types, now_s)
        return {one.name: one for one in self.refusals.applied(pool.name, node_class_of(pool), left, now_s)}

    def say(self, claim: NodeClaim, reason: str, words: str, *, is_normal: bool = True) -> None:
        """Record an Event of the NodeClaim."""
        type_: Literal["Normal", "Warning"] = "Normal" if is_normal else "Warning"
        self.context.events.record(claim_reference(claim), reason, words, type_=type_)
