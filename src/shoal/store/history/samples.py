"""Samples of devices: stored as they come, compacted into blocks, and read in the resolution that fits the question.

    raw      every sample, blocks of 10 minutes, kept for 2 days
    five     means of 5 minutes, blocks of an hour, kept for 90 days
    hour     means of an hour, kept for 2 years
    use      how much each holding was used in each hour, kept for 2 years

The pod, and with it the team, is resolved when an hour is compacted. A sample that comes twice counts once, one that is
older than what was compacted is dropped, and a time without samples has no value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.cost.records import FULL_SHARE, DeviceShare, Holding, Use
from shoal.store.history.device_numbers import DeviceNumbers
from shoal.store.history.ledger import Ledger
from shoal.store.history.sample_blocks import METRICS, Block, Values, decoded, encoded, joined, means
from shoal.store.history.sample_reader import Series, means_of_devices
from shoal.store.history.tables import StoredRow, Table, Tables
from shoal.store.history.use_edges import with_own_edges
from shoal.store.history.use_rows import PARTS, merged_uses, use_key
from shoal.units.calendar_windows import HOUR_MS

MINUTE_MS = 60_000
DAY_MS = 24 * HOUR_MS
_RAW_MS, _SLOT_MS = 10 * MINUTE_MS, 5 * MINUTE_MS
_SLOTS = HOUR_MS // _SLOT_MS
_LEVELS: tuple[tuple[Table, int], ...] = (("raw", 6 * HOUR_MS), ("five", 7 * DAY_MS), ("hour", 1 << 62))
"""Tables, and the longest window that is read from them."""
_FRESH = 3
"""Hours that are computed from samples while they are not compacted."""


class Retention(msgspec.Struct, frozen=True):
    raw_ms: int = 2 * DAY_MS
    five_ms: int = 90 * DAY_MS
    hour_ms: int = 730 * DAY_MS
    ledger_ms: int = 730 * DAY_MS
    most_bytes: int = 2 * 10**9
    """Above it, the oldest samples go first; the ledger stays."""


class DeviceSample(NamedTuple):
    """`values` in the order of METRICS; None where something was not measured."""

    device: str
    values: Sequence[float | None]


class TeamHours(NamedTuple):
    """GPU-hours in each hour."""

    held: NDArray[np.float64]
    active: NDArray[np.float64]
    used: NDArray[np.float64]


class Samples:
    def __init__(self, tables: Tables, ledger: Ledger, retention: Retention | None = None) -> None:
        self._tables = tables
        self._ledger = ledger
        self._retention = retention or Retention()
        self._devices = DeviceNumbers(tables)
        self._compacted_ms: int | None = None
        """The moment of the last compaction of this process."""

    # -- writing ----------------------------------------------------------------------------------------------------

    def add(self, at_ms: int, samples: Sequence[DeviceSample]) -> None:
        compacted = self._compacted("raw")
        if not samples or (compacted is not None and at_ms < compacted):
            return
        values = np.array([[np.nan if v is None else v for v in one.values] for one in samples], np.float32)
        with self._tables.transaction():
            self._devices.see((one.device for one in samples), at_ms)
            known = self._devices.by_name
            numbers = np.array([known[one.device] for one in samples], np.int32)
            data = msgspec.msgpack.encode((numbers.tobytes(), values.tobytes()))
            self._tables.put("scrape", [StoredRow(str(at_ms), at_ms, at_ms + 1, "", data)])

    def compact(self, now_ms: int) -> None:
        """Close blocks whose time is over, and delete what is too old. After a step of the clock forward the next calls
        follow it an hour at a time, because it may step back."""
        tables = self._tables
        if self._compacted_ms is not None:
            now_ms = min(now_ms, self._compacted_ms + HOUR_MS)
        self._compacted_ms = now_ms
        self._compact_raw(now_ms // _RAW_MS * _RAW_MS)
        self._compact_hours(now_ms // HOUR_MS * HOUR_MS)
        kept = self._retention
        tables.delete_ended("raw", now_ms - kept.raw_ms)
        tables.delete_ended("five", now_ms - kept.five_ms)
        tables.delete_ended("hour", now_ms - kept.hour_ms)
        tables.delete_ended("use", now_ms - kept.hour_ms)
        self._devices.forget(now_ms - kept.hour_ms, now_ms)
        self._ledger.delete_before(now_ms - kept.ledger_ms)
        self._bound(now_ms)

    def forget_teams(self, uids: Iterable[str]) -> None:
        """Remove the names of the teams from the records of use of these holdings."""
        keys, changed = np.array([use_key(uid) for uid in uids], np.uint64), []
        for row in self._tables.overlapping("use", 0, 1 << 62):
            names, rows = _use_block(row.data)
            is_gone = np.isin(rows["holding"], keys)
            if is_gone.any():
                kept = rows.copy()
                teams, kept["team"] = np.unique(
                    np.where(is_gone, "", np.array(names)[rows["team"]]), return_inverse=True
                )
                changed.append(row._replace(data=msgspec.msgpack.encode((teams.tolist(), kept.tobytes()))))
        self._tables.put("use", changed)

    # -- reading ----------------------------------------------------------------------------------------------------

    def series(self, metric: str, start_ms: int, end_ms: int) -> Series:
        """Values of all devices: raw up to 6 hours, means of 5 minutes up to 7 days, else of an hour. A finer level
        that was deleted is replaced by the next; one that begins as early as all of them is not."""
        begins = [one for table, _ in _LEVELS if (one := self._oldest(table)) is not None]
        needed = max(start_ms, min(begins, default=start_ms))
        for table, longest in _LEVELS:
            if end_ms - start_ms > longest:
                continue
            oldest = self._oldest(table)
            # A coarser block begins with its hour.
            if table != "hour" and (oldest is None or oldest // HOUR_MS * HOUR_MS > needed):
                continue
            return self._series(table, metric, start_ms, end_ms)
        return self._series("hour", metric, start_ms, end_ms)

    def uses(self, start_ms: int, end_ms: int, days: Sequence[int] = ()) -> dict[int, list[Use]]:
        """By `use_key` of the holding: hours in a row as one, divided at `days`."""
        columns: list[NDArray[np.int64]] = []
        for hour_ms, data in self._use_blocks(start_ms, end_ms):
            _, found = _use_block(data)
            table = np.empty((5, len(found)), np.int64)
            table[0] = found["holding"].view(np.int64)
            table[1] = hour_ms + found["first"].astype(np.int64) * _SLOT_MS
            table[2] = hour_ms + found["end"].astype(np.int64) * _SLOT_MS
            table[3] = found["active"]
            table[4] = found["used"]
            columns.append(table)
        return merged_uses(np.concatenate(columns, axis=1), days) if columns else {}

    def team_hours(self, start_ms: int, end_ms: int) -> dict[str, TeamHours]:
        """GPU-hours of each team in each hour of the window; what was not measured is not counted."""
        hours = -(-(end_ms - start_ms) // HOUR_MS)
        found: dict[str, TeamHours] = {}
        for hour_ms, data in self._use_blocks(start_ms, end_ms):
            hour = (hour_ms - start_ms) // HOUR_MS
            names, table = _use_block(data)
            if hour < 0:
                continue
            slots = table["end"].astype(np.int64) - table["first"]
            held = slots * table["share"] / (_SLOTS * _MILLI)
            sums = [
                np.bincount(table["team"], weights, len(names))
                for weights in (held, held * table["active"] / PARTS, held * table["used"] / PARTS)
            ]
            for at, name in enumerate(names):
                team = found.get(name)
                if team is None:
                    team = found[name] = TeamHours(*(np.zeros(hours) for _ in range(3)))
                for values, of_teams in zip(team, sums, strict=True):
                    values[hour] += of_teams[at]
        return found

    def power(self, start_ms: int, end_ms: int) -> dict[str, float]:
        """The mean power of each device in watts."""
        return means_of_devices(self.series("power", start_ms, end_ms))

    def notes(self) -> Sequence[str]:
        """Nothing is missing that was recorded."""
        return ()

    # internals

    def _use_blocks(self, start_ms: int, end_ms: int) -> Iterator[tuple[int, bytes]]:
        """Those that are stored, then those of the last hours, whose samples are not compacted yet."""
        for row in self._tables.overlapping("use", start_ms, end_ms):
            yield row.start_ms, row.data
        oldest = self._oldest("raw")
        begin = self._compacted("hour") or (None if oldest is None else oldest // HOUR_MS * HOUR_MS)
        if begin is None:
            return
        self._devices.read()
        for hour in range(max(begin, end_ms // HOUR_MS * HOUR_MS - _FRESH * HOUR_MS), end_ms, HOUR_MS):
            if hour + HOUR_MS <= start_ms:
                continue
            raw = {}
            for metric in ("util", "sm"):
                rows = (row for row in self._tables.overlapping("raw", hour, hour + HOUR_MS) if row.tenant == metric)
                blocks = [decoded(metric, row.data) for row in rows]
                raw[metric] = joined([*blocks, *self._scraped(metric, hour, hour + HOUR_MS)])
            if data := self._used(raw, hour):
                yield hour, data

    def _oldest(self, table: Table) -> int | None:
        if table != "raw":
            return self._tables.oldest(table)
        found = [one for one in (self._tables.oldest("raw"), self._tables.oldest("scrape")) if one is not None]
        return min(found, default=None)

    def _series(self, table: Table, metric: str, start_ms: int, end_ms: int) -> Series:
        rows = [row for row in self._tables.overlapping(table, start_ms, end_ms) if row.tenant == metric]
        blocks = [decoded(metric, row.data) for row in rows]
        if table == "raw":
            blocks += self._scraped(metric, start_ms, end_ms)
        block = joined(blocks)
        inside = (block.times_ms >= start_ms) & (block.times_ms < end_ms)
        self._devices.read()
        names = {number: name for name, number in self._devices.by_name.items()}
        return Series([names[int(one)] for one in block.devices], block.times_ms[inside], block.values[:, inside])

    def _scraped(self, metric: str, start_ms: int, end_ms: int) -> list[Block]:
        """Samples that are in no block yet."""
        at = METRICS.index(metric)
        return [Block(one.devices, one.times_ms, one.values[:, at : at + 1]) for one in self._scrapes(start_ms, end_ms)]

    def _scrapes(self, start_ms: int, end_ms: int) -> list[Block]:
        """One for each moment, with a column for each metric."""
        found = []
        for row in self._tables.overlapping("scrape", start_ms, end_ms):
            numbers, values = msgspec.msgpack.decode(row.data, type=tuple[bytes, bytes])
            devices, last = np.unique(np.frombuffer(numbers, np.int32)[::-1], return_index=True)
            table = np.frombuffer(values, np.float32).reshape(-1, len(METRICS))[::-1][last]
            found.append(Block(devices, np.array([row.start_ms], np.int64), table))
        return found

    def _compact_raw(self, until_ms: int) -> None:
        first = self._tables.oldest("scrape")
        while first is not None and (start := first // _RAW_MS * _RAW_MS) < until_ms:
            end = start + _RAW_MS
            scrapes = self._scrapes(start, end)
            with self._tables.transaction():
                for at, metric in enumerate(METRICS):
                    block = joined([Block(one.devices, one.times_ms, one.values[:, at : at + 1]) for one in scrapes])
                    self._put("raw", metric, (start, end), block)
                self._tables.delete_ended("scrape", end)
                self._mark("raw", end)
            first = self._tables.oldest("scrape")

    def _compact_hours(self, until_ms: int) -> None:
        start = self._next_hour()
        while start is not None and start + HOUR_MS <= until_ms:
            end = start + HOUR_MS
            slots = range(start, end, _SLOT_MS)
            with self._tables.transaction():
                raw = {}
                for metric in METRICS:
                    rows = (row for row in self._tables.overlapping("raw", start, end) if row.tenant == metric)
                    raw[metric] = block = joined([decoded(metric, row.data) for row in rows])
                    if len(block.times_ms):
                        is_peak = metric == "xid"
                        self._put("five", metric, (start, end), means(block, slots, _SLOT_MS, is_peak=is_peak))
                        self._put("hour", metric, (start, end), means(block, [start], HOUR_MS, is_peak=is_peak))
                if used := self._used(raw, start):
                    self._tables.put("use", [StoredRow(str(start), start, end, "", used)])
                self._mark("hour", end)
            start = self._next_hour()

    def _next_hour(self) -> int | None:
        oldest, done = self._tables.oldest("raw"), self._compacted("hour")
        if done is None:
            return None if oldest is None else oldest // HOUR_MS * HOUR_MS
        newest = self._compacted("raw")
        return done if newest is not None and newest > done else None

    def _used(self, raw: Mapping[str, Block], start: int) -> bytes:
        util, sm = raw["util"], raw["sm"]
        if not len(util.times_ms):
            return b""
        measured = np.where(np.isnan(sm.values), util.values / 100, sm.values)
        is_active = np.where(
            np.isnan(measured), np.nan, (np.nan_to_num(util.values) > 0) | (np.nan_to_num(sm.values) > 0)
        )
        slots = range(start, start + HOUR_MS, _SLOT_MS)
        samples = [Block(util.devices, util.times_ms, one.astype(np.float32)) for one in (is_active, measured)]
        of_slots = [means(one, slots, _SLOT_MS) for one in samples]
        row_of = {int(number): at for at, number in enumerate(util.devices)}
        found: list[_UseRow] = []
        teams: dict[str, int] = {}
        for key, holding in self._ledger.holdings(start, start + HOUR_MS).items():
            rows = [row_of[number] for one in holding.devices if (number := self._measured(one, row_of)) is not None]
            if rows:
                share = sum(one.share for one in holding.devices) * _MILLI // FULL_SHARE
                who = (use_key(key), teams.setdefault(holding.holder.team, len(teams)), min(share, _MOST_SHARE))
                own = (
                    with_own_edges(_rows(slot, rows), _rows(sample, rows), holding, _SLOT_MS)
                    for slot, sample in zip(of_slots, samples, strict=True)
                )
                found += _runs(who, holding, start, *own)
        return msgspec.msgpack.encode((list(teams), np.array(found, _USE_ROW).tobytes())) if found else b""

    def _measured(self, one: DeviceShare, known: Mapping[int, int]) -> int | None:
        """The number under which the device was measured: its part, or for a replica the whole GPU."""
        for name in (one.part, one.device):
            if name and (number := self._devices.by_name.get(name)) is not None and number in known:
                return number
        return None

    def _put(self, table: Table, metric: str, interval: tuple[int, int], block: Block) -> None:
        start, end = interval
        self._tables.put(table, [StoredRow(f"{metric} {start}", start, end, metric, encoded(metric, block))])

    def _mark(self, table: str, at_ms: int) -> None:
        self._tables.put("meta", [StoredRow(f"compacted {table}", at_ms, 1 << 62, "", b"")])

    def _compacted(self, table: str) -> int | None:
        row = self._tables.get("meta", f"compacted {table}")
        return None if row is None else row.start_ms

    def _bound(self, now_ms: int) -> None:
        """Delete a tenth of the time of the finest level that is left, until the limit is kept."""
        steps: list[tuple[Table, int]] = [("raw", self._retention.raw_ms), ("five", self._retention.five_ms)]
        for table, length in steps:
            for tenth in range(9, 0, -1):
                if self._tables.size_bytes() <= self._retention.most_bytes:
                    return
                self._tables.delete_ended(table, now_ms - length * tenth // 10)


_UseRow = tuple[int, int, int, int, int, int, int]
_USE_ROW = np.dtype(
    [
        ("holding", "<u8"),
        ("team", "<u2"),
        ("share", "<u4"),
        ("first", "u1"),
        ("end", "u1"),
        ("active", "<u2"),
        ("used", "<u2"),
    ]
)
_MILLI, _MOST_SHARE = 1000, 2**32 - 1


def _use_block(data: bytes) -> tuple[list[str], NDArray[np.void]]:
    """The teams of an hour, and its rows."""
    names, rows = msgspec.msgpack.decode(data, type=tuple[list[str], bytes])
    return names, np.frombuffer(rows, _USE_ROW)


def _rows(block: Block, rows: Sequence[int]) -> Block:
    return Block(block.devices[rows], block.times_ms, block.values[rows])


def _runs(who: tuple[int, int, int], holding: Holding, start: int, active: Values, used: Values) -> Iterable[_UseRow]:
    """Slots in a row with measurements while the pod held the devices, with their means."""
    first = max(0, (holding.start_ms - start) // _SLOT_MS)
    end = _SLOTS if holding.end_ms is None else min(_SLOTS, -(-(holding.end_ms - start) // _SLOT_MS))
    is_known = ~np.all(np.isnan(active), axis=0)
    at = first
    while at < end:
        run = at
        while run < end and is_known[run]:
            run += 1
        if run > at:
            parts = active[:, at:run], used[:, at:run]
            busy, mean = (round(float(np.nanmean(part)) * PARTS) for part in parts)
            yield (*who, at, run, min(busy, PARTS), min(mean, PARTS))
        at = run + 1
