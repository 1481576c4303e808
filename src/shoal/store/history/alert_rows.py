"""The alerts of a history: those that are pending or fire are open rows, those that have ended have an end.

A recorder that starts again continues the open ones, so that an alert does not have to last anew.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from shoal.policy.alert_messages import fingerprint
from shoal.policy.alert_states import RuleAlert
from shoal.store.history.tables import StoredRow, Tables

_Key = tuple[str, int]


class AlertRows:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._open: dict[_Key, str] = {}
        """Those that are stored as open, with their state."""

    def open(self) -> list[RuleAlert]:
        """For the one that writes: what it continues."""
        found = self.active()
        self._open = {_key(one): one.state for one in found}
        return found

    def active(self) -> list[RuleAlert]:
        return [msgspec.msgpack.decode(row.data, type=RuleAlert) for row in self._tables.open("alert")]

    def between(self, start_ms: int, end_ms: int) -> list[RuleAlert]:
        """Alerts that fired or were pending in the interval."""
        rows = self._tables.overlapping("alert", start_ms, end_ms)
        return [msgspec.msgpack.decode(row.data, type=RuleAlert) for row in rows]

    def write(self, present: Iterable[RuleAlert], ended: Iterable[RuleAlert]) -> None:
        """`present`: all that are pending or fire now."""
        now = {_key(one): one for one in present}
        changed = [one for key, one in now.items() if self._open.get(key) != one.state]
        over = {_key(one): one for one in ended}
        gone = [key for key in self._open if key not in now and key not in over]
        if not (changed or over or gone):
            return
        with self._tables.transaction():
            self._tables.put("alert", [_row(one) for one in (*changed, *over.values())])
            # What was only pending is of no interest.
            self._tables.delete("alert", [_text(key) for key in gone])
        self._open = {key: one.state for key, one in now.items()}


def _key(one: RuleAlert) -> _Key:
    return fingerprint(one), one.since_ms


def _text(key: _Key) -> str:
    return f"{key[0]} {key[1]}"


def _row(one: RuleAlert) -> StoredRow:
    tenant = one.labels.get("namespace", "")
    return StoredRow(_text(_key(one)), one.since_ms, one.ended_ms, tenant, msgspec.msgpack.encode(one))
