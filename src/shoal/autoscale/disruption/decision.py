"""Represents what a search for nodes to disrupt decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from shoal.autoscale.nodes.plan import NewNode

DisruptionMethod = Literal["emptiness", "drift", "multi", "single", "expiry"]
DisruptionAction = Literal["none", "delete", "replace"]


class DisruptionDecision(msgspec.Struct, frozen=True):
    """Nodes to remove, and the nodes that replace them first."""

    method: DisruptionMethod
    action: DisruptionAction = "none"
    nodes: tuple[str, ...] = ()
    replacements: tuple[NewNode, ...] = ()
    saved: float = 0.0
    """Per hour."""
    why: str = ""
    kept: Mapping[str, str] = {}
    """Nodes that may not be disrupted, and why."""
