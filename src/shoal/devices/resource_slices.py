"""Divides the claimable devices of a node into ResourceSlices, within the limits of the API.

`partitions_of` describes, instead of the MIG instances that exist, all that could: each profile at each position, with
counters of which a device takes its part, so that a scheduler chooses only instances that exist side by side. A GPU
whose MIG mode changes with a reset only offers what its present mode allows. Counters are in slices of their own, as
Kubernetes 1.35 and later require.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, TypeVar

import msgspec

from shoal.api.slices import (
    MOST_COUNTER_SETS,
    MOST_DEVICES,
    Counter,
    CounterConsumption,
    CounterSet,
    Device,
    ResourcePool,
    ResourceSliceSpec,
)
from shoal.api.wire import to_json
from shoal.data.mig import Layout, Profile, layout_of_product
from shoal.devices.claimable_devices import (
    CLAIM_DRIVER,
    ClaimableDevice,
    ClaimableInput,
    claimable_devices,
    engines_of,
    gpu_attributes,
    instance_capacity,
    instance_name,
    minor_of,
    text_attribute,
    whole_gpu,
)
from shoal.devices.mig_gpus import changes_mode_by_reset
from shoal.devices.mig_instances import possible_counts
from shoal.devices.port import InstalledGpu
from shoal.devices.product_names import product_of_device
from shoal.units.quantity import Quantity

Obj = dict[str, Any]
T = TypeVar("T")
_MOST_SPECIAL_DEVICES = 64
"""In a slice in which a device has taints or consumes counters."""
_MEDIA = "media-extensions"


class Published(msgspec.Struct, frozen=True):
    """The content of a node's pool."""

    devices: tuple[Device, ...]
    counters: tuple[CounterSet, ...] = ()


def slice_specs(node: str, content: Published, generation: int) -> tuple[Obj, ...]:
    """The `spec` of each slice. A node without devices has one empty slice, so that its pool is known and complete."""
    is_special = any(device.taints or device.consumes_counters for device in content.devices)
    most = _MOST_SPECIAL_DEVICES if is_special else MOST_DEVICES
    counted = [{"shared_counters": sets} for sets in _batches(content.counters, MOST_COUNTER_SETS)]
    listed = [{"devices": part} for part in _by_gpu(content.devices, most)]
    parts: Sequence[Mapping[str, Any]] = [*counted, *listed] or [{}]
    pool = ResourcePool(node, len(parts), generation)
    specs = (ResourceSliceSpec(driver=CLAIM_DRIVER, pool=pool, node_name=node, **part) for part in parts)
    return tuple(msgspec.json.decode(to_json(spec)) for spec in specs)


def partitions_of(given: ClaimableInput) -> Published:
    """GPUs whose model has no known MIG layouts are listed as they are, as are those without MIG."""
    devices: list[Device] = []
    sets: list[CounterSet] = []
    for gpu in given.gpus:
        whole = whole_gpu(gpu, given)
        layout = layout_of_gpu(gpu)
        if layout is None:
            devices.append(whole)
            continue
        name = f"gpu-{minor_of(gpu)}-counter-set"
        counters = counters_of_layout(layout)
        sets.append(CounterSet(name, dict(counters)))
        if not (gpu.is_mig and changes_mode_by_reset(gpu.compute_capability)):
            devices.append(_consuming(whole, name, counters))
        if not gpu.is_mig and changes_mode_by_reset(gpu.compute_capability):
            continue
        for profile in layout.profiles:
            for start in profile.starts:
                partition = _partition(gpu, profile, start, given, whole)
                devices.append(_consuming(partition, name, counters_of_partition(profile, start, counters)))
    return Published(tuple(devices), tuple(sets))


def possible_devices(given: ClaimableInput) -> dict[str, ClaimableDevice]:
    """By name: those that exist, and those of `partitions_of`. An instance that does not exist yet has no UUID."""
    found = {}
    for one in partitions_of(given).devices:
        uuid = one.attributes.get("uuid")
        found[one.name] = ClaimableDevice("" if uuid is None else str(uuid.value()), one)
    return found | {one.name: one for one in claimable_devices(given)}


def _batches(values: Sequence[T], most: int) -> list[Sequence[T]]:
    return [values[at : at + most] for at in range(0, len(values), most)]


def _by_gpu(devices: Sequence[Device], most: int) -> list[tuple[Device, ...]]:
    """The devices of a GPU are in one slice, so schedulers, which go slice by slice, fill one GPU after the other."""
    found: list[tuple[Device, ...]] = []
    for _, group in groupby(devices, key=lambda device: device.name.partition("-mig-")[0]):
        for part in _batches(tuple(group), most):
            if found and len(found[-1]) + len(part) <= most:
                found[-1] = (*found[-1], *part)
            else:
                found.append(tuple(part))
    return found


def layout_of_gpu(gpu: InstalledGpu) -> Layout | None:
    """None: the GPU has no MIG, or its layouts are not known."""
    if gpu.is_mig is None:
        return None
    return layout_of_product(product_of_device(gpu.name).removeprefix("NVIDIA-"))


def _partition(gpu: InstalledGpu, profile: Profile, start: int, given: ClaimableInput, whole: Device) -> Device:
    kind = {"type": "mig", "parentUUID": gpu.uuid, "profile": profile.name}
    return Device(
        name=instance_name(gpu, profile, start),
        attributes={name: text_attribute(text) for name, text in kind.items()} | gpu_attributes(gpu, given),
        capacity=instance_capacity(profile, start, profile.memory_mib),
        taints=whole.taints,
    )


def _consuming(device: Device, counter_set: str, counters: Mapping[str, Counter]) -> Device:
    return msgspec.structs.replace(device, consumes_counters=(CounterConsumption(counter_set, dict(counters)),))


@lru_cache(maxsize=64)
def counters_of_layout(layout: Layout) -> Mapping[str, Counter]:
    """Of a whole GPU: of each engine the most that instances side by side have. An engine of which a profile is not
    known is not counted.
    """
    found: dict[str, Counter] = {}
    for engine in engines_of(layout.profiles[0]):
        amounts = {profile.name: engines_of(profile)[engine] for profile in layout.profiles}
        known = {profile: amount for profile, amount in amounts.items() if amount is not None}
        if len(known) == len(amounts):
            most = max(sum(known[one] * count for one, count in counts) for counts in possible_counts(layout.name))
            found |= {_spelled(engine): _counter(most)} if most else {}
    if not {"jpeg-engines", "ofa-engines"} & found.keys() and any(one.holds_media() for one in layout.profiles):
        # Where engines are not known, nothing else keeps two instances from having them.
        found[_MEDIA] = _counter(1)
    return found | {f"memory-slice-{place}": _counter(1) for place in range(layout.memory_slices)}


def counters_of_partition(profile: Profile, start: int, of_gpu: Mapping[str, Counter]) -> dict[str, Counter]:
    amounts = {_spelled(name): amount or 0 for name, amount in engines_of(profile).items()}
    found = {name: _counter(amount) for name, amount in amounts.items() if amount and name in of_gpu}
    if _MEDIA in of_gpu and profile.holds_media():
        found[_MEDIA] = _counter(1)
    return found | {f"memory-slice-{start + place}": _counter(1) for place in range(profile.width)}


def _counter(amount: int) -> Counter:
    return Counter(Quantity.of(amount))


def _spelled(name: str) -> str:
    """`copyEngines` as `copy-engines`."""
    return re.sub("[A-Z]", lambda match: f"-{match[0].lower()}", name)
