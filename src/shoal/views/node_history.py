"""Tells what a history recorded of one node: which pods held its GPUs before, and which Xid errors these reported.

An exporter reports the last Xid of a GPU until the next one, so an error is seen where the number changes: the same
number twice in a row is one error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.cost.records import FULL_SHARE, DeviceShare, Holder, Holding, Machine
from shoal.units.calendar_windows import HOUR_MS

MOST_HOLDERS = 200
_STEP_MS = 5 * 60_000
"""The longest time between two samples that belong together."""


class XidChange(msgspec.Struct, frozen=True):
    """A sample with another Xid than the one before it."""

    device: str
    number: int
    at_ms: int
    before_ms: int
    """The sample before, between which and the one after the error occurred."""
    after_ms: int
    is_first: bool
    """Whether it is the first sample of the device: the error may have occurred at any time before."""


class SeenXid(msgspec.Struct, frozen=True):
    gpu: int
    device: str
    number: int
    at_ms: int
    is_first: bool
    pods: Sequence[str]
    """Those that held the GPU at that time, as namespace/name."""
    unnamed: int
    """How many others held it."""


class FormerHolder(msgspec.Struct, frozen=True):
    pod: str
    """As namespace/name."""
    job: str
    """Its gang or its job."""
    gpus: Sequence[str]
    """Their numbers on the node, and which part of one it held."""
    start_ms: int
    end_ms: int
    gpu_hours: float
    is_preempted: bool


class NodePast(msgspec.Struct, frozen=True):
    former: Sequence[FormerHolder] = ()
    """The newest first."""
    all_former: int = 0
    unnamed: int = 0
    """Pods that are not named, and what they held."""
    unnamed_gpu_hours: float = 0.0
    xids: Sequence[SeenXid] = ()
    """The newest first."""


class NodeRecords(msgspec.Struct, frozen=True):
    """What was recorded of a window; of other nodes as well."""

    name: str
    """Of the node."""
    gpus: Sequence[Sequence[str]]
    """For each GPU that it has now, the names under which it is measured."""
    machines: Sequence[Machine]
    holdings: Sequence[Holding]
    changes: Sequence[XidChange]


def xid_changes(devices: Sequence[str], times_ms: NDArray[np.int64], values: NDArray[np.float32]) -> list[XidChange]:
    """`values`: a row for each device, a column for each time."""
    found = []
    for row in np.flatnonzero((values > 0).any(axis=1)).tolist():
        known = np.flatnonzero(~np.isnan(values[row]))
        numbers = values[row, known].astype(np.int64)
        times = times_ms[known].tolist()
        for at in np.flatnonzero(np.diff(numbers, prepend=0)).tolist():
            if numbers[at]:
                moment = times[at]
                before = times[at - 1] if at and moment - times[at - 1] <= _STEP_MS else moment
                after = times[at + 1] if at + 1 < len(times) and times[at + 1] - moment <= _STEP_MS else moment
                found.append(XidChange(devices[row], int(numbers[at]), moment, before, after, is_first=at == 0))
    return found


def node_past(records: NodeRecords, is_named: Callable[[Holder], bool]) -> NodePast:
    """`is_named`: whether a pod may be named; of the others there are sums."""
    held = [one for one in records.holdings if one.machine == records.name and one.devices]
    held = [one for one in held if not one.holder.is_overhead]
    numbers = _gpu_numbers(records, held)
    ended = sorted((one for one in held if one.end_ms is not None), key=lambda one: (-(one.end_ms or 0), one.start_ms))
    named = [one for one in ended if is_named(one.holder)]
    unnamed = [one for one in ended if not is_named(one.holder)]
    seen = [
        _seen(change, numbers[change.device], [one for one in held if _has(one, change, numbers)], is_named)
        for change in records.changes
        if change.device in numbers
    ]
    return NodePast(
        former=[_former(one, numbers) for one in named[:MOST_HOLDERS]],
        all_former=len(named),
        unnamed=len(unnamed),
        unnamed_gpu_hours=sum(map(_gpu_hours, unnamed)),
        xids=sorted(seen, key=lambda one: (-one.at_ms, one.gpu, one.device)),
    )


def _gpu_numbers(records: NodeRecords, held: Iterable[Holding]) -> dict[str, int]:
    """By all names of devices and of their parts."""
    found = {
        device: number
        for machine in records.machines
        if machine.name == records.name
        for number, device in enumerate(machine.devices)
    }
    found |= {name: number for number, names in enumerate(records.gpus) for name in names}
    for one in held:
        for device in one.devices:
            if device.part and device.device in found:
                found.setdefault(device.part, found[device.device])
    return found


def _has(one: Holding, change: XidChange, numbers: Mapping[str, int]) -> bool:
    """Whether it held the GPU around that time; of a MIG instance that is measured alone, that instance."""
    if one.start_ms > change.after_ms or (one.end_ms is not None and one.end_ms < change.before_ms):
        return False
    names = [name for device in one.devices for name in (device.device, device.part) if name]
    return change.device in names or any(
        numbers.get(device.device) == numbers[change.device] and not device.part for device in one.devices
    )


def _seen(change: XidChange, gpu: int, held: Sequence[Holding], is_named: Callable[[Holder], bool]) -> SeenXid:
    pods = [_full_name(one.holder) for one in held if is_named(one.holder)]
    return SeenXid(
        gpu, change.device, change.number, change.at_ms, change.is_first, pods, unnamed=len(held) - len(pods)
    )


def _former(one: Holding, numbers: Mapping[str, int]) -> FormerHolder:
    holder = one.holder
    return FormerHolder(
        pod=_full_name(holder),
        job=holder.gang or holder.job,
        gpus=_gpus(one.devices, numbers),
        start_ms=one.start_ms,
        end_ms=one.end_ms or one.start_ms,
        gpu_hours=_gpu_hours(one),
        is_preempted=one.is_preempted,
    )


def _gpus(devices: Sequence[DeviceShare], numbers: Mapping[str, int]) -> list[str]:
    """`0-3`, `25 % of 5`; by its name where the number of a device is not known any more."""
    whole = sorted(numbers[one.device] for one in devices if one.share >= FULL_SHARE and one.device in numbers)
    # Of numbers in a row the difference to their place is the same.
    rows = [[number for _, number in row] for _, row in groupby(enumerate(whole), lambda pair: pair[1] - pair[0])]
    found = [f"{row[0]}-{row[-1]}" if len(row) > 1 else f"{row[0]}" for row in rows]
    for one in devices:
        name = f"{numbers[one.device]}" if one.device in numbers else one.device
        if one.share < FULL_SHARE:
            found.append(f"{100 * one.share / FULL_SHARE:.0f} % of {name}")
        elif one.device not in numbers:
            found.append(name)
    return found


def _gpu_hours(one: Holding) -> float:
    length_ms = (one.end_ms or one.start_ms) - one.start_ms
    return length_ms / HOUR_MS * sum(device.share for device in one.devices) / FULL_SHARE


def _full_name(holder: Holder) -> str:
    return f"{holder.namespace}/{holder.pod}"
