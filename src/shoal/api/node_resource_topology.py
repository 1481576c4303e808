"""NodeResourceTopology objects: the NUMA nodes of a node, the resources of each, and their distances.

Zones are distinguished by name, and two of one name in a node would be counted twice: refused, though the
API server lets it pass.
"""

from __future__ import annotations

from msgspec import field

from shoal.api.meta import ObjectMeta
from shoal.api.resource_rules import check_amount
from shoal.api.validity import check_meta
from shoal.api.wire import ApiStruct
from shoal.units.errors import UserError, Where, excerpt
from shoal.units.quantity import Quantity


class TopologyAttribute(ApiStruct, frozen=True):
    name: str
    value: str


class ZoneCost(ApiStruct, frozen=True):
    """The distance to the zone of this name; the nearer, the lower."""

    name: str
    value: int


class ZoneResource(ApiStruct, frozen=True):
    name: str
    capacity: Quantity
    allocatable: Quantity
    available: Quantity


class Zone(ApiStruct, frozen=True):
    name: str
    type: str
    parent: str = ""
    costs: tuple[ZoneCost, ...] = ()
    attributes: tuple[TopologyAttribute, ...] = ()
    resources: tuple[ZoneResource, ...] = ()


class NodeResourceTopology(ApiStruct, frozen=True):
    """Named like its node. `topology_policies` is the older way to say what attributes say now."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    zones: tuple[Zone, ...] = ()
    attributes: tuple[TopologyAttribute, ...] = ()
    topology_policies: tuple[str, ...] = ()


def check_node_resource_topology(topology: NodeResourceTopology, where: Where) -> None:
    check_meta(topology.metadata, where.below("metadata"))
    names: set[str] = set()
    for index, zone in enumerate(topology.zones):
        here = where.below(f"zones[{index}]")
        if not zone.name:
            raise UserError("is required", where=here.below("name"))
        if zone.name in names:
            raise UserError(f"{excerpt(zone.name)} is named twice", where=here.below("name"))
        names.add(zone.name)
        _check_resources(zone.resources, here.below("resources"))


def _check_resources(resources: tuple[ZoneResource, ...], where: Where) -> None:
    names: set[str] = set()
    for index, resource in enumerate(resources):
        here = where.below(f"[{index}]")
        if resource.name in names:
            raise UserError(f"{excerpt(resource.name)} is named twice", where=here.below("name"))
        names.add(resource.name)
        for field_name in ("capacity", "allocatable", "available"):
            fault = _amount_fault(resource.name, getattr(resource, field_name))
            if fault is not None:
                raise fault.at(here.below(field_name))


def _amount_fault(name: str, amount: Quantity) -> UserError | None:
    """The rule for amounts names an entry of a map; here each amount has a field of its own."""
    try:
        check_amount(name, amount, Where())
    except UserError as error:
        return error
    return None
