"""Tells which changes of Nodes and pods can change a decision about nodes. Heartbeats and containers cannot."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from shoal.client.item import Item, Seen

_NOTHING = Raw()


class _ChangedCondition(msgspec.Struct, gc=False):
    type: str = ""
    status: str = ""
    reason: str = ""


class _ChangedMeta(msgspec.Struct, gc=False, rename="camel"):
    labels: Raw = _NOTHING
    annotations: Raw = _NOTHING
    deletion_timestamp: str | None = None


class _NodeAmounts(msgspec.Struct, gc=False):
    capacity: Raw = _NOTHING
    allocatable: Raw = _NOTHING
    conditions: tuple[_ChangedCondition, ...] | None = None


class _ChangedNode(msgspec.Struct, gc=False):
    metadata: _ChangedMeta = msgspec.field(default_factory=_ChangedMeta)
    spec: Raw = _NOTHING
    status: _NodeAmounts = msgspec.field(default_factory=_NodeAmounts)


class _ChangedPodStatus(msgspec.Struct, gc=False, rename="camel"):
    phase: str = ""
    nominated_node_name: str = ""
    conditions: tuple[_ChangedCondition, ...] | None = None


class _ChangedPodSpec(msgspec.Struct, gc=False, rename="camel"):
    node_name: str = ""


class _ChangedPod(msgspec.Struct, gc=False):
    metadata: _ChangedMeta = msgspec.field(default_factory=_ChangedMeta)
    spec: _ChangedPodSpec = msgspec.field(default_factory=_ChangedPodSpec)
    status: _ChangedPodStatus = msgspec.field(default_factory=_ChangedPodStatus)

    def scheduled(self) -> tuple[tuple[str, str], ...]:
        conditions = self.status.conditions or ()
        return tuple((one.status, one.reason) for one in conditions if one.type == "PodScheduled")


_nodes, _pods = Seen(_ChangedNode), Seen(_ChangedPod)


def is_relevant_node(before: Item | None, after: Item | None) -> bool:
    if before is None or after is None:
        return True
    return _node_mark(_nodes(before)) != _node_mark(_nodes(after))


def is_relevant_pod(before: Item | None, after: Item | None) -> bool:
    if before is None or after is None:
        return True
    return _pod_mark(_pods(before)) != _pod_mark(_pods(after))


def _node_mark(node: _ChangedNode) -> tuple[object, ...]:
    meta, status = node.metadata, node.status
    conditions = tuple((one.type, one.status) for one in status.conditions or ())
    raw = (meta.labels, meta.annotations, node.spec, status.capacity, status.allocatable)
    return (*map(bytes, raw), meta.deletion_timestamp, conditions)


def _pod_mark(pod: _ChangedPod) -> tuple[object, ...]:
    meta, status = pod.metadata, pod.status
    raw = bytes(meta.labels), bytes(meta.annotations)
    return (
        *raw,
        meta.deletion_timestamp,
        pod.spec.node_name,
        status.phase,
        status.nominated_node_name,
        pod.scheduled(),
    )
