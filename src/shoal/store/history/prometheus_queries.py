"""The expressions by which samples of the DCGM exporter are read from a Prometheus server, and their answers.

Each value is of the interval that ends a millisecond after its moment, so that the first moment of an interval belongs
to it and the last one does not. Where Prometheus kept its own labels, those of the exporter begin with `exported_`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.store.history.dcgm_samples import FIELDS
from shoal.units.calendar_windows import HOUR_MS, TimeWindow

MINUTE_MS = 60_000
_FINE_MS, _MIDDLE_MS = 6 * HOUR_MS, 7 * 24 * HOUR_MS
_BY = "UUID, uuid, GPU_I_ID, exported_namespace, exported_pod, namespace, pod"
_FINER = {5 * MINUTE_MS: "15s", HOUR_MS: "1m"}
"""The step in which activity is counted within an interval."""


class Slots(NamedTuple):
    """Intervals of one length, in a row."""

    start_ms: int
    step_ms: int
    number: int

    def starts_ms(self) -> NDArray[np.int64]:
        return self.start_ms + self.step_ms * np.arange(self.number, dtype=np.int64)

    def parts(self, most: int) -> Iterator[Slots]:
        for at in range(0, self.number, most):
            yield Slots(self.start_ms + at * self.step_ms, self.step_ms, min(most, self.number - at))


class PromRow(NamedTuple):
    """The values of one series of a device."""

    device: str
    instance: str
    """The number of the MIG instance; empty for a whole GPU."""
    namespace: str
    pod: str
    values: NDArray[np.float32]
    """Of the slots; not a number where there is none."""


def slots_of(window: TimeWindow, *, finest_ms: int = MINUTE_MS) -> Slots:
    """Those that a window touches: minutes up to 6 hours, 5 minutes up to 7 days, else hours."""
    length = window.length_ms
    step = finest_ms if length <= _FINE_MS else 5 * MINUTE_MS if length <= _MIDDLE_MS else HOUR_MS
    start = window.start_ms // step * step
    return Slots(start, step, -(-(window.end_ms - start) // step))


def range_question(expression: str, slots: Slots) -> dict[str, str]:
    first = slots.start_ms + slots.step_ms - 1
    last = first + (slots.number - 1) * slots.step_ms
    return {
        "query": expression,
        "start": f"{first / 1000:.3f}",
        "end": f"{last / 1000:.3f}",
        "step": f"{slots.step_ms / 1000:g}",
    }


def used_expression(selector: str, step_ms: int) -> str:
    """The mean activity of the multiprocessors as a part of 1, or the utilisation where that is not measured."""
    length = _length(step_ms)
    found = [f"avg by ({_BY}) (avg_over_time({one}[{length}]))" for one in _fields("sm", selector)]
    (util,) = _fields("util", selector)
    return " or ".join([*found, f"avg by ({_BY}) (avg_over_time({util}[{length}])) / 100"])


def active_expression(selector: str, step_ms: int) -> str:
    """The part of the time with any activity: of the GPU, or of its multiprocessors."""
    (util,) = _fields("util", selector)
    first, second = _fields("sm", selector)
    parts = f"(({util} + {first}) or ({util} + {second}) or {util} or {first} or {second})"
    return f"avg by ({_BY}) (avg_over_time(({parts} > bool 0)[{_length(step_ms)}:{_FINER[step_ms]}]))"


def gpu_expression(metric: str, selector: str, step_ms: int) -> str:
    """The mean of each whole GPU, over all pods that the exporter named; the largest value of Xid errors."""
    found = []
    for field in _fields(metric, _joined('GPU_I_ID=""', selector)):
        # Before a minute is over it has few samples: the last one of two minutes is its value.
        ranged = f"{field}[{_length(step_ms)}]"
        if metric == "xid":
            found.append(f"max by (UUID, uuid) (max_over_time({ranged}))")
        elif step_ms == MINUTE_MS:
            found.append(f"avg by (UUID, uuid) (last_over_time({field}[2m]))")
        else:
            sums, counts = (f"sum by (UUID, uuid) ({name}_over_time({ranged}))" for name in ("sum", "count"))
            found.append(f"{sums} / {counts}")
    return " or ".join(found)


def instance_expression(metric: str, selector: str, step_ms: int) -> str:
    """The mean of each MIG instance while a pod had it."""
    how = "max" if metric == "xid" else "avg"
    length = "2m" if step_ms == MINUTE_MS else _length(step_ms)
    over = "last" if step_ms == MINUTE_MS else how
    fields = _fields(metric, _joined('GPU_I_ID!=""', selector))
    return " or ".join(f"{how} by ({_BY}) ({over}_over_time({one}[{length}]))" for one in fields)


def rows_of(body: bytes, slots: Slots) -> tuple[list[PromRow], list[str]]:
    """The series of an answer, and its warnings. Raises msgspec.DecodeError for an answer of another form."""
    answer = _decoder.decode(body)
    found: dict[tuple[str, str, str, str], NDArray[np.float32]] = {}
    for one in answer.data.result:
        labels = one.metric
        device = labels.get("UUID") or labels.get("uuid", "")
        if not device:
            continue
        is_exported = bool(labels.get("exported_pod"))
        names = ("exported_namespace", "exported_pod") if is_exported else ("namespace", "pod")
        key = (device, labels.get("GPU_I_ID", ""), labels.get(names[0], ""), labels.get(names[1], ""))
        values = np.full(slots.number, np.nan, np.float32)
        for at_s, text in one.values:
            place = (round(at_s * 1000) - slots.start_ms) // slots.step_ms
            value = float(text)
            if 0 <= place < slots.number and math.isfinite(value):
                values[place] = value
        before = found.get(key)
        found[key] = values if before is None else np.fmax(before, values)
    rows = [PromRow(*key, values) for key, values in found.items() if not np.isnan(values).all()]
    return rows, answer.warnings


class _RangeSeries(msgspec.Struct):
    metric: dict[str, str] = {}
    values: list[tuple[float, str]] = []


class _RangeMatrix(msgspec.Struct):
    result: list[_RangeSeries]


class _RangeAnswer(msgspec.Struct):
    data: _RangeMatrix
    warnings: list[str] = []


_decoder = msgspec.json.Decoder(_RangeAnswer)


def _fields(metric: str, selector: str) -> list[str]:
    return [f"{field}{{{selector}}}" if selector else field for field in FIELDS[metric]]


def _joined(*matchers: str) -> str:
    return ",".join(one for one in matchers if one)


def _length(step_ms: int) -> str:
    return f"{step_ms // MINUTE_MS}m"


def rows_by_name(rows: Iterable[PromRow], parts: Mapping[tuple[str, str, str], str]) -> dict[str, list[PromRow]]:
    """Rows by the names that the history has of their devices. `parts`: MIG instances by GPU, namespace and pod."""
    found: dict[str, list[PromRow]] = {}
    for row in rows:
        name = row.device
        if row.instance:
            name = parts.get((row.device, row.namespace, row.pod)) or f"{row.device}/{row.instance}"
        found.setdefault(name, []).append(row)
    return found
