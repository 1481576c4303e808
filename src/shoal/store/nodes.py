"""Converts a node to an event: its fields, its zones, and its network position."""

from __future__ import annotations

from msgspec import structs

from shoal.api.node import Node
from shoal.api.node_resource_topology import NodeResourceTopology
from shoal.api.topology import HOSTNAME_LABEL
from shoal.engine.events import NodeSeen
from shoal.engine.from_api import HyperTree, node_facts_of


def node_seen(node: Node, zones: NodeResourceTopology | None, tree: HyperTree) -> NodeSeen:
    name = node.metadata.name
    facts = node_facts_of(node, zones)
    # A kubelet always sets the host name; nodes in manifests often lack it.
    labels = {HOSTNAME_LABEL: name, **facts.labels, **tree.labels_of(name)}
    return NodeSeen(structs.replace(facts, labels=labels))
