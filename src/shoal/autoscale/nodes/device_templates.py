"""Describes the devices of resource claims (DRA) that a node of a pool will have, before there is one.

Of a type of which the pool has a node, they are those of this node; of another type, those that NVIDIA's driver
publishes for its GPUs. What only one machine has is replaced or left out: UUIDs are made of the template's name, and
taints about a fault of one device are dropped. A node is planned with a copy of the devices under its own name.

Rejected: an attribute without a value where it is not known. A selector that reads it fails, and the whole claim with
it, so versions are taken from the driver's other nodes; where there are none, the message names the attribute.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from shoal.api.meta import ObjectMeta
from shoal.api.slices import Attribute, Device, ResourcePool, ResourceSlice, ResourceSliceSpec
from shoal.autoscale.nodes.advertised_devices import DYNAMIC_MIG, GPU, labels_of_machine
from shoal.autoscale.nodes.instance_types import InstanceType
from shoal.data.gpus import PRODUCT_LABEL, Model, read_product
from shoal.data.mig import Layout
from shoal.devices.claimable_devices import CLAIM_DRIVER, ClaimableInput, claimable_devices
from shoal.devices.mig_gpus import changes_mode_by_reset
from shoal.devices.mig_instances import places
from shoal.devices.names import OWN_DRA
from shoal.devices.port import DriverVersions, InstalledGpu, MigInstance
from shoal.devices.product_names import device_name
from shoal.devices.resource_slices import Published, partitions_of
from shoal.engine.dra.devices import SliceFacts
from shoal.units.numbers import whole_of

_MIG_CONFIG: Final = "nvidia.com/mig.config"
_MEMORY: Final = "nvidia.com/gpu.memory"
_ALL: Final = "all-"
_UNIQUE: Final = frozenset({"uuid", "parentUUID", "serial", "serialNumber"})
_FAULTS: Final = frozenset({"xid", "gpu-lost"})
_OF_DRIVER: Final = ("driverVersion", "cudaDriverVersion", "brand")


def copied(pieces: Iterable[ResourceSlice], template: str) -> tuple[ResourceSlice, ...]:
    """The slices of a node, as those of another one with the same machine."""
    given = tuple(pieces)
    passing = {driver: _passing_taints(driver, given) for driver in {piece.spec.driver for piece in given}}
    return tuple(_copied(piece, template, passing[piece.spec.driver]) for piece in given)


def _passing_taints(driver: str, pieces: Iterable[ResourceSlice]) -> frozenset[str]:
    """Taints of the driver's own that another machine does not have: faults, and what only some of the devices have.
    One that all devices have may be there on each machine, and a node for a claim that does not tolerate it would be
    provisioned in vain.
    """
    own = f"{driver}/"
    listed = [
        device.traits().taints for piece in pieces if piece.spec.driver == driver for device in piece.spec.devices
    ]
    keys = {each.key for taints in listed for each in taints if each.key.startswith(own)}
    has_all = {key for key in keys if all(any(each.key == key for each in taints) for taints in listed)}
    return frozenset(key for key in keys if key not in has_all or key.removeprefix(own) in _FAULTS)


def _copied(piece: ResourceSlice, template: str, passing: frozenset[str]) -> ResourceSlice:
    spec = piece.spec
    devices = tuple(_sanitised(device, template, passing) for device in spec.devices)
    return ResourceSlice(
        metadata=ObjectMeta(name=f"{template}/{piece.metadata.name}"),
        spec=replace(
            spec,
            pool=replace(spec.pool, name=f"{template}/{spec.pool.name}"),
            node_name=template,
            devices=devices,
        ),
    )


def _sanitised(device: Device, template: str, passing: frozenset[str]) -> Device:
    traits = device.traits()
    attributes = {
        name: Attribute(text=f"{template}/{device.name}") if name.rpartition("/")[2] in _UNIQUE else value
        for name, value in traits.attributes.items()
    }
    taints = tuple(each for each in traits.taints if each.key not in passing)
    if device.basic is None:
        return replace(device, attributes=attributes, taints=taints)
    return replace(device, basic=replace(device.basic, attributes=attributes, taints=taints))


def of_machine(
    template: str, instance: InstanceType, labels: Mapping[str, str], common: Mapping[str, Attribute]
) -> tuple[ResourceSlice, ...]:
    """What NVIDIA's driver publishes on a node of this type in a pool with these labels; nothing where the model of its
    GPUs is not known. `common`: attributes that all GPUs of the cluster have from their driver.
    """
    labels = labels_of_machine(instance, labels)
    model = read_product(labels.get(PRODUCT_LABEL, "")).model
    count = instance.capacity.get(GPU, 0)
    if model is None or not count:
        return ()
    gpus = tuple(_gpu(index, model, labels, template) for index in range(count))
    given = ClaimableInput(DriverVersions("", None), gpus)
    if labels.get(OWN_DRA) == DYNAMIC_MIG:
        content = partitions_of(given)
    else:
        content = Published(tuple(one.described for one in claimable_devices(given)))
    devices = tuple(replace(device, attributes={**common, **device.attributes}) for device in content.devices)
    pool = ResourcePool(template, 1, 1)
    spec = ResourceSliceSpec(
        driver=CLAIM_DRIVER, pool=pool, node_name=template, devices=devices, shared_counters=content.counters
    )
    return (ResourceSlice(metadata=ObjectMeta(name=template), spec=spec),)


def common_attributes(pieces: Iterable[ResourceSlice]) -> dict[str, Attribute]:
    """What the driver says of its own version, on any node."""
    for piece in pieces:
        for device in piece.spec.devices if piece.spec.driver == CLAIM_DRIVER else ():
            attributes = device.traits().attributes
            return {name: attributes[name] for name in _OF_DRIVER if name in attributes}
    return {}


def _gpu(index: int, model: Model, labels: Mapping[str, str], template: str) -> InstalledGpu:
    uuid = f"{template}/gpu-{index}"
    layout = model.mig_layout()
    memory_mib = _memory_mib(model, layout, labels)
    instances = () if layout is None else _instances(layout, labels.get(_MIG_CONFIG, ""), uuid, memory_mib)
    # Such a GPU can give instances to claims only if it is in MIG mode from the start.
    needs_mode = labels.get(OWN_DRA) == DYNAMIC_MIG and changes_mode_by_reset(model.compute_capability)
    return InstalledGpu(
        index=index,
        uuid=uuid,
        name=device_name(labels[PRODUCT_LABEL]),
        pci=f"00000000:{index + 1:02x}:00.0",
        memory_mib=memory_mib,
        compute_capability=model.compute_capability,
        minor=index,
        is_mig=None if layout is None else bool(instances) or needs_mode,
        instances=instances,
    )


def _memory_mib(model: Model, layout: Layout | None, labels: Mapping[str, str]) -> int:
    """The memory that the driver reports: of models with MIG it was measured. A part of a GPU has less."""
    named, nominal = whole_of(labels.get(_MEMORY, "")) or 0, model.memory_mib()
    if named not in (0, nominal):
        return named
    return (layout.memory_mib if layout is not None else None) or nominal


def _instances(layout: Layout, config: str, uuid: str, memory_mib: int) -> tuple[MigInstance, ...]:
    """Those of a GPU that is cut alike in all parts: `all-1g.10gb`."""
    profile = layout.profile(config.removeprefix(_ALL)) if config.startswith(_ALL) else None
    if profile is None:
        return ()
    found = places(layout, ((profile.name, profile.max),)) or ()
    part_mib = profile.memory_mib or memory_mib * profile.width // layout.memory_slices
    return tuple(
        MigInstance(f"{uuid}/{start}", name, number, start, profile.width, part_mib)
        for number, (name, start) in enumerate(found)
    )


def on_node(piece: SliceFacts, node: str) -> SliceFacts:
    """The piece of a template, as that of a node."""
    template = piece.reach.node_name
    there = replace(piece.reach, node_name=node)
    devices = tuple(
        replace(each, reach=there if each.reach.node_name == template else each.reach) for each in piece.devices
    )
    return replace(
        piece,
        name=_renamed(piece.name, template, node),
        pool=_renamed(piece.pool, template, node),
        devices=devices,
        reach=there,
    )


def _renamed(name: str, template: str, node: str) -> str:
    return node + name.removeprefix(template)
