"""Draws what a history recorded as lines of time: when each gang or job waited, started and ran, and how busy the GPUs
of each pod were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.cost.records import FULL_SHARE, Holder, Holding, Wait
from shoal.units.calendar_windows import TimeWindow

Phase = Literal["waits", "starts", "runs", "preempted"]
MOST_LINES = 100


class Stretch(msgspec.Struct, frozen=True):
    phase: Phase
    start_ms: int
    end_ms: int


class GangTimeline(msgspec.Struct, frozen=True):
    name: str
    """namespace/name of a gang, a job or a pod."""
    kind: Literal["gang", "job", "pod"]
    namespace: str
    queue: str
    pods: int
    gpus: float
    """What its pods held at most at once, of those in the window."""
    waited_ms: int
    ran_ms: int
    stretches: Sequence[Stretch]
    is_open: bool
    """Whether it still waits or runs."""


class PodUse(msgspec.Struct, frozen=True):
    """The mean use of the GPUs of a pod in every column, in percent; None where it held none or was not measured."""

    pod: str
    namespace: str
    node: str
    values: Sequence[float | None]


def gang_timelines(
    holdings: Iterable[Holding], waits: Iterable[Wait], window: TimeWindow
) -> tuple[list[GangTimeline], int]:
    """Those that began last, the newest first, and how many there are in all. Pods without GPUs are left out."""
    held: dict[tuple[str, str], list[Holding]] = {}
    waited: dict[tuple[str, str], list[Wait]] = {}
    for holding in holdings:
        if holding.devices and (key := _key(holding.holder)):
            held.setdefault(key, []).append(holding)
    for wait in waits:
        if (wait.gpus or wait.share) and (key := _key(wait.holder)):
            waited.setdefault(key, []).append(wait)
    keys = sorted(held.keys() | waited.keys(), key=lambda key: (-_begin(held.get(key, ()), waited.get(key, ())), key))
    found = [_timeline(key, held.get(key, ()), waited.get(key, ()), window) for key in keys[:MOST_LINES]]
    return found, len(keys)


def pod_uses(
    holdings: Iterable[Holding],
    devices: Sequence[str],
    times_ms: NDArray[np.int64],
    values: NDArray[np.float32],
    columns: Sequence[int],
) -> tuple[list[PodUse], int]:
    """Pods that held GPUs, the newest first, and how many there are in all. `values`: a row for each device, a column
    for each time. `columns`: where each column of the map begins, and where the last one ends."""
    row_of = {name: at for at, name in enumerate(devices)}
    mine = [one for one in holdings if one.devices and one.holder.pod and not one.holder.is_overhead]
    mine.sort(key=lambda one: (-one.start_ms, one.holder.namespace, one.holder.pod))
    edges = np.searchsorted(times_ms, np.array(columns, np.int64))
    return [_use(one, row_of, times_ms, values, edges) for one in mine[:MOST_LINES]], len(mine)


def _use(
    one: Holding,
    row_of: Mapping[str, int],
    times_ms: NDArray[np.int64],
    values: NDArray[np.float32],
    edges: NDArray[np.int64],
) -> PodUse:
    names = ((device.part, device.device) for device in one.devices)
    rows = [row_of[name] for pair in names if (name := next((each for each in pair if each in row_of), ""))]
    first = int(np.searchsorted(times_ms, one.start_ms))
    last = len(times_ms) if one.end_ms is None else int(np.searchsorted(times_ms, one.end_ms))
    found: list[float | None] = []
    for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        part = values[rows, max(begin, first) : min(end, last)] if rows else values[:0]
        known = part[~np.isnan(part)]
        found.append(float(known.mean()) if known.size else None)
    return PodUse(f"{one.holder.namespace}/{one.holder.pod}", one.holder.namespace, one.machine, found)


def _key(holder: Holder) -> tuple[str, str] | None:
    """Its kind and name; None for what has no name any more."""
    if holder.is_overhead or not holder.pod:
        return None
    if holder.gang:
        return ("gang", f"{holder.namespace}/{holder.gang}")
    if holder.job:
        return ("job", f"{holder.namespace}/{holder.job}")
    return ("pod", f"{holder.namespace}/{holder.pod}")


def _begin(held: Sequence[Holding], waited: Sequence[Wait]) -> int:
    return max((*(one.start_ms for one in held), *(one.start_ms for one in waited)), default=0)


def _timeline(
    key: tuple[str, str], held: Sequence[Holding], waited: Sequence[Wait], window: TimeWindow
) -> GangTimeline:
    spans: dict[Phase, list[tuple[int, int | None]]] = {
        "waits": [(one.start_ms, one.end_ms) for one in waited],
        "starts": [(one.start_ms, one.end_ms if one.running_ms is None else one.running_ms) for one in held],
        "runs": [(one.running_ms, one.end_ms) for one in held if one.running_ms is not None],
    }
    stretches = [
        Stretch(phase, start, end)
        for phase, found in spans.items()
        for start, end in _union(found, window)
        if end > start
    ]
    stretches += [
        Stretch("preempted", one.end_ms, one.end_ms)
        for one in held
        if one.is_preempted and one.end_ms is not None and window.start_ms <= one.end_ms <= window.end_ms
    ]
    holder = held[0].holder if held else waited[0].holder
    kind, name = key
    return GangTimeline(
        name=name,
        kind="gang" if kind == "gang" else "job" if kind == "job" else "pod",
        namespace=holder.namespace,
        queue=holder.queue,
        pods=len({*(one.holder.pod for one in held), *(one.holder.pod for one in waited)}),
        gpus=_most_gpus(held) if held else float(sum(one.gpus for one in waited if one.end_ms is None)),
        waited_ms=sum(one.end_ms - one.start_ms for one in stretches if one.phase == "waits"),
        ran_ms=sum(one.end_ms - one.start_ms for one in stretches if one.phase == "runs"),
        stretches=stretches,
        is_open=None in [*(one.end_ms for one in held), *(one.end_ms for one in waited)],
    )


def _most_gpus(held: Sequence[Holding]) -> float:
    changes: list[tuple[int, int]] = []
    for one in held:
        share = sum(device.share for device in one.devices)
        changes.append((one.start_ms, share))
        if one.end_ms is not None:
            changes.append((one.end_ms, -share))
    now = most = 0
    # At one moment what ends comes before what begins.
    for _, share in sorted(changes):
        now += share
        most = max(most, now)
    return most / FULL_SHARE


def _union(spans: Iterable[tuple[int, int | None]], window: TimeWindow) -> list[tuple[int, int]]:
    """Inside the window; overlapping ones as one."""
    found: list[tuple[int, int]] = []
    cut = (
        (max(start, window.start_ms), window.end_ms if end is None else min(end, window.end_ms)) for start, end in spans
    )
    for start, end in sorted(one for one in cut if one[0] < one[1]):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found
