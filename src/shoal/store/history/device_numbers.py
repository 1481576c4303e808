"""The numbers under which samples name devices, kept as long as some samples may name them."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.store.history.tables import StoredRow, Tables
from shoal.units.calendar_windows import HOUR_MS

_DAY_MS = 24 * HOUR_MS
_ALWAYS = 1 << 62


class DeviceNumbers:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.by_name: dict[str, int] = {}
        self._days: dict[str, int] = {}
        """The day of the last sample; absent in files of earlier versions."""
        self.read()

    def read(self) -> None:
        """Also those that another process has added."""
        for row in self._tables.overlapping("device", -1, 1 << 61):
            self.by_name[row.key] = row.start_ms
            if row.tenant:
                self._days[row.key] = int(row.tenant)

    def see(self, names: Iterable[str], at_ms: int) -> None:
        """The devices have samples of this moment; new ones get a number."""
        day, rows = at_ms // _DAY_MS, []
        unused = max(self.by_name.values(), default=-1) + 1
        for name in names:
            if name not in self.by_name:
                self.by_name[name] = unused
                unused += 1
            elif self._days.get(name, -1) >= day:
                continue
            self._days[name] = day
            rows.append(StoredRow(name, self.by_name[name], _ALWAYS, str(day), b""))
        if rows:
            self._tables.put("device", rows)

    def forget(self, before_ms: int, now_ms: int) -> None:
        """Those whose last sample was before the day of this moment. Called after the samples were deleted."""
        day = before_ms // _DAY_MS
        # Of a file of an earlier version the day is not known: it counts from now on.
        self.see([name for name in self.by_name if name not in self._days], now_ms)
        gone = [name for name, seen in self._days.items() if seen < day - 1]
        if gone:
            self._tables.delete("device", gone)
        for name in gone:
            del self._days[name], self.by_name[name]
