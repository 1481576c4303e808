"""Reads what a scheduler profile adds to its pods: the policy and the added affinity."""

from __future__ import annotations

import msgspec
from msgspec import structs

from shoal.api.node_affinity import NodeAffinity
from shoal.engine.asks import Ask


class PodProfile(msgspec.Struct, frozen=True):
    name: str = ""
    """The name of the placement profile; empty: the first one."""
    added: NodeAffinity | None = None

    def named(self, ask: Ask) -> Ask:
        return structs.replace(ask, profile=self.name) if self.name else ask


USUAL = PodProfile()
