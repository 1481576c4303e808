"""Holds what all parts of node scaling share."""

from __future__ import annotations

from typing import Literal

import msgspec

from shoal.autoscale.node_claims.claim import NodeClaim
from shoal.autoscale.node_claims.offering_failures import OfferingFailures
from shoal.client.context import Context
from shoal.cloud.port import Cloud
from shoal.controllers.node_scaling.claim_events import claim_reference
from shoal.controllers.node_scaling.claim_writer import ClaimWriter
from shoal.controllers.node_scaling.figures import NodeScalingObserver


class ScalingParts(msgspec.Struct, frozen=True):
    context: Context
    cloud: Cloud
    writer: ClaimWriter
    failures: OfferingFailures
    observer: NodeScalingObserver

    def say(self, claim: NodeClaim, reason: str, words: str, *, is_normal: bool = True) -> None:
        """Record an Event of the NodeClaim."""
        type_: Literal["Normal", "Warning"] = "Normal" if is_normal else "Warning"
        self.context.events.record(claim_reference(claim), reason, words, type_=type_)
