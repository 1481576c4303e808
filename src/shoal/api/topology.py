"""Topologies as a list of node labels, outermost level first: Kueue's and KAI's, which have one shape.

A domain is a set of nodes that agree on the labels of a level and of all levels above. Host names identify single
nodes, so no level can be below them.

Two types and not one: a group that names a Topology means the one of its own ecosystem.
"""

from __future__ import annotations

from msgspec import field

from shoal.api.meta import ObjectMeta
from shoal.api.names import label_key_fault
from shoal.api.validity import check_meta
from shoal.api.wire import ApiStruct
from shoal.units.errors import UserError, Where, excerpt

HOSTNAME_LABEL = "kubernetes.io/hostname"
MOST_LEVELS = 16
_LONGEST_LABEL = 316


class TopologyLevel(ApiStruct, frozen=True):
    node_label: str


class TopologySpec(ApiStruct, frozen=True):
    levels: tuple[TopologyLevel, ...] = ()


class KueueTopology(ApiStruct, frozen=True):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: TopologySpec = field(default_factory=TopologySpec)

    def labels(self) -> tuple[str, ...]:
        return tuple(level.node_label for level in self.spec.levels)


class KaiTopology(ApiStruct, frozen=True):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: TopologySpec = field(default_factory=TopologySpec)

    def labels(self) -> tuple[str, ...]:
        return tuple(level.node_label for level in self.spec.levels)


def check_topology(topology: KueueTopology | KaiTopology, where: Where) -> None:
    check_meta(topology.metadata, where.below("metadata"))
    labels, where = topology.labels(), where.below("spec.levels")
    if not labels:
        raise UserError("at least one level is required", where=where)
    if len(labels) > MOST_LEVELS:
        raise UserError(f"must have at most {MOST_LEVELS} items, got {len(labels)}", where=where)
    for index, label in enumerate(labels):
        here = where.below(f"[{index}].nodeLabel")
        if fault := label_key_fault(label):
            raise UserError(f"{excerpt(label)} is not a label key: {fault}", where=here)
        if len(label) > _LONGEST_LABEL:
            raise UserError(f"must be no more than {_LONGEST_LABEL} characters", where=here)
        if label in labels[:index]:
            raise UserError(f"{excerpt(label)} is named twice", where=here)
        if label == HOSTNAME_LABEL and index < len(labels) - 1:
            raise UserError(f"{HOSTNAME_LABEL} can only be the lowest level", where=here, fix="put it last")
