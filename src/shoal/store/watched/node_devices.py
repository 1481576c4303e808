"""Tracks the device ids of nodes, and the extended resources of their device plugins.

Nodes report frequently; the relevant parts are compared as bytes before anything is decoded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import msgspec
from msgspec import Raw

from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.engine.device_notation import UNKNOWN_IDS, NodeIds, node_ids
from shoal.engine.dra.devices import SliceFacts
from shoal.store.watched.device_ids import ids_of
from shoal.store.watched.pools import KnownPools

_NOTHING = Raw()


class _RawNodeMeta(msgspec.Struct, gc=False):
    labels: Raw = _NOTHING
    annotations: Raw = _NOTHING


class _RawNodeStatus(msgspec.Struct, gc=False):
    capacity: Raw = _NOTHING
    allocatable: Raw = _NOTHING


class _NodeDevicesHead(msgspec.Struct, gc=False):
    metadata: _RawNodeMeta = msgspec.field(default_factory=_RawNodeMeta)
    status: _RawNodeStatus = msgspec.field(default_factory=_RawNodeStatus)


class _KnownDevices(NamedTuple):
    mark: int
    ids: NodeIds
    plugins: frozenset[str]


_heads = msgspec.json.Decoder(_NodeDevicesHead)
_texts = msgspec.json.Decoder(dict[str, str] | None)
_amounts = msgspec.json.Decoder(dict[str, str | int | float] | None)


class NodeDevices:
    """`stir` is called when a resource gets its first device plugin or loses its last, and when the device ids of a
    node change.
    """

    def __init__(self, nodes: Informer, pools: KnownPools, stir: Callable[[], None]) -> None:
        self._stir = stir
        self._pools = pools
        self._renamed: set[str] = set()
        self._known: dict[str, _KnownDevices] = {}
        self._plugins: Counter[str] = Counter()
        self._shared: dict[frozenset[str], frozenset[str]] = {}
        nodes.on_change(self._changed)

    def ids(self, node: str) -> NodeIds:
        """The ids from the node's annotation, else from the slices of a driver."""
        known = self._known.get(node)
        return ids_of(known.ids if known is not None else UNKNOWN_IDS, self._pools.on(node))

    def put_piece(self, name: str, facts: SliceFacts | None) -> bool:
        """Set or remove the slice of that name; returns whether it changed."""
        nodes = {one.reach.node_name for one in (facts, self._pools.get(name)) if one is not None}
        before = {node: self.ids(node) for node in nodes if node}
        is_news = self._pools.put(name, facts)
        for node, ids in before.items():
            self._compare(node, ids)
        return is_news

    def take_renamed(self) -> set[str]:
        """Nodes whose device ids changed since the last call."""
        renamed, self._renamed = self._renamed, set()
        return renamed

    def advertised(self) -> frozenset[str]:
        """Extended resources for which some node has a device plugin."""
        return frozenset(self._plugins)

    def _changed(self, before: Item | None, after: Item | None) -> None:
        if after is None:
            if before is not None and (known := self._known.pop(before.name, None)) is not None:
                self._count(known.plugins, frozenset())
            return
        known = self._known.get(after.name)
        try:
            head = _heads.decode(after.data)
            mark = _mark(head)
            if known is None or known.mark != mark:
                before_ids = self.ids(after.name)
                self._known[after.name] = fresh = self._read(head, mark)
                self._count(known.plugins if known is not None else frozenset(), fresh.plugins)
                self._compare(after.name, before_ids)
        except msgspec.DecodeError:
            # The reader of nodes reports it; the last valid state is kept.
            return

    def _compare(self, node: str, before: NodeIds) -> None:
        if self.ids(node) != before:
            self._renamed.add(node)
            self._stir()

    def _read(self, head: _NodeDevicesHead, mark: int) -> _KnownDevices:
        status = head.status
        has = _amounts.decode(status.allocatable) if memoryview(status.allocatable) else None
        if not has and memoryview(status.capacity):
            has = _amounts.decode(status.capacity)
        plugins = frozenset(name for name, amount in (has or {}).items() if "/" in name and str(amount) != "0")
        labels, annotations = (
            (_texts.decode(raw) if memoryview(raw) else None) or {}
            for raw in (head.metadata.labels, head.metadata.annotations)
        )
        return _KnownDevices(mark, node_ids(labels, annotations), self._shared.setdefault(plugins, plugins))

    def _count(self, before: frozenset[str], after: frozenset[str]) -> None:
        if before == after:
            return
        known = len(self._plugins)
        self._plugins.update(after - before)
        is_news = len(self._plugins) != known
        for name in before - after:
            self._plugins[name] -= 1
            if not self._plugins[name]:
                del self._plugins[name]
                is_news = True
        if is_news:
            self._stir()


def _mark(head: _NodeDevicesHead) -> int:
    parts = (head.metadata.labels, head.metadata.annotations, head.status.capacity, head.status.allocatable)
    return hash(tuple(map(bytes, parts)))
