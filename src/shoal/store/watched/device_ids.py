"""Converts granted devices to the ids of the node's device plugin, by container and resource, for the annotation
`shoal.dev/devices`; and reads the ids of a node's devices.

Guarantees: a container gets as many devices of a resource as it requests; containers that run concurrently get
different ones; an init container that ends before them gets their devices, or those that the largest init container
left over; the value read back (`positions_of_pod`) is exactly the grant.

The engine counts replicas of a device and fixed MIG instances but does not identify them. This module chooses one: the
first of the device that is not known to be in use (`taken`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from shoal.api.container import Container
from shoal.api.pod import PodSpec
from shoal.devices.tiling import occupancy, tiling
from shoal.engine.device_demand import SLOTS, Demand, DeviceGrant, MigTiles, Replicas, VirtualGpus, WholeGpus
from shoal.engine.device_notation import UNKNOWN_IDS, NodeIds, names, replica_id
from shoal.engine.device_notation.node_ids import DevicePosition
from shoal.engine.dra.devices import SliceFacts

Chosen = dict[str, dict[str, list[str]]]
"""Container -> resource -> ids."""
_GPU_TYPE = "gpu"
_Asker = tuple[Container, int]


def ids_of(reported: NodeIds, pieces: Iterable[SliceFacts] = ()) -> NodeIds:
    """The ids of a node's devices: from the node's annotation, else from the resource slices of its GPU driver."""
    return reported if reported is not UNKNOWN_IDS else _of_slices(pieces)


def _of_slices(pieces: Iterable[SliceFacts]) -> NodeIds:
    """Devices of type `gpu` with a `uuid`, by their `index`; without one, in the order of their names."""
    found: list[tuple[int, str]] = []
    for piece in pieces:
        for device in piece.devices:
            reported = {name.rpartition("/")[2]: value for name, (_, value) in device.attributes.items()}
            uuid, index = reported.get("uuid"), reported.get("index", reported.get("minor"))
            if reported.get("type") == _GPU_TYPE and isinstance(uuid, str):
                found.append((index if isinstance(index, int) else len(found), uuid))
    if not found:
        return UNKNOWN_IDS
    numbers = tuple(uuid for _, uuid in sorted(found))
    return NodeIds(numbers, positions={uuid: (number, 0) for number, uuid in enumerate(numbers)})


def devices_annotation(chosen: Chosen) -> str:
    """Empty where nothing was chosen."""
    return msgspec.json.encode(chosen).decode() if chosen else ""


def chosen_ids(
    spec: PodSpec,
    demand: Demand | None,
    grant: DeviceGrant | None,
    ids: NodeIds,
    taken: AbstractSet[str] = frozenset(),
) -> Chosen:
    """The devices of each container. `taken`: replicas and fixed instances that other pods hold."""
    writer = _Chooser(spec, ids, taken)
    if isinstance(demand, MigTiles):
        writer.tiles(demand, grant)
    elif demand is not None and grant is not None and grant.parts:
        writer.gpus(demand, grant)
    return writer.chosen


def needs_taken(demand: Demand | None, grant: DeviceGrant | None) -> bool:
    """Whether `chosen_ids` needs the devices that other pods hold."""
    if isinstance(demand, MigTiles):
        return grant is None or not grant.parts
    return grant is not None and any(plane == SLOTS for _, plane, _ in grant.parts)


class _Chooser:
    def __init__(self, spec: PodSpec, ids: NodeIds, taken: AbstractSet[str]) -> None:
        self._spec = spec
        self._ids = ids
        self._taken = taken
        self.chosen: Chosen = {}

    def gpus(self, demand: Demand, grant: DeviceGrant) -> None:
        """Whole GPUs, shares, virtual GPUs and replicas: all of one resource."""
        resource = self._resource(demand)
        units: list[str] = []
        if isinstance(demand, (WholeGpus, Replicas, VirtualGpus)) and self._is_replicated(demand, grant):
            for device, plane, amount in grant.parts:
                units += self._replicas(device, resource, amount) if plane == SLOTS else ()
        else:
            units = [self._ids.id_of(device) for device in grant.devices]
        self._deal(resource, units)

    def tiles(self, demand: MigTiles, grant: DeviceGrant | None) -> None:
        """MIG instances: the positions of new ones, or some of the existing ones."""
        is_cut = grant is None or not grant.parts
        placed = (
            {} if grant is None or is_cut or not self._ids.layout else placed_tiles(self._ids.layout, demand, grant)
        )
        for name, count in demand.tiles:
            resource = names.MIG_PREFIX + name
            units = [self._ids.id_of(device, start) for device, start in placed.get(name, ())]
            if is_cut:
                units = self._instances(resource, count)
            if units:
                self._deal(resource, units)

    def _resource(self, demand: Demand) -> str:
        if isinstance(demand, Replicas):
            return names.GPU_SHARED
        if isinstance(demand, VirtualGpus):
            asked = {name for container in _all(self._spec) for name in _amounts(container)}
            return names.VGPU if any(name.startswith("volcano.sh/") for name in asked) else names.GPU
        return names.GPU

    def _is_replicated(self, demand: Demand, grant: DeviceGrant) -> bool:
        """A virtual GPU is on a replica only where the node has replicas; of whole GPUs replicas alone take slots."""
        if isinstance(demand, VirtualGpus):
            return self._ids.replicas.get(names.GPU, 1) > 1
        return any(plane == SLOTS for _, plane, _ in grant.parts)

    def _replicas(self, device: int, resource: str, amount: int) -> list[str]:
        own = self._ids.id_of(device)
        most = max(self._ids.replicas.get(resource, 0), amount + len(self._taken))
        every = [replica_id(own, number) for number in range(most)]
        free = [each for each in every if each not in self._taken]
        return (free + [each for each in every if each in self._taken])[:amount]

    def _instances(self, resource: str, count: int) -> list[str]:
        """None where the instances are unknown, or too few are free."""
        replicas = self._ids.replicas.get(resource, 1)
        own = self._ids.instances.get(resource, ())
        every = [replica_id(each, number) for number in range(replicas) for each in own] if replicas > 1 else own
        free = [each for each in every if each not in self._taken]
        return free[:count] if len(free) >= count else []

    # -- by container -------------------------------------------------------------------------------------------------

    def _deal(self, resource: str, units: Sequence[str]) -> None:
        staying, passing = self._askers(resource)
        if not staying and not passing:
            # A request in an annotation belongs to the first container.
            first = next(iter(self._spec.containers), None)
            if first is not None:
                self._give(first, resource, units)
            return
        had: dict[str, Sequence[str]] = {}
        left = list(units)
        for container, count in staying:
            had[container.name], left = left[:count], left[count:]
            self._give(container, resource, had[container.name])
        for container, count in passing:
            kept = {each for one in _sidecars_before(self._spec, container) for each in had.get(one.name, ())}
            self._give(container, resource, [each for each in units if each not in kept][:count])

    def _askers(self, resource: str) -> tuple[list[_Asker], list[_Asker]]:
        """Containers that keep their devices, in the kubelet's order, and those that pass them on."""
        sidecars = [one for one in self._spec.init_containers if one.is_sidecar()]
        passing = [one for one in self._spec.init_containers if not one.is_sidecar()]
        return _asking((*sidecars, *self._spec.containers), resource), _asking(passing, resource)

    def _give(self, container: Container, resource: str, ids: Sequence[str]) -> None:
        if ids:
            self.chosen.setdefault(container.name, {})[resource] = list(ids)


