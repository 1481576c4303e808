"""What was measured of jobs over a window: the peak of memory, the mean utilisation, the peak of an hour."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

import numpy as np

from shoal.api.checkpoint_annotations import tells_checkpoints
from shoal.cost.advice import MeasuredUse
from shoal.cost.records import Records
from shoal.store.history.history import UsageHistory
from shoal.store.history.sample_reader import Series
from shoal.units.calendar_windows import TimeWindow


def measured_jobs(history: UsageHistory, records: Records, window: TimeWindow) -> dict[str, MeasuredUse]:
    """By namespace/job; jobs without samples are left out."""
    metrics = ("memory", "util", "sm")
    memory, util, sm = (_by_device(history.measured.series(one, window.start_ms, window.end_ms)) for one in metrics)
    models = {one.name: one.model for one in records.machines}
    peaks: dict[str, list[tuple[float, list[float], str]]] = {}
    for held in records.holdings:
        job = f"{held.holder.namespace}/{held.holder.job}"
        end = window.end_ms if held.end_ms is None else held.end_ms
        for device in held.devices if held.holder.job else ():
            name = device.part if device.part in util[1] else device.device
            used = _inside(sm, name, held.start_ms, end)
            used = used or [one / 100 for one in _inside(util, name, held.start_ms, end)]
            mib = _inside(memory, name, held.start_ms, end)
            if used:
                peaks.setdefault(job, []).append((max(mib, default=0.0), used, models.get(held.machine, "")))
    return {job: _merged(found) for job, found in peaks.items()}


def jobs_with_checkpoints(records: Records) -> Iterable[str]:
    """Jobs whose pods have an annotation or a label that says that they write checkpoints."""
    for held in records.holdings:
        holder = held.holder
        if holder.job and (holder.tells_checkpoints or tells_checkpoints([key for key, _ in holder.labels])):
            yield f"{holder.namespace}/{holder.job}"


_ByDevice = tuple[Series, dict[str, int]]


def _by_device(series: Series) -> _ByDevice:
    return series, {name: at for at, name in enumerate(series.devices)}


def _inside(found: _ByDevice, device: str, start_ms: int, end_ms: int) -> list[float]:
    """The known values of a device in an interval."""
    series, rows = found
    row = rows.get(device)
    if row is None:
        return []
    values = series.values[row, (series.times_ms >= start_ms) & (series.times_ms < end_ms)]
    known: list[float] = values[~np.isnan(values)].astype(float).tolist()
    return known


def _merged(found: list[tuple[float, list[float], str]]) -> MeasuredUse:
    used = [one for _, values, _ in found for one in values]
    return MeasuredUse(
        model=found[0][2],
        memory_gib=Decimal(str(round(max(peak for peak, _, _ in found) / 1024, 3))),
        utilisation=Decimal(str(round(sum(used) / len(used), 4))),
        activity=Decimal(str(round(max(used), 4))),
    )
