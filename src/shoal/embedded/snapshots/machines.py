"""Makes a simulated machine of a Node object: the same name, labels, taints, resources and GPUs.

Guarantees: an unknown GPU model is simulated under its product name, with the memory that the labels give. What a
simulated machine cannot be is in the notes: unhealthy GPUs, a node that is not ready, a MIG layout that is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from shoal.data.gpus import PRODUCT_LABEL, Model, read_product
from shoal.devices.claimable_devices import CLAIM_DRIVER
from shoal.devices.gpu_slot import GpuSlot
from shoal.devices.mig_layout_checks import layout_problem
from shoal.devices.names import GPU, MIG_PREFIX, OWN_NUMA_POLICY, OWN_TOPOLOGY, SHARED_SUFFIX
from shoal.devices.product_names import product_label
from shoal.embedded.machines.installed_gpus import identity
from shoal.embedded.machines.machine import Machine, Sharing
from shoal.embedded.machines.machine_types import shape_named
from shoal.embedded.machines.shape import MachineShape, even, usable_mib
from shoal.units.errors import UserError
from shoal.units.quantity import Quantity

Obj = dict[str, Any]
_TYPE = "node.kubernetes.io/instance-type"
_LIFECYCLE = "node.kubernetes.io/"
_COUNT, _MEMORY, _REPLICAS = "nvidia.com/gpu.count", "nvidia.com/gpu.memory", "nvidia.com/gpu.replicas"
_SHARING, _MIG_CONFIG, _MIG_STRATEGY = (
    "nvidia.com/gpu.sharing-strategy",
    "nvidia.com/mig.config",
    "nvidia.com/mig.strategy",
)
_DEFAULT_MIB = 80 * 1024
_MOST_GPUS = 64
_FIRST_BUS, _BUSES = 0x10, 0xE0


class ReproducedNode(NamedTuple):
    machine: Machine
    obj: Obj
    """The Node to create, with what users change on nodes: taints and cordons."""
    notes: tuple[str, ...] = ()


class ClaimDriver(NamedTuple):
    """A driver that gives the GPUs of a node to resource claims."""

    has_dynamic_mig: bool = False
    """Whether it creates MIG instances for claims: their devices draw on counters that they share."""


def claim_drivers(objects: Iterable[Obj]) -> dict[str, ClaimDriver]:
    """By node, as the ResourceSlices say."""
    found: dict[str, ClaimDriver] = {}
    for each in objects:
        spec = each.get("spec") or {}
        node = spec.get("nodeName")
        if each.get("kind") == "ResourceSlice" and spec.get("driver") == CLAIM_DRIVER and node:
            is_dynamic = bool(spec.get("sharedCounters")) or found.get(node, ClaimDriver()).has_dynamic_mig
            found[node] = ClaimDriver(is_dynamic)
    return found


def reproduced_node(node: Obj, driver: ClaimDriver | None = None) -> ReproducedNode:
    """`driver`: None where a device plugin advertises the GPUs."""
    meta, status = node.get("metadata") or {}, node.get("status") or {}
    labels: dict[str, str] = dict(meta.get("labels") or {})
    capacity = {name: str(amount) for name, amount in (status.get("capacity") or {}).items()}
    allocatable = {name: str(amount) for name, amount in (status.get("allocatable") or capacity).items()}
    shape = shape_named(labels.get(_TYPE, ""))
    sharing = _sharing(labels, capacity)
    found = _slots(meta["name"], labels, capacity, sharing, shape)
    slots = _as_reported(found, (meta.get("annotations") or {}).get(OWN_TOPOLOGY, ""))
    model = read_product(slots[0].product).model if slots else None
    problem = layout_problem(labels[_MIG_CONFIG], model, len(slots)) if model and labels.get(_MIG_CONFIG) else None
    spec = node.get("spec") or {}
    taints = tuple(
        {key: str(value) for key, value in taint.items() if key in ("key", "value", "effect")}
        for taint in spec.get("taints") or ()
        if not str(taint.get("key", "")).startswith(_LIFECYCLE)
    )
    policy = (meta.get("annotations") or {}).get(OWN_NUMA_POLICY, "")
    strategy = labels.get(_MIG_STRATEGY, "")
    machine = Machine(
        name=meta["name"],
        profile=labels.get(_TYPE, "") or "snapshot",
        labels=labels,
        capacity=_plain(capacity, slots),
        allocatable=_plain(allocatable, slots),
        gpus=slots,
        annotations={OWN_NUMA_POLICY: policy} if policy else {},
        taints=taints,
        machine_type=labels.get("nvidia.com/gpu.machine", ""),
        provider_id=spec.get("providerID", ""),
        mig_strategy=strategy if strategy in ("single", "mixed") else "none",  # type: ignore[arg-type]  # checked
        mig_config="" if problem is not None else labels.get(_MIG_CONFIG, "") if slots else "",
        sharing=sharing,
        gives_by_claims=driver is not None,
        has_dynamic_mig=driver is not None and driver.has_dynamic_mig,
    )
    unschedulable = {"unschedulable": True} if spec.get("unschedulable") else {}
    head = {"name": meta["name"], "labels": labels, "annotations": dict(machine.annotations)}
    made: Obj = {"apiVersion": "v1", "kind": "Node", "metadata": head, "spec": {**unschedulable}}
    if taints:
        made["spec"]["taints"] = [dict(taint) for taint in taints]
    if machine.provider_id:
        made["spec"]["providerID"] = machine.provider_id
    return ReproducedNode(machine, made, tuple(_notes(node, capacity, allocatable, slots, problem is not None)))


def _slots(
    name: str,
    labels: Mapping[str, str],
    capacity: Mapping[str, str],
    sharing: Sharing | None,
    shape: MachineShape | None,
) -> tuple[GpuSlot, ...]:
    product = read_product(labels.get(PRODUCT_LABEL, ""))
    model = product.model or (shape.gpu_model() if shape is not None and not product.name else None)
    if model is not None and model.vendor != "nvidia":
        return ()
    count = _number(labels.get(_COUNT, "")) or _advertised(capacity) // (sharing.replicas if sharing else 1)
    if product.mig_profile:
        # With the MIG strategy single the labels and the plugin count instances.
        count = shape.gpus if shape is not None else _gpus_of_instances(model, product.mig_profile, count)
    count = min(count, _MOST_GPUS)
    is_like = shape is not None and shape.gpus == count and count > 0
    islands = shape.islands if shape is not None and is_like else even(count, 1)
    numa = shape.numa if shape is not None and is_like else even(count, 1)
    called = product_label(model) if model is not None else labels.get(PRODUCT_LABEL, "") or "unknown"
    memory = _number(labels.get(_MEMORY, "")) or (usable_mib(model) if model is not None else _DEFAULT_MIB)
    slots = (_slot(name, index, count, model, called, memory) for index in range(count))
    return tuple(msgspec.structs.replace(slot, island=islands[slot.index], numa=numa[slot.index]) for slot in slots)


def _slot(node: str, index: int, count: int, model: Model | None, product: str, memory: int) -> GpuSlot:
    return GpuSlot(
        index=index,
        uuid=f"GPU-{identity(node, f'gpu/{index}')}",
        model=model.name if model is not None else "",
        product=product,
        memory_mib=memory,
        numa=0,
        island=0,
        pci=f"00000000:{_FIRST_BUS + index * (_BUSES // count):02X}:00.0",
        compute_capability=model.compute_capability if model is not None else "",
        is_mig_capable=model is not None and bool(model.mig),
    )


class _ReportedGpu(msgspec.Struct, frozen=True):
    """What a node annotation of Shoal says of a GPU."""

    index: int
    uuid: str
    pci: str = ""
    numa: int = 0
    island: int = 0


class _Reported(msgspec.Struct, frozen=True):
    gpus: tuple[_ReportedGpu, ...] = ()


def _as_reported(slots: tuple[GpuSlot, ...], annotation: str) -> tuple[GpuSlot, ...]:
    """With the ids and positions that the node has reported, to which pods refer."""
    if not annotation:
        return slots
    try:
        reported = {gpu.index: gpu for gpu in msgspec.json.decode(annotation, type=_Reported).gpus}
    except msgspec.DecodeError:
        return slots
    if reported.keys() != {slot.index for slot in slots}:
        return slots
    return tuple(
        msgspec.structs.replace(
            slot,
            uuid=reported[slot.index].uuid,
            pci=reported[slot.index].pci or slot.pci,
            numa=reported[slot.index].numa,
            island=reported[slot.index].island,
        )
        for slot in slots
    )


def _gpus_of_instances(model: Model | None, profile: str, instances: int) -> int:
    layout = model.mig_layout() if model is not None else None
    known = layout.profile(profile) if layout is not None else None
    return -(-instances // known.max) if known is not None else 0


def _sharing(labels: Mapping[str, str], capacity: Mapping[str, str]) -> Sharing | None:
    replicas = _number(labels.get(_REPLICAS, ""))
    if replicas < 2:
        return None
    is_renamed = GPU + SHARED_SUFFIX in capacity
    if labels.get(_SHARING) == "mps":
        return Sharing("mps", replicas, rename=is_renamed, fail_requests_greater_than_one=True)
    return Sharing("time-slicing", replicas, rename=is_renamed)


def _advertised(capacity: Mapping[str, str]) -> int:
    amounts = [capacity.get(name, "0") for name in (GPU, GPU + SHARED_SUFFIX)]
    return sum(map(_amount, amounts))


def _plain(amounts: Mapping[str, str], slots: tuple[GpuSlot, ...]) -> dict[str, str]:
    """Without what the device plugin of the simulated node advertises itself."""
    own = (GPU, GPU + SHARED_SUFFIX) if slots else ()
    return {name: amount for name, amount in amounts.items() if name not in own and not name.startswith(MIG_PREFIX)}


def _notes(
    node: Obj,
    capacity: Mapping[str, str],
    allocatable: Mapping[str, str],
    slots: tuple[GpuSlot, ...],
    is_other_layout: bool,
) -> Iterator[str]:
    if any(slot.model == "" for slot in slots):
        yield f'its GPU model "{slots[0].product}" is not known: its GPUs have no MIG and no figures of performance'
    missing = _amount(capacity.get(GPU, "0")) - _amount(allocatable.get(GPU, "0"))
    if missing > 0 and slots:
        yield f"{missing} unhealthy GPU{'s' * (missing > 1)}: all are healthy here"
    if any(name.startswith(MIG_PREFIX) and _amount(amount) for name, amount in capacity.items()):
        labels = (node.get("metadata") or {}).get("labels") or {}
        if is_other_layout or not labels.get(_MIG_CONFIG):
            yield "its MIG layout: the label nvidia.com/mig.config names none that is known"
    conditions = (node.get("status") or {}).get("conditions") or ()
    if any(each.get("type") == "Ready" and each.get("status") != "True" for each in conditions):
        yield "it is not ready: it is ready here"


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _amount(text: str) -> int:
    try:
        return Quantity.parse(text).value()
    except UserError:
        return 0
