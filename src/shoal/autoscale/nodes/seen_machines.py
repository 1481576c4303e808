"""Remembers what nodes of a pool and instance type really are, where that differs from what was expected of the type.

A catalogue does not know how much of a machine its hypervisor, its kernel and its kubelet keep, nor how feature
discovery will name its GPUs. A pod that only the expectation serves would get one node after the other. So of a type of
which there is a node, or was one within the last hour, no more is expected than the newest of them offers, and its
labels. Devices are left to the start of nodes, which waits for all of them, and labels that the pool itself requires
to the pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace

from shoal.api.node import Node
from shoal.api.resources import amounts
from shoal.autoscale.nodes.instance_types import InstanceType
from shoal.autoscale.nodes.pools import NodePool
from shoal.autoscale.requirements.labels import INSTANCE_TYPE_LABEL, POOL_LABEL

_INITIALIZED: Final = "karpenter.sh/initialized"
_REMEMBERED_S: Final = 3600.0


class _Seen(NamedTuple):
    offered: Mapping[str, int]
    labels: Mapping[str, str]
    """Of the newest node that has started."""
    newest: Mapping[str, str]
    """The labels of the newest node: until feature discovery has run, those that were expected."""
    seen_s: float


class SeenMachines:
    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], _Seen] = {}
        """By pool and type."""

    def note(self, nodes: Iterable[Node], now_s: float) -> None:
        """The nodes that there are now."""
        newest: dict[tuple[str, str], Node] = {}
        started: dict[tuple[str, str], Node] = {}
        for node in sorted(nodes, key=_created_s):
            meta = node.metadata
            key = meta.labels.get(POOL_LABEL, ""), meta.labels.get(INSTANCE_TYPE_LABEL, "")
            if all(key):
                newest[key] = node
                if meta.labels.get(_INITIALIZED) == "true":
                    started[key] = node
        self._seen = {key: each for key, each in self._seen.items() if now_s - each.seen_s < _REMEMBERED_S}
        for key, node in newest.items():
            # A kubelet that has just registered may not have measured everything.
            offered = {name: each for name, each in amounts(node.allocatable()).items() if each and "/" not in name}
            last = started.get(key)
            known = last.metadata.labels if last is not None else self._seen[key].labels if key in self._seen else {}
            self._seen[key] = _Seen(offered, known, node.metadata.labels, now_s)

    def applied(self, pool: NodePool, types: Iterable[InstanceType]) -> tuple[InstanceType, ...]:
        """The types of the pool, as its nodes are."""
        return tuple(_applied(pool, self._seen.get((pool.name, one.name)), one) for one in types)


def _created_s(node: Node) -> float:
    created = node.metadata.creation_timestamp
    return 0.0 if created is None else created.timestamp()


def _applied(pool: NodePool, seen: _Seen | None, one: InstanceType) -> InstanceType:
    if seen is None:
        return one
    less = {
        name: one.capacity[name] - seen.offered[name]
        for name, expected in one.allocatable().items()
        if seen.offered.get(name, expected) < expected
    }
    required = {key for key, _ in pool.requirements.items()}
    expected = {key: each[0] for key, each in one.labels.items() if len(each) == 1 and key not in required}
    others = {
        key: (value,)
        for key, promised in expected.items()
        for value in (seen.labels.get(key, promised), seen.newest.get(key, promised))
        if value != promised
    }
    if not less and not others:
        return one
    return replace(one, overhead={**one.overhead, **less}, labels={**one.labels, **others})
