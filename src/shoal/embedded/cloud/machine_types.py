"""Describes the machines of the catalogue as instance types, and builds the machine of an instance.

Capacity and what pods may use are those of the simulated machine, so a plan for it is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Final

from msgspec.structs import replace

from shoal.api.resources import amounts
from shoal.api.taints import Taint
from shoal.api.wire import to_quantity
from shoal.autoscale.nodes.advertised_devices import DYNAMIC_MIG, gives_by_claims
from shoal.autoscale.nodes.gpu_instances import types_for_pool
from shoal.autoscale.nodes.instance_types import SPOT, InstanceType, Offering
from shoal.autoscale.nodes.pools import NodePool
from shoal.autoscale.requirements import RequirementSet
from shoal.autoscale.requirements.admitted import AdmittedValues
from shoal.autoscale.requirements.labels import ZONE_LABEL
from shoal.cloud.port import InstanceRequest
from shoal.devices.mig_demand import DYNAMIC
from shoal.devices.names import OWN_DRA
from shoal.embedded.machines.assembly import machine
from shoal.embedded.machines.fleet_entry import FleetEntry
from shoal.embedded.machines.machine import Machine, Sharing
from shoal.embedded.machines.machine_topology import MachineTopology
from shoal.embedded.machines.machine_types import shape_named
from shoal.embedded.machines.shape import MachineShape
from shoal.units.numbers import whole_of

_GPU: Final = "nvidia.com/gpu"
_MIG_CONFIG: Final = "nvidia.com/mig.config"
_REPLICAS, _STRATEGY = "nvidia.com/gpu.replicas", "nvidia.com/gpu.sharing-strategy"
_LETTERS: Final = "abcdef"
_PER_RACK: Final = 8


def offered_types(pool: NodePool, zones: int) -> tuple[InstanceType, ...]:
    """The types of the pool's cloud that can be simulated, in so many zones unless the pool names zones."""
    return _offered(pool.node_class, pool.requirements.get(ZONE_LABEL), zones)


@lru_cache(maxsize=256)
def _offered(node_class: str, wanted: AdmittedValues, zones: int) -> tuple[InstanceType, ...]:
    """Pools with equal requirements share the types."""
    pool = NodePool("", RequirementSet({ZONE_LABEL: wanted}), node_class=node_class)
    found = []
    for one in types_for_pool(pool):
        exact = _exact(one.name)
        if exact is None:
            continue
        capacity, overhead = exact
        offerings = one.offerings if not wanted.is_open else tuple(_in_zones(one.offerings, zones))
        found.append(replace(one, capacity=capacity, overhead=overhead, offerings=offerings))
    return tuple(found)


@cache
def _exact(name: str) -> tuple[Mapping[str, int], Mapping[str, int]] | None:
    """The capacity of a simulated machine, and what of it pods may not use."""
    shape = shape_named(name)
    if shape is None or not shape.gpus:
        return None
    made = machine("any", FleetEntry(shape), MachineTopology("", "", "", ""))
    capacity = amounts({key: to_quantity(value) for key, value in made.capacity.items()})
    left = amounts({key: to_quantity(value) for key, value in made.allocatable.items()})
    capacity[_GPU] = left[_GPU] = shape.gpus
    return capacity, {key: amount - left.get(key, 0) for key, amount in capacity.items() if left.get(key, 0) < amount}


def _in_zones(offerings: tuple[Offering, ...], zones: int) -> list[Offering]:
    """The usual zone of a type ends in `a` or `1`; the others follow it."""
    found = []
    for each in offerings:
        stem, last = each.zone[:-1], each.zone[-1]
        names = [str(number + 1) for number in range(zones)] if last.isdigit() else list(_LETTERS[:zones])
        found += [replace(each, zone=stem + name) for name in names]
    return found


def machine_of(request: InstanceRequest, instance: str, provider_id: str, number: int) -> Machine | None:
    """The machine of an instance; None for a type that cannot be simulated. `number`: of the instance in its zone."""
    shape = shape_named(request.instance_type)
    if shape is None:
        return None
    labels = dict(request.node_labels)
    entry = FleetEntry(
        shape,
        labels=labels,
        taints=tuple(_taint(each) for each in request.taints),
        is_spot=request.capacity_type == SPOT,
        zone=request.zone,
        mig_config=DYNAMIC if labels.get(OWN_DRA) == DYNAMIC_MIG else labels.get(_MIG_CONFIG, ""),
        sharing=_sharing(labels),
        gives_by_claims=gives_by_claims(labels) and shape.gpu_model() is not None,
    )
    rack = number // _PER_RACK
    place = MachineTopology(
        shape.region, request.zone, f"{request.zone}-block-{rack // 4}", f"{request.zone}-rack-{rack}"
    )
    return replace(machine(node_name(shape, instance), entry, place), provider_id=provider_id)


def node_name(shape: MachineShape, instance: str) -> str:
    return f"{shape.name.lower().replace('.', '-').replace('_', '-')}-{instance[-8:]}"


def _taint(taint: Taint) -> Mapping[str, str]:
    found = {"key": taint.key, "effect": taint.effect}
    return {**found, "value": taint.value} if taint.value else found


def _sharing(labels: Mapping[str, str]) -> Sharing | None:
    replicas, strategy = whole_of(labels.get(_REPLICAS, "")) or 1, labels.get(_STRATEGY, "none")
    if replicas < 2 or strategy not in ("mps", "time-slicing"):
        return None
    return Sharing("mps" if strategy == "mps" else "time-slicing", replicas)
