"""The devices of a node as parts of its GPUs, from what the node says of itself (`shoal.dev/topology` and labels).

A GPU is one device; a cut one is its MIG instances, each as wide as its memory slices; one that is shared is as many
replicas as its label says, side by side although in truth they take turns.

Values beyond those of any real machine are ignored: a label that users may write must not slow the dashboard down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from shoal.data.gpus import PRODUCT_LABEL, read_product
from shoal.data.mig import Layout
from shoal.views.dashboard.facts import Slot

TOPOLOGY = "shoal.dev/topology"
_REPLICAS = "nvidia.com/gpu.replicas"
_MOST_REPLICAS = 64
MOST_GPUS = 64
_MOST_SLOTS = 1_024
"""Of one node."""


class _Instance(msgspec.Struct):
    profile: str
    start: int
    uuid: str


class _Gpu(msgspec.Struct):
    index: int
    uuid: str
    mig: Sequence[_Instance] = ()


class _Topology(msgspec.Struct):
    gpus: Sequence[_Gpu] = ()


def slots(annotations: Mapping[str, str], labels: Mapping[str, str]) -> tuple[Slot, ...]:
    """What cannot be read is as if it were not there."""
    text = annotations.get(TOPOLOGY)
    if not text:
        return ()
    try:
        gpus = msgspec.json.decode(text, type=_Topology).gpus
    except (msgspec.DecodeError, RecursionError):
        return ()
    model = read_product(labels.get(PRODUCT_LABEL, "")).model
    layout = model.mig_layout() if model is not None else None
    found = (slot for gpu in gpus if 0 <= gpu.index < MOST_GPUS for slot in _devices(gpu, layout))
    return tuple(islice((part for slot in found for part in _replicas(slot, labels.get(_REPLICAS, ""))), _MOST_SLOTS))


def _devices(gpu: _Gpu, layout: Layout | None) -> Iterator[Slot]:
    if gpu.mig and layout is not None:
        return _instances(gpu, layout)
    return iter([Slot(gpu.uuid, gpu.index, 0.0, 1.0)])


def _instances(gpu: _Gpu, layout: Layout) -> Iterator[Slot]:
    for one in gpu.mig:
        if not 0 <= one.start < layout.memory_slices:
            continue
        profile = layout.profile(one.profile)
        width = profile.width if profile is not None else 1
        yield Slot(one.uuid, gpu.index, one.start / layout.memory_slices, width / layout.memory_slices)


def _replicas(slot: Slot, text: str) -> Iterator[Slot]:
    count = int(text) if text.isdecimal() and len(text) <= len(str(_MOST_REPLICAS)) else 1
    if not 1 < count <= _MOST_REPLICAS:
        yield slot
        return
    for number in range(count):
        width = slot.width / count
        yield Slot(f"{slot.device}::{number}", slot.gpu, slot.start + number * width, width)
