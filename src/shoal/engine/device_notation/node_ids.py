"""Maps the device ids of a node to the indexes that the engine uses.

The node has it in `shoal.dev/topology`, which the owner of its devices maintains; nodes for virtual GPUs say it in
HAMi's register. Numbers are those of `layout_of_node`: whole GPUs as they are advertised, slices of MIG one by one
where they are advertised as GPUs, and all GPUs by index where some are cut on demand.

A device without a known name is identified by its number, and an instance that is not cut yet by number and first
memory slice (`0:4`): every device can be written down, and what was written is found again. What cannot be read names
nothing; a node is not lost for a bad annotation, and its fault is reported elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from shoal.data.gpus import read_product
from shoal.data.mig import layout_of_product
from shoal.devices.device_ids import device_of_replica
from shoal.engine.device_notation import names
from shoal.engine.device_notation.registers import registered_ids

StringMap = Mapping[str, str]
DevicePosition = tuple[int, int]


class NodeIds(msgspec.Struct, frozen=True):
    numbers: tuple[str, ...] = ()
    """The id of each device by number."""
    cuts: Mapping[DevicePosition, str] = {}
    """Instances on devices that are cut on demand."""
    profiles: Mapping[DevicePosition, str] = {}
    """The profiles of these, as in names of resources."""
    layout: str = ""
    """The MIG layout of these."""
    instances: Mapping[str, tuple[str, ...]] = {}
    """Instances that are counted by name, by their resource."""
    replicas: Mapping[str, int] = {}
    """How often each device of a resource is advertised, by the name of the replicas."""
    positions: Mapping[str, DevicePosition] = {}
    """The way back."""
    broken: tuple[int, ...] = ()
    """Numbers of devices that do not work."""

    def id_of(self, number: int, start: int | None = None) -> str:
        """The device's id; with `start`, that of the instance which begins at this memory slice."""
        if start is not None:
            return self.cuts.get((number, start), f"{number}:{start}")
        return self.numbers[number] if number < len(self.numbers) else str(number)

    def position_of(self, device: str) -> DevicePosition | None:
        """Where an id points to, that of a replica too; None when it is not known."""
        own = device_of_replica(device)
        return self.positions.get(own) or parse_position(own)


UNKNOWN_IDS = NodeIds()


class _Cut(msgspec.Struct, frozen=True):
    profile: str = ""
    start: int = 0
    uuid: str = ""


class _GpuIds(msgspec.Struct, frozen=True):
    uuid: str = ""
    unhealthy: bool = False
    mig: tuple[_Cut, ...] | None = None


class _Topology(msgspec.Struct, frozen=True):
    gpus: tuple[_GpuIds, ...] = ()
    replicas: dict[str, int] = {}


_topology = msgspec.json.Decoder(_Topology)


def node_ids(labels: StringMap, annotations: StringMap) -> NodeIds:
    """What the node says of its devices' names."""
    topology = _read(annotations.get(names.OWN_TOPOLOGY, ""))
    registered = registered_ids(annotations)
    layout = _layout(labels, annotations)
    if not topology.gpus and not registered and not layout:
        return UNKNOWN_IDS
    cuts: dict[DevicePosition, str] = {}
    profiles: dict[DevicePosition, str] = {}
    instances: dict[str, list[str]] = {}
    numbers: list[str] = []
    broken: list[int] = []
    strategy = labels.get(names.MIG_STRATEGY, "")
    for index, gpu in enumerate(topology.gpus):
        first = len(numbers)
        if layout:
            numbers.append(gpu.uuid)
            cuts |= {(index, cut.start): cut.uuid for cut in gpu.mig or ()}
            profiles |= {(index, cut.start): cut.profile.replace("+", ".") for cut in gpu.mig or ()}
        elif gpu.mig is None or strategy not in ("single", "mixed"):
            numbers.append(gpu.uuid)
        elif strategy == "single":
            numbers += [cut.uuid for cut in gpu.mig]
        elif not gpu.unhealthy:
            for cut in gpu.mig:
                instances.setdefault(names.MIG_PREFIX + cut.profile.replace("+", "."), []).append(cut.uuid)
        broken += range(first, len(numbers)) if gpu.unhealthy else ()
    found = registered or tuple(numbers)
    positions: dict[str, DevicePosition] = {each: (number, 0) for number, each in enumerate(found) if each}
    positions |= {each: position for position, each in cuts.items()}
    counted = {name: tuple(ids) for name, ids in instances.items()}
    return NodeIds(
        numbers=found,
        cuts=cuts,
        profiles=profiles,
        layout=layout,
        instances=counted,
        replicas=topology.replicas,
        positions=positions,
        broken=() if registered else tuple(broken),
    )


def gpus_in_mig_mode(annotations: StringMap) -> frozenset[int] | None:
    """The indexes of the GPUs in MIG mode; None if the node does not report its GPUs."""
    topology = _read(annotations.get(names.OWN_TOPOLOGY, ""))
    if not topology.gpus:
        return None
    return frozenset(index for index, gpu in enumerate(topology.gpus) if gpu.mig is not None)


def topology_fault(annotations: StringMap) -> str:
    """What is wrong with the node's words about its devices, and what comes of it."""
    text = annotations.get(names.OWN_TOPOLOGY, "")
    try:
        _topology.decode(text or "{}")
    except msgspec.DecodeError as error:
        return f"{error}; it is ignored, and devices are named by their index"
    return ""


def _layout(labels: StringMap, annotations: StringMap) -> str:
    """By which devices are cut on demand, if they are."""
    if names.OWN_MIG_LAYOUT not in annotations and names.OWN_MIG_LAYOUT not in labels:
        return ""
    facts = layout_of_product(read_product(labels.get(names.PRODUCT, "")).name)
    return facts.name if facts is not None else ""


def parse_position(text: str) -> DevicePosition | None:
    """`3`, or `3:4` with the first memory slice."""
    number, colon, start = text.partition(":")
    if not _is_small(number) or (colon and not _is_small(start)):
        return None
    return int(number), int(start) if colon else 0


def _is_small(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 4


def _read(text: str) -> _Topology:
    if not text:
        return _Topology()
    try:
        return _topology.decode(text)
    except msgspec.DecodeError:
        return _Topology()
