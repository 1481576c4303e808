"""Converts watched nodes to events with their zones and network positions, only when something relevant changed.

Nodes report frequently. Their reports are compared as bytes before anything is decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
from msgspec import Raw

from shoal.api.hyper_nodes import HyperNode
from shoal.api.node import Node
from shoal.api.node_resource_topology import NodeResourceTopology
from shoal.api.partial import LabeledMeta, MetadataOf
from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.client.kind import NODES
from shoal.engine.device_notation import topology_fault
from shoal.engine.device_notation.names import OWN_TOPOLOGY
from shoal.engine.events import Event, NodeGone, NodeSeen
from shoal.engine.from_api import HyperTree
from shoal.store.nodes import node_seen
from shoal.store.object_faults import INVALID_ANNOTATION, UNREADABLE, ObjectFault, ObjectFaults, message_of
from shoal.store.watched.reading import place_of, value_of
from shoal.store.watched.tolerant_reading import read_each
from shoal.units.errors import UserError, Where

_NOTHING = Raw()
_TOPOLOGY = Where(path="metadata.annotations").key(OWN_TOPOLOGY)


class _NodeMeta(msgspec.Struct, gc=False):
    labels: Raw = _NOTHING
    annotations: Raw = _NOTHING


class _NodeCapacity(msgspec.Struct, gc=False):
    capacity: Raw = _NOTHING
    allocatable: Raw = _NOTHING


class _NodeHead(msgspec.Struct, gc=False):
    metadata: _NodeMeta = msgspec.field(default_factory=_NodeMeta)
    spec: Raw = _NOTHING
    status: _NodeCapacity = msgspec.field(default_factory=_NodeCapacity)

    def mark(self) -> tuple[int, int]:
        """Hashes of the labels and of the other relevant fields."""
        meta, status = self.metadata, self.status
        rest = (meta.annotations, self.spec, status.capacity, status.allocatable)
        return hash(bytes(meta.labels)), hash(tuple(map(bytes, rest)))


_heads = msgspec.json.Decoder(_NodeHead)


class WatchedNodes:
    def __init__(self, nodes: Informer, troubles: ObjectFaults, stir: Callable[[], None]) -> None:
        self._informer = nodes
        self._troubles = troubles
        self._stir = stir
        self._marks: dict[str, tuple[int, int]] = {}
        self._reported: set[str] = set()
        self._dirty: dict[str, None] = {}
        self._zones: Informer | None = None
        self._hyper: Informer | None = None
        self._tree_is_old = False
        self.tree = HyperTree((), ())

    def follow(self) -> None:
        self._informer.on_change(self._changed)

    def _changed(self, before: Item | None, after: Item | None) -> None:
        if after is None:
            if before is not None:
                self._marks.pop(before.name, None)
                self._tree_is_old = True
                self._touch(before.name)
            return
        known, mark = self._marks.get(after.name), _heads.decode(after.data).mark()
        if known != mark:
            self._marks[after.name] = mark
            self._tree_is_old |= known is None or known[0] != mark[0]
            self._touch(after.name)

    def _touch(self, name: str) -> None:
        self._dirty[name] = None
        self._stir()

    # -- optional kinds ------------------------------------------------------------------------------

    def follow_zones(self, zones: Informer) -> None:
        self._zones = zones
        zones.on_change(lambda before, after: self._touch((after or before or _NO_ITEM).name))

    def follow_network(self, hyper_nodes: Informer) -> None:
        self._hyper = hyper_nodes
        hyper_nodes.on_change(lambda *_: self._network_changed())

    def _network_changed(self) -> None:
        self._tree_is_old = True
        self._stir()

    def renew_tree(self) -> bool:
        """Read the network again if it changed; returns whether the result differs."""
        if not self._tree_is_old or self._hyper is None:
            return False
        self._tree_is_old = False
        found = []
        for item in self._hyper:
            try:
                found.append((value_of(self._hyper.kind, item, HyperNode), place_of(self._hyper.kind, item)))
            except UserError as error:
                self._complain(self._hyper, item, error)
        try:
            tree = HyperTree(found, [(item.name, self._labels(item)) for item in self._informer])
        except UserError as error:
            at = next((item for item in self._hyper if error.where.obj.endswith(f" {item.name}")), None)
            if at is not None:
                self._complain(self._hyper, at, error)
            return False
        before, self.tree = self.tree, tree
        for name in self._marks:
            if before.labels_of(name) != tree.labels_of(name):
                self._dirty[name] = None
        return before.facts() != tree.facts() or before.tier_names() != tree.tier_names()

    def _labels(self, item: Item) -> Mapping[str, str]:
        return item.read(MetadataOf[LabeledMeta]).metadata.labels

    # -- reporting ----------------------------------------------------------------------------------------------------

    def drain(self) -> list[Event]:
        dirty, self._dirty = self._dirty, {}
        events: list[Event] = []
        self._dirty |= read_each("node", dirty, lambda name: self._report(name, events))
        return events

    @property
    def is_quiet(self) -> bool:
        return not self._dirty

    def report_again(self, name: str) -> None:
        self._reported.add(name)
        self._dirty[name] = None

    def _report(self, name: str, events: list[Event]) -> None:
        item = self._informer.get("", name)
        if item is None:
            self._troubles.settle(NODES, name)
            if name in self._reported:
                self._reported.discard(name)
                events.append(NodeGone(name))
            return
        try:
            node = value_of(NODES, item, Node)
            events.append(self._seen(node))
        except UserError as error:
            # The last valid state is kept: the pods that run on the node still do.
            self._troubles.put(ObjectFault(NODES, name, item.uid, UNREADABLE, message_of(error)))
            return
        self._reported.add(name)
        if fault := topology_fault(node.metadata.annotations):
            words = message_of(UserError(fault, where=_TOPOLOGY))
            self._troubles.put(ObjectFault(NODES, name, item.uid, INVALID_ANNOTATION, words))
        else:
            self._troubles.settle(NODES, name)

    def _seen(self, node: Node) -> NodeSeen:
        return node_seen(node, self._zones_of(node.metadata.name), self.tree)

    def _zones_of(self, name: str) -> NodeResourceTopology | None:
        zones = self._zones
        item = zones.get("", name) if zones is not None else None
        if item is None or zones is None:
            return None
        try:
            return value_of(zones.kind, item, NodeResourceTopology)
        except UserError as error:
            self._complain(zones, item, error)
            return None

    def _complain(self, informer: Informer, item: Item, error: UserError) -> None:
        self._troubles.put(ObjectFault(informer.kind, item.name, item.uid, UNREADABLE, message_of(error)))


_NO_ITEM = Item("", "", "", 0, b"")
