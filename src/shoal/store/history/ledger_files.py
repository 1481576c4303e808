"""The ledger as Parquet files, one for each table and day of UTC.

    holdings/day=2026-10-29/holdings.parquet     also machines, waits, gaps

Rows are cut at midnight, so that the rows of a day add up to its time. The same ledger gives the same bytes: writing a
day again replaces its files. Days before the history, and those that it has deleted, have no files; a day that is not
over has what is known.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from shoal.cost.records import FULL_SHARE, PPM, BrokenDevice, Holding, Machine, MachineCondition, Span, Wait
from shoal.store.history.history import UsageHistory
from shoal.store.history.samples import DAY_MS
from shoal.units.calendar_windows import TimeWindow, rfc3339
from shoal.units.errors import UserError, Where

PUT = Callable[[str, bytes], None]
"""Stores a file under a path, in place of one that is there."""
_TEXT, _MOMENT, _SECONDS, _COUNT, _IS, _PART = "text", "moment", "seconds", "count", "is", "part"
_HOLDINGS: Mapping[str, str] = {
    **dict.fromkeys(("uid", "pod", "namespace", "job", "owner_kind", "gang", "queue", "team", "node"), _TEXT),
    **dict.fromkeys(("start", "end", "bound", "running"), _MOMENT),
    "is_open": _IS,
    "gpus": _PART,
    "gpu_seconds": _SECONDS,
    **dict.fromkeys(("measured_seconds", "active_seconds", "used_seconds"), _SECONDS),
    **dict.fromkeys(("cpu_milli", "memory_mib"), _COUNT),
    **dict.fromkeys(("is_preempted", "is_overhead"), _IS),
    "borrowed": _PART,
    "devices": "devices",
    "labels": "labels",
}
_MACHINES: Mapping[str, str] = {
    **dict.fromkeys(("node", "instance_type", "pool", "region", "capacity", "model"), _TEXT),
    **dict.fromkeys(("start", "end"), _MOMENT),
    "is_open": _IS,
    **dict.fromkeys(("gpus", "cpu_milli", "memory_mib"), _COUNT),
    **dict.fromkeys(("booting_seconds", "not_ready_seconds", "broken_gpu_seconds"), _SECONDS),
}
_WAITS: Mapping[str, str] = {
    **dict.fromkeys(("pod", "namespace", "job", "gang", "queue", "team"), _TEXT),
    **dict.fromkeys(("start", "end"), _MOMENT),
    "is_open": _IS,
    "gpus": _PART,
    **dict.fromkeys(("cpu_milli", "memory_mib"), _COUNT),
    "reason": _TEXT,
}
_GAPS: Mapping[str, str] = dict.fromkeys(("start", "end"), _MOMENT)
_Row = dict[str, Any]


class Exported(NamedTuple):
    days: list[str]
    rows: int
    files: int


def export_days(history: UsageHistory, window: TimeWindow, put: PUT) -> Exported:
    """The days that the window touches, as far as they were recorded. Raises UserError without pyarrow."""
    arrow = _arrow()
    since, until = history.ledger.since_ms(), history.ledger.recorded_ms()
    days, rows, files = [], 0, 0
    if since is None or until is None:
        return Exported([], 0, 0)
    first = max(window.start_ms, since) // DAY_MS * DAY_MS
    if (deleted := history.ledger.deleted_ms()) is not None:
        # A day of which a part was deleted may have a file that is complete.
        first = max(first, -(-deleted // DAY_MS) * DAY_MS)
    for start in range(first, min(window.end_ms, until), DAY_MS):
        day = TimeWindow(start, min(start + DAY_MS, until))
        name = rfc3339(start)[:10]
        for table, (columns, found) in _tables(history, day).items():
            put(f"{table}/day={name}/{table}.parquet", _written(arrow, columns, found))
            rows += len(found)
            files += 1
        days.append(name)
    return Exported(days, rows, files)


def parquet_bytes(columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Rows of these columns. Raises UserError without pyarrow."""
    return _written(_arrow(), columns, rows)


def _tables(history: UsageHistory, day: TimeWindow) -> dict[str, tuple[Mapping[str, str], list[_Row]]]:
    start, end = day
    held = [_holding(uid, one, day) for uid, one in history.holdings(start, end).items() if _touches(one, day)]
    machines = history.ledger.machines(start, end)
    waits = [_wait(one, day) for one in history.ledger.waits(start, end) if _touches(one, day)]
    return {
        "holdings": (_HOLDINGS, held),
        "machines": (_MACHINES, [_machine(one, day) for one in machines if _touches(one, day)]),
        "waits": (_WAITS, waits),
        "gaps": (_GAPS, _gaps(history.ledger.gaps(start, end), day)),
    }


