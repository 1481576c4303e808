"""The ledger of a history: machines, what pods held of them, waits, and the time in which nothing was recorded.

A recorder writes `LedgerChanges`: whole rows, so that writing one again changes nothing. `recorded_ms` is the moment
until which the ledger is complete; the next recorder begins with what is open and closes the time between as a gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from shoal.cost.records import Holder, Holding, Machine, Span, Wait
from shoal.store.history.quota_spans import without_namespace
from shoal.store.history.tables import StoredRow, Table, Tables

_RECORDED, _SINCE, _DELETED = "recorded", "since", "deleted"
_LONGEST_MS = 1 << 62
T = TypeVar("T")
LEDGER: tuple[Table, ...] = ("machine", "holding", "wait", "gap", "alert", "created", "quota")


class LedgerChanges(msgspec.Struct):
    """Rows by their keys, and the moment until which they are complete."""

    recorded_ms: int
    machines: dict[str, Machine] = {}
    holdings: dict[str, Holding] = {}
    waits: dict[str, Wait] = {}
    gap: Span | None = None


class OpenRows(msgspec.Struct, frozen=True):
    machines: dict[str, Machine]
    holdings: dict[str, Holding]
    waits: dict[str, Wait]


class Ledger:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    # -- writing ----------------------------------------------------------------------------------------------------

    def write(self, changes: LedgerChanges) -> None:
        tables = self._tables
        with tables.transaction():
            tables.put("machine", (_row(key, one, "") for key, one in changes.machines.items()))
            tables.put("holding", (_row(key, one, one.holder.namespace) for key, one in changes.holdings.items()))
            tables.put("wait", (_row(key, one, one.holder.namespace) for key, one in changes.waits.items()))
            if changes.gap is not None:
                tables.put("gap", [_row(str(changes.gap.start_ms), changes.gap, "")])
            for key, at_ms in ((_SINCE, self.since_ms()), (_DELETED, self.deleted_ms())):
                # A clock that was ahead has stepped back.
                is_ahead = at_ms is not None and at_ms > changes.recorded_ms
                if is_ahead or (at_ms is None and key == _SINCE):
                    tables.put("meta", [_moment(key, changes.recorded_ms)])
            tables.put("meta", [_moment(_RECORDED, changes.recorded_ms)])

    def fill(self, changes: LedgerChanges, since_ms: int, gaps: Iterable[Span]) -> None:
        """Write rows of the past. `gaps` are what is unknown from `since_ms` to `changes.recorded_ms`."""
        tables, end = self._tables, changes.recorded_ms
        with tables.transaction():
            tables.delete("gap", [row.key for row in tables.overlapping("gap", since_ms, end)])
            tables.put("gap", [_row(str(one.start_ms), one, "") for one in gaps])
            tables.put("meta", [_moment(_SINCE, since_ms)])
            if (deleted := self.deleted_ms()) is not None and since_ms < deleted:
                tables.delete("meta", [_DELETED])
            self.write(changes)

    def forget(self, namespace: str) -> int:
        """Remove the data of a namespace. What its pods held remains, without their names and labels, so that the time
        is not counted as free. Returns the number of changed rows."""
        tables = self._tables
        with tables.transaction():
            held = tables.of_tenant("holding", namespace)
            for row in held:
                one = msgspec.msgpack.decode(row.data, type=Holding)
                holder = Holder(pod="", is_overhead=one.holder.is_overhead)
                tables.put("holding", [_row(row.key, msgspec.structs.replace(one, holder=holder), "")])
            waits = tables.of_tenant("wait", namespace)
            tables.delete("wait", (row.key for row in waits))
            alerts = tables.of_tenant("alert", namespace)
            tables.delete("alert", (row.key for row in alerts))
            created = tables.of_tenant("created", namespace)
            tables.delete("created", (row.key for row in created))
            tables.delete("budget", (namespace,))
            tables.delete("quota", (row.key for row in tables.of_tenant("quota", namespace)))
            changed = (without_namespace(row, namespace) for row in tables.of_tenant("quota", ""))
            tables.put("quota", [row for row in changed if row is not None])
        return len(held) + len(waits) + len(alerts) + len(created)

    def delete_before(self, before_ms: int) -> int:
        """Rows that ended by then; how many they were. What was free before is unknown from now on."""
        tables, since = self._tables, self.since_ms()
        with tables.transaction():
            count = sum(tables.delete_ended(table, before_ms) for table in LEDGER)
            if since is not None and since < before_ms:
                tables.put("meta", [_moment(_SINCE, before_ms), _moment(_DELETED, before_ms)])
        return count

    # -- reading ----------------------------------------------------------------------------------------------------

    def recorded_ms(self) -> int | None:
        """None: nothing was recorded yet."""
        row = self._tables.get("meta", _RECORDED)
        return None if row is None else row.start_ms

    def since_ms(self) -> int | None:
        row = self._tables.get("meta", _SINCE)
        return None if row is None else row.start_ms

    def deleted_ms(self) -> int | None:
        """Until when rows were deleted because of their age; None while all are there."""
        row = self._tables.get("meta", _DELETED)
        return None if row is None else row.start_ms

    def open(self) -> OpenRows:
        return OpenRows(
            dict(_decoded(self._tables.open("machine"), Machine)),
            dict(_decoded(self._tables.open("holding"), Holding)),
            dict(_decoded(self._tables.open("wait"), Wait)),
        )

    def machines(self, start_ms: int, end_ms: int) -> list[Machine]:
        return [one for _, one in _decoded(self._tables.overlapping("machine", start_ms, end_ms), Machine)]

    def holdings(self, start_ms: int, end_ms: int) -> dict[str, Holding]:
        """By the uid of the pod."""
        return dict(_decoded(self._tables.overlapping("holding", start_ms, end_ms), Holding))

    def nameless(self) -> list[str]:
        """The uids of pods whose names were removed."""
        found = _decoded(self._tables.of_tenant("holding", ""), Holding)
        return [uid for uid, one in found if not one.holder.pod]

    def waits(self, start_ms: int, end_ms: int) -> list[Wait]:
        return [one for _, one in _decoded(self._tables.overlapping("wait", start_ms, end_ms), Wait)]

    def gaps(self, start_ms: int, end_ms: int) -> list[Span]:
        """Of the interval: also the time before the history began and after what was recorded last."""
        found = [one for _, one in _decoded(self._tables.overlapping("gap", start_ms, end_ms), Span)]
        since, until = self.since_ms(), self.recorded_ms()
        if since is None or until is None:
            return [Span(start_ms, end_ms)]
        if start_ms < since:
            # What was deleted may end within a gap.
            later = (msgspec.structs.replace(one, start_ms=max(one.start_ms, since)) for one in found)
            found = [Span(start_ms, min(since, end_ms)), *(one for one in later if _has_time(one))]
        if until < end_ms:
            found.append(Span(max(until, start_ms), end_ms))
        return found


def _has_time(one: Span) -> bool:
    return one.end_ms is None or one.end_ms > one.start_ms


def _row(key: str, one: Machine | Holding | Wait | Span, tenant: str) -> StoredRow:
    return StoredRow(key, one.start_ms, one.end_ms, tenant, msgspec.msgpack.encode(one))


def _moment(key: str, at_ms: int) -> StoredRow:
    return StoredRow(key, at_ms, _LONGEST_MS, "", b"")


def _decoded(rows: Iterable[StoredRow], wanted: type[T]) -> Iterator[tuple[str, T]]:
    decoder = msgspec.msgpack.Decoder(wanted)
    return ((row.key, decoder.decode(row.data)) for row in rows)