def _asking(containers: Iterable[Container], resource: str) -> list[_Asker]:
    found = []
    for container in containers:
        amounts = _amounts(container)
        count = amounts.get(resource, 0)
        if not count and any(amounts.get(name) for name in _BY_ITSELF.get(resource, ())):
            count = 1
        if count:
            found.append((container, count))
    return found


_BY_ITSELF = {
    names.GPU: (names.GPU_MEMORY, names.GPU_MEMORY_PERCENT, names.GPU_CORES),
    names.VGPU: (names.VGPU_MEMORY, names.VGPU_MEMORY_PERCENT, names.VGPU_CORES),
}
"""A request for memory or cores of a virtual GPU without a count means one device."""


def _amounts(container: Container) -> dict[str, int]:
    resources = container.resources
    return {name: amount.value() for name, amount in {**resources.limits, **resources.requests}.items() if "/" in name}


def _all(spec: PodSpec) -> tuple[Container, ...]:
    return (*spec.init_containers, *spec.containers)


def _sidecars_before(spec: PodSpec, container: Container) -> list[Container]:
    at = spec.init_containers.index(container)
    return [one for one in spec.init_containers[:at] if one.is_sidecar()]


def placed_tiles(layout: str, demand: MigTiles, grant: DeviceGrant) -> dict[str, list[DevicePosition]]:
    """Assigns the parts of the grant to profiles. A part has the slices in use, which may be equal for two profiles:
    the profile with fewer legal placements chooses first.
    """
    there = tiling(layout)
    profiles = [(name, count, profile) for name, count in demand.tiles if (profile := there.profile(name)) is not None]
    left = list(grant.parts)
    found: dict[str, list[DevicePosition]] = {}
    for name, count, profile in sorted(profiles, key=lambda one: len(one[2].starts)):
        start_of = {occupancy(mask): start for mask, start in zip(there.places(profile), profile.starts, strict=True)}
        own = [part for part in left if part[2] in start_of][:count]
        for part in own:
            left.remove(part)
        found[name] = [(device, start_of[amount]) for device, _, amount in own]
    return found