def _holding(uid: str, one: Holding, day: TimeWindow) -> _Row:
    start, end = _cut(one, day)
    share = sum(device.share for device in one.devices) / FULL_SHARE
    measured = active = used = 0.0
    for use in one.uses:
        seconds = max(0, min(use.end_ms, end) - max(use.start_ms, start)) / 1000
        measured += seconds
        active += seconds * use.active_ppm / PPM
        used += seconds * use.used_ppm / PPM
    holder = one.holder
    return {
        "uid": uid,
        "pod": holder.pod,
        "namespace": holder.namespace,
        "job": holder.job,
        "owner_kind": holder.owner_kind,
        "gang": holder.gang,
        "queue": holder.queue,
        "team": holder.team,
        "node": one.machine,
        "start": start,
        "end": end,
        "bound": one.start_ms,
        "running": one.running_ms,
        "is_open": one.end_ms is None,
        "gpus": share,
        "gpu_seconds": share * (end - start) / 1000,
        "measured_seconds": measured,
        "active_seconds": active,
        "used_seconds": used,
        "cpu_milli": one.cpu_milli,
        "memory_mib": one.memory_mib,
        "is_preempted": one.is_preempted,
        "is_overhead": holder.is_overhead,
        "borrowed": one.borrowed_ppm / PPM,
        "devices": [
            {"device": device.device, "part": device.part, "share": device.share / FULL_SHARE} for device in one.devices
        ],
        "labels": list(holder.labels),
    }


def _machine(one: Machine, day: TimeWindow) -> _Row:
    start, end = _cut(one, day)
    seconds = {
        kind: sum(_seconds(span, start, end) for span in one.conditions if span.condition == kind)
        for kind in ("booting", "not-ready")
    }
    return {
        "node": one.name,
        "instance_type": one.instance_type,
        "pool": one.pool,
        "region": one.region,
        "capacity": one.capacity,
        "model": one.model,
        "start": start,
        "end": end,
        "is_open": one.end_ms is None,
        "gpus": len(one.devices),
        "cpu_milli": one.cpu_milli,
        "memory_mib": one.memory_mib,
        "booting_seconds": seconds["booting"],
        "not_ready_seconds": seconds["not-ready"],
        "broken_gpu_seconds": sum(_seconds(span, start, end) for span in one.broken),
    }


def _wait(one: Wait, day: TimeWindow) -> _Row:
    start, end = _cut(one, day)
    holder = one.holder
    return {
        "pod": holder.pod,
        "namespace": holder.namespace,
        "job": holder.job,
        "gang": holder.gang,
        "queue": holder.queue,
        "team": holder.team,
        "start": start,
        "end": end,
        "is_open": one.end_ms is None,
        "gpus": one.gpus + one.share / FULL_SHARE,
        "cpu_milli": one.cpu_milli,
        "memory_mib": one.memory_mib,
        "reason": one.reason,
    }


def _gaps(gaps: Iterable[Span], day: TimeWindow) -> list[_Row]:
    found = [_cut(one, day) for one in gaps]
    return [{"start": start, "end": end} for start, end in sorted(found) if start < end]


_Interval = Holding | Machine | Wait | Span


def _touches(one: _Interval, day: TimeWindow) -> bool:
    start, end = _cut(one, day)
    return start < end


def _cut(one: _Interval, day: TimeWindow) -> tuple[int, int]:
    return max(one.start_ms, day.start_ms), day.end_ms if one.end_ms is None else min(one.end_ms, day.end_ms)


def _seconds(one: MachineCondition | BrokenDevice, start_ms: int, end_ms: int) -> float:
    end = end_ms if one.end_ms is None else min(one.end_ms, end_ms)
    return max(0, end - max(one.start_ms, start_ms)) / 1000


def _arrow() -> Any:
    try:
        import_module("pyarrow.parquet")
        return import_module("pyarrow")
    except ImportError:
        fix = "install it with pip install 'shoal[parquet]'"
        raise UserError("the package pyarrow is not installed", where=Where(path="--parquet"), fix=fix) from None


def _written(arrow: Any, columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> bytes:
    types = _types(arrow)
    schema = arrow.schema([(name, types[kind]) for name, kind in columns.items()])
    values = [[row[name] for row in rows] for name in columns]
    arrays = [arrow.array(column, types[kind]) for column, kind in zip(values, columns.values(), strict=True)]
    sink = io.BytesIO()
    arrow.parquet.write_table(arrow.Table.from_arrays(arrays, schema=schema), sink, compression="zstd")
    return sink.getvalue()


def _types(arrow: Any) -> dict[str, Any]:
    device = [("device", arrow.string()), ("part", arrow.string()), ("share", arrow.float64())]
    return {
        _TEXT: arrow.string(),
        _MOMENT: arrow.timestamp("ms", tz="UTC"),
        _SECONDS: arrow.float64(),
        _COUNT: arrow.int64(),
        _IS: arrow.bool_(),
        _PART: arrow.float64(),
        "devices": arrow.list_(arrow.struct(device)),
        "labels": arrow.map_(arrow.string(), arrow.string()),
        "amount": arrow.decimal128(20, 2),
        "day": arrow.date32(),
    }
