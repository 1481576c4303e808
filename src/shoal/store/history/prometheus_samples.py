"""Reads samples of devices from a Prometheus-compatible server, for the pods that the ledger says held them.

A series that names a pod is of that pod alone, as long as it has the label. A series without one counts for a pod in
intervals that lie within its holding. What the server does not answer, or has not, is no use: the time counts as not
measured, and `notes` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.cost.records import Holding, Use
from shoal.store.history.history import ReaderOf
from shoal.store.history.ledger import Ledger
from shoal.store.history.prometheus_queries import (
    MINUTE_MS,
    PromRow,
    Slots,
    active_expression,
    gpu_expression,
    instance_expression,
    range_question,
    rows_by_name,
    rows_of,
    slots_of,
    used_expression,
)
from shoal.store.history.prometheus_server import PrometheusAddress, PrometheusServer
from shoal.store.history.sample_reader import Series, means_of_devices
from shoal.store.history.use_rows import PARTS, merged_uses, use_key
from shoal.units.calendar_windows import TimeWindow, rfc3339
from shoal.units.errors import TemporaryError, UserError, one_line

_AT_ONCE = 4
_MOST_SLOTS = 288
"""Of one question: a day of 5 minutes."""
_MOST_HOURS = 48
_MIG = "MIG-"
_Question = tuple[str, Slots]


def prometheus_reader(address: PrometheusAddress, monotonic_s: Callable[[], float] = monotonic) -> ReaderOf:
    """For `read_history`."""
    server = PrometheusServer(address, monotonic_s)
    return lambda ledger: PrometheusSamples(server, ledger, monotonic_s)


class PrometheusSamples:
    def __init__(self, server: PrometheusServer, ledger: Ledger, monotonic_s: Callable[[], float]) -> None:
        self._server = server
        self._ledger = ledger
        self._monotonic_s = monotonic_s
        self._end_s = 0.0
        self._notes: dict[str, None] = {}
        self._is_silent = False
        """It did not answer; the rest of the window is not asked for."""

    def notes(self) -> Sequence[str]:
        return list(self._notes)

    def series(self, metric: str, start_ms: int, end_ms: int) -> Series:
        slots = slots_of(TimeWindow(start_ms, end_ms))
        parts = list(self._parts(slots))
        selector = self._server.address.selector
        texts = [make(metric, selector, slots.step_ms) for make in (gpu_expression, instance_expression)]
        questions = [(text, part) for part in parts for text in texts]
        found: dict[str, NDArray[np.float32]] = {}
        names = self._instances(start_ms, end_ms)
        for (_, part), rows in zip(questions, self._answers(questions), strict=True):
            at = (part.start_ms - slots.start_ms) // slots.step_ms
            for name, of_name in rows_by_name(rows, names).items():
                values = found.setdefault(name, np.full(slots.number, np.nan, np.float32))
                values[at : at + part.number] = _means([row.values for row in of_name])
        devices = sorted(found)
        table = np.stack([found[name] for name in devices]) if devices else np.zeros((0, slots.number), np.float32)
        times = slots.starts_ms()
        inside = (times >= start_ms) & (times < end_ms) & ~np.isnan(table).all(axis=0)
        return Series(devices, times[inside], table[:, inside])

    def uses(self, start_ms: int, end_ms: int, days: Sequence[int] = ()) -> dict[int, list[Use]]:
        slots = slots_of(TimeWindow(start_ms, end_ms), finest_ms=5 * MINUTE_MS)
        holdings = {uid: one for uid, one in self._ledger.holdings(start_ms, end_ms).items() if one.devices}
        if not holdings:
            return {}
        selector = self._server.address.selector
        texts = [make(selector, slots.step_ms) for make in (active_expression, used_expression)]
        parts = list(self._parts(slots))
        answers = self._answers([(text, part) for part in parts for text in texts])
        columns: list[NDArray[np.int64]] = []
        first: int | None = None
        held_in = _divided(holdings, parts)
        for part, held, at in zip(parts, held_in, range(0, len(answers), len(texts)), strict=True):
            active, used = answers[at], answers[at + 1]
            columns += _PartOfUse(part, active, used, held).columns()
            if active and first is None:
                first = part.start_ms + part.step_ms * min(_first_known(row.values) for row in active)
        self._tell_begin(first, start_ms, slots.step_ms, holdings)
        return merged_uses(np.concatenate(columns, axis=1), days) if columns else {}

    def power(self, start_ms: int, end_ms: int) -> dict[str, float]:
        return means_of_devices(self.series("power", start_ms, end_ms))

    # internals

    @staticmethod
    def _parts(slots: Slots) -> Iterator[Slots]:
        return slots.parts(_MOST_SLOTS if slots.step_ms <= 5 * MINUTE_MS else _MOST_HOURS)

    def _answers(self, questions: Sequence[_Question]) -> list[list[PromRow]]:
        """In the order of the questions; without rows where the server does not answer."""
        self._end_s = self._monotonic_s() + self._server.address.total_s
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            return list(threads.map(self._rows, questions))

    def _rows(self, question: _Question) -> list[PromRow]:
        expression, slots = question
        left_s = self._end_s - self._monotonic_s()
        if self._is_silent or left_s <= 0:
            if not self._is_silent:
                self._note(f"{self._server.address.url} took longer than {self._server.address.total_s:.0f} s")
            self._is_silent = True
            return []
        try:
            body = self._server.ask("query_range", range_question(expression, slots), left_s)
            rows, warnings = rows_of(body, slots)
        except (TemporaryError, UserError) as error:
            # A UserError: the file of the token is being replaced, for example.
            self._is_silent = True
            self._note(str(error))
            return []
        except (msgspec.DecodeError, ValueError):
            self._is_silent = True
            self._note(f"{self._server.address.url} answers as no Prometheus server does")
            return []
        for one in warnings[:3]:
            self._note(f"{self._server.address.url} warns: {one_line(one)[:300]}", "some use may be missing")
        return rows

    def _note(self, text: str, rest: str = "what it would have said of the use of GPUs is missing") -> None:
        self._notes[f"{text}; {rest}"] = None

    def _tell_begin(self, first: int | None, start_ms: int, step_ms: int, holdings: dict[str, Holding]) -> None:
        held_ms = max(start_ms, min(one.start_ms for one in holdings.values()))
        url = self._server.address.url
        if self._is_silent:
            return
        if first is None:
            self._notes[f"{url} has no samples of GPUs in the window: use is unknown"] = None
        elif first > held_ms + step_ms:
            self._notes[f"{url} has samples of GPUs from {rfc3339(first)}: use before is unknown"] = None

    def _instances(self, start_ms: int, end_ms: int) -> dict[tuple[str, str, str], str]:
        """The MIG instance that a pod held of a GPU."""
        return {
            (one.device, held.holder.namespace, held.holder.pod): one.part
            for held in self._ledger.holdings(start_ms, end_ms).values()
            for one in held.devices
            if one.part
        }


class _PartOfUse:
    """The use of holdings in some slots."""

    def __init__(
        self, slots: Slots, active: Sequence[PromRow], used: Sequence[PromRow], holdings: dict[str, Holding]
    ) -> None:
        self._slots = slots
        self._holdings = holdings
        self._holders = {(one.holder.namespace, one.holder.pod) for one in holdings.values()}
        self._of_pod: dict[tuple[str, str], list[_Measured]] = {}
        self._of_device: dict[str, list[_Measured]] = {}
        utilised = {row[:4]: row.values for row in used}
        for row in active:
            if (values := utilised.get(row[:4])) is not None:
                one = _Measured(row, values)
                self._of_pod.setdefault((row.namespace, row.pod), []).append(one)
                self._of_device.setdefault(row.device, []).append(one)

    def columns(self) -> Iterator[NDArray[np.int64]]:
        start, step, number = self._slots
        end_ms = start + step * number
        for uid, held in self._holdings.items():
            until = end_ms if held.end_ms is None else min(end_ms, held.end_ms)
            first, last = max(0, (held.start_ms - start) // step), -(-(until - start) // step)
            if first >= last or not (measured := self._active_and_used(held)):
                continue
            active, used = measured
            known = np.flatnonzero(~np.isnan(active[first:last]) & ~np.isnan(used[first:last])) + first
            if not known.size:
                continue
            table = np.empty((5, known.size), np.int64)
            table[0] = use_key(uid)
            table[1] = start + known * step
            table[2] = table[1] + step
            table[3] = np.rint(np.clip(active[known], 0, 1) * PARTS)
            table[4] = np.rint(np.clip(used[known], 0, 1) * PARTS)
            yield table

    def _active_and_used(self, held: Holding) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
        own = self._own(held)
        others = self._without_pod(held)
        if not own and not others:
            return None
        found = []
        within = self._within(held) if others else None
        for at in range(2):
            values = _means([one.pair[at] for one in own]) if own else np.full(self._slots.number, np.nan, np.float32)
            if within is not None:
                values = np.where(np.isnan(values) & within, _means([one.pair[at] for one in others]), values)
            found.append(values)
        return found[0], found[1]

    def _own(self, held: Holding) -> list[_Measured]:
        """Series that name the pod. Where the ledger does not know the devices by their UUIDs, all of them."""
        found = self._of_pod.get((held.holder.namespace, held.holder.pod), [])
        devices = {one.device for one in held.devices}
        found = [one for one in found if one.row.device in devices] or found
        is_part = any(one.part.startswith(_MIG) for one in held.devices)
        return [one for one in found if bool(one.row.instance) == is_part] or found

    def _without_pod(self, held: Holding) -> list[_Measured]:
        """Series of its GPUs that name no pod which held something; of a shared GPU all series, since the exporter
        names one of its pods."""
        found = []
        for share in held.devices:
            if not share.part.startswith(_MIG):
                for one in self._of_device.get(share.device, ()):
                    is_other = (one.row.namespace, one.row.pod) in self._holders
                    if not one.row.instance and (share.part or not is_other):
                        found.append(one)
        return found

    def _within(self, held: Holding) -> NDArray[np.bool_]:
        starts = self._slots.starts_ms()
        end = starts[-1] + self._slots.step_ms if held.end_ms is None else held.end_ms
        inside: NDArray[np.bool_] = (starts >= held.start_ms) & (starts + self._slots.step_ms <= end)
        return inside


class _Measured:
    def __init__(self, row: PromRow, used: NDArray[np.float32]) -> None:
        self.row = row
        self.pair = row.values, used


def _divided(holdings: dict[str, Holding], parts: Sequence[Slots]) -> list[dict[str, Holding]]:
    """Those that have a moment of each part."""
    found: list[dict[str, Holding]] = [{} for _ in parts]
    start, length = parts[0].start_ms, parts[0].step_ms * parts[0].number
    for uid, held in holdings.items():
        last = len(parts) - 1 if held.end_ms is None else min(len(parts) - 1, (held.end_ms - start) // length)
        for at in range(max(0, (held.start_ms - start) // length), last + 1):
            found[at][uid] = held
    return found


def _means(rows: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    if len(rows) == 1:
        return rows[0]
    table = np.stack(rows)
    known = ~np.isnan(table)
    counts = known.sum(axis=0)
    sums = np.where(known, table, 0).sum(axis=0)
    found: NDArray[np.float32] = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan).astype(np.float32)
    return found


def _first_known(values: NDArray[np.float32]) -> int:
    return int(np.flatnonzero(~np.isnan(values))[0])
