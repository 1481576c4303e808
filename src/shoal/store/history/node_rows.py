"""Reads a node as a row of the ledger, and what its devices are called.

A node starts when its object is created. It boots until it is Ready and, if it has GPUs, until the first is advertised.
Devices that are unhealthy are those that the node reports; where it only advertises fewer, the last ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from shoal.api.conditions import find_condition
from shoal.api.node import Node
from shoal.api.resources import amounts
from shoal.api.wire import dec_hook
from shoal.client.item import Item
from shoal.cost.device_shares import mig_shares, replica_share
from shoal.cost.records import (
    FULL_SHARE,
    BrokenDevice,
    Capacity,
    DeviceShare,
    Machine,
    MachineCondition,
)
from shoal.data.gpus import PRODUCT_LABEL, read_product
from shoal.data.mig import layout_of_product
from shoal.devices.device_ids import device_of_replica
from shoal.devices.names import GPU, OWN_TOPOLOGY, SHARED_SUFFIX
from shoal.engine.device_demand import NOMINAL_MEMORY_MIB
from shoal.units.numbers import whole_of

_TYPES = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_POOLS = (
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
)
_REGION = "topology.kubernetes.io/region"
_SPOT = (
    ("karpenter.sh/capacity-type", "spot"),
    ("eks.amazonaws.com/capacityType", "SPOT"),
    ("cloud.google.com/gke-spot", "true"),
    ("kubernetes.azure.com/scalesetpriority", "spot"),
)
_RESERVED = ("karpenter.sh/capacity-type", "reserved")
_COUNT, _REPLICAS = "nvidia.com/gpu.count", "nvidia.com/gpu.replicas"
_MIB = 1 << 20
_decoder = msgspec.json.Decoder(Node, dec_hook=dec_hook)


class _Instance(msgspec.Struct):
    uuid: str = ""
    profile: str = ""


class _TopologyGpu(msgspec.Struct):
    uuid: str = ""
    unhealthy: bool = False
    mig: tuple[_Instance, ...] | None = None


class _ReportedTopology(msgspec.Struct):
    gpus: tuple[_TopologyGpu, ...] = ()
    replicas: dict[str, int] = {}


class NodeDeviceNames(msgspec.Struct, frozen=True):
    """The devices of a node, by the names that pods are given."""

    devices: tuple[str, ...] = ()
    shares: dict[str, DeviceShare] = {}
    """Of each name: a GPU, or a MIG instance of one."""
    replicas: dict[str, int] = {}
    """By resource: as how many each device of it is advertised."""
    product: str = ""

    @property
    def memory_mib(self) -> int:
        """Of each device; of a model that is not known it is that of a middling one."""
        model = read_product(self.product).model
        return NOMINAL_MEMORY_MIB if model is None else model.memory_mib()

    def by_device(self) -> list[list[str]]:
        """For each GPU in order its own name, then those of its parts."""
        parts: dict[str, list[str]] = {name: [name] for name in self.devices}
        for name, one in self.shares.items():
            if name != one.device and one.device in parts:
                parts[one.device].append(name)
        return list(parts.values())

    def share(self, resource: str, name: str) -> DeviceShare | None:
        """What holding this device of this resource is; None for a name that the node does not know."""
        found = self.shares.get(device_of_replica(name))
        count = self.replicas.get(resource, 1)
        if found is None or count <= 1:
            return found
        share, compute = (part * replica_share(count) // FULL_SHARE for part in (found.share, found.compute))
        return DeviceShare(found.device, share, name, compute)


class NodeReading(msgspec.Struct, frozen=True):
    machine: Machine
    names: NodeDeviceNames


Extended = Callable[[NodeDeviceNames], NodeDeviceNames]


def read_node(item: Item, before: Machine | None, now_ms: int, extended: Extended = lambda names: names) -> NodeReading:
    """`before`: its row so far; `extended` adds devices that only slices report. Raises msgspec.DecodeError for an
    object that is no node."""
    node = _decoder.decode(item.data)
    labels = node.metadata.labels
    names = extended(_names(node, before.devices if before is not None else ()))
    capacity, allocatable = amounts(node.status.capacity), amounts(node.allocatable())
    start = _ms(node.metadata.creation_timestamp) or now_ms
    machine = Machine(
        name=item.name,
        start_ms=start,
        instance_type=_first(labels, _TYPES),
        pool=_first(labels, _POOLS),
        region=labels.get(_REGION, ""),
        capacity=_capacity(labels),
        model=_model(names.product) or (before.model if before is not None else ""),
        devices=names.devices,
        cpu_milli=capacity.get("cpu", 0),
        memory_mib=capacity.get("memory", 0) // _MIB,
        reserved_cpu_milli=max(0, capacity.get("cpu", 0) - allocatable.get("cpu", 0)),
        reserved_memory_mib=max(0, capacity.get("memory", 0) - allocatable.get("memory", 0)) // _MIB,
        conditions=_conditions(node, names.devices, before, (start, now_ms)),
        broken=_broken(node, names, before.broken if before is not None else (), now_ms),
    )
    return NodeReading(machine, names)


def _names(node: Node, before: Sequence[str]) -> NodeDeviceNames:
    labels = node.metadata.labels
    product = labels.get(PRODUCT_LABEL, "")
    topology = _topology(node)
    if topology.gpus:
        return _reported(topology, product)
    advertised = amounts(node.status.capacity).get(GPU, 0) + amounts(node.status.capacity).get(GPU + SHARED_SUFFIX, 0)
    replicas = whole_of(labels.get(_REPLICAS, "")) or 1
    counted = whole_of(labels.get(_COUNT, "")) or 0
    count = min(1024, counted or advertised // replicas)
    devices = tuple(f"{node.metadata.name}/{number}" for number in range(count)) or tuple(before)
    return NodeDeviceNames(
        devices,
        {name: DeviceShare(name) for name in devices},
        {GPU: replicas, GPU + SHARED_SUFFIX: replicas},
        product,
    )


def _reported(topology: _ReportedTopology, product: str) -> NodeDeviceNames:
    layout = layout_of_product(read_product(product).name)
    shares: dict[str, DeviceShare] = {}
    for gpu in topology.gpus:
        shares[gpu.uuid] = DeviceShare(gpu.uuid)
        for instance in gpu.mig or ():
            equal = FULL_SHARE // max(1, len(gpu.mig or ()))
            share, compute = mig_shares(layout, instance.profile, equal)
            shares[instance.uuid] = DeviceShare(gpu.uuid, share, instance.uuid, compute)
    devices = tuple(gpu.uuid for gpu in topology.gpus if gpu.uuid)
    return NodeDeviceNames(devices, shares, dict(topology.replicas), product)


def _topology(node: Node) -> _ReportedTopology:
    text = node.metadata.annotations.get(OWN_TOPOLOGY, "")
    try:
        return msgspec.json.decode(text, type=_ReportedTopology) if text else _ReportedTopology()
    except msgspec.DecodeError:
        return _ReportedTopology()


def _conditions(
    node: Node, devices: Sequence[str], before: Machine | None, moments: tuple[int, int]
) -> tuple[MachineCondition, ...]:
    start, now = moments
    ready = find_condition(node.status.conditions, "Ready")
    changed = min(now, _ms(ready.last_transition_time) or now) if ready is not None else now
    known = before.conditions if before is not None else ()
    is_ready = node.is_ready() and ready is not None
    gets_devices = before is not None and not before.devices and bool(devices)
    if not known:
        end = max(start, now if gets_devices else changed) if is_ready else None
        return (MachineCondition("booting", start, end),)
    last = known[-1]
    if is_ready and last.end_ms is None:
        return (*known[:-1], MachineCondition(last.condition, last.start_ms, max(last.start_ms, changed)))
    if is_ready and gets_devices and last.condition == "booting" and len(known) == 1:
        # Its driver was not ready yet.
        return (MachineCondition("booting", last.start_ms, now),)
    if not is_ready and last.end_ms is not None:
        return (*known, MachineCondition("not-ready", max(changed, last.end_ms)))
    return known


def _broken(
    node: Node, names: NodeDeviceNames, before: Sequence[BrokenDevice], now_ms: int
) -> tuple[BrokenDevice, ...]:
    topology = _topology(node)
    broken = {gpu.uuid for gpu in topology.gpus if gpu.unhealthy}
    if not topology.gpus:
        there, usable = (amounts(found).get(GPU, 0) for found in (node.status.capacity, node.allocatable()))
        missing = max(0, there - usable) // max(1, names.replicas.get(GPU, 1))
        broken = set(names.devices[len(names.devices) - missing :]) if missing else set()
    open_ones = {one.device for one in before if one.end_ms is None}
    known = [
        one if one.end_ms is not None or one.device in broken else BrokenDevice(one.device, one.start_ms, now_ms)
        for one in before
    ]
    return (*known, *(BrokenDevice(device, now_ms) for device in sorted(broken - open_ones)))


def _capacity(labels: Mapping[str, str]) -> Capacity:
    if any(labels.get(key) == value for key, value in _SPOT):
        return "spot"
    return "reserved" if labels.get(_RESERVED[0]) == _RESERVED[1] else "on-demand"


def _model(product: str) -> str:
    if not product:
        return ""
    read = read_product(product)
    return read.model.name if read.model is not None else read.name


def _first(labels: Mapping[str, str], keys: Iterable[str]) -> str:
    return next((labels[key] for key in keys if labels.get(key)), "")


def _ms(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)
