"""Decodes the parts of a node that decide whether its pods can stay: conditions, taints, zone. Results are cached,
because they are read often.
"""

from __future__ import annotations

import msgspec


class NodeHeartbeatCondition(msgspec.Struct, rename="camel", frozen=True, gc=False):
    type: str
    status: str = "Unknown"
    last_heartbeat_time: str | None = None


class Taint(msgspec.Struct, rename="camel", frozen=True, gc=False):
    key: str
    effect: str = ""
    value: str = ""


class _NodeHealthStatus(msgspec.Struct, gc=False):
    conditions: tuple[NodeHeartbeatCondition, ...] | None = None


class _NodeHealthSpec(msgspec.Struct, gc=False):
    taints: tuple[Taint, ...] | None = None
    unschedulable: bool = False


class _NodeHealthMeta(msgspec.Struct, rename="camel", gc=False):
    creation_timestamp: str = ""
    labels: dict[str, str] | None = None


class NodeFacts(msgspec.Struct, gc=False):
    """The conditions, taints and zone of a node."""

    metadata: _NodeHealthMeta
    spec: _NodeHealthSpec = msgspec.field(default_factory=_NodeHealthSpec)
    status: _NodeHealthStatus = msgspec.field(default_factory=_NodeHealthStatus)

    @property
    def conditions(self) -> dict[str, NodeHeartbeatCondition]:
        return {one.type: one for one in self.status.conditions or ()}

    @property
    def taints(self) -> tuple[Taint, ...]:
        return self.spec.taints or ()

    @property
    def zone(self) -> str:
        labels = self.metadata.labels or {}
        return f"{labels.get('topology.kubernetes.io/region', '')}:{labels.get('topology.kubernetes.io/zone', '')}"
