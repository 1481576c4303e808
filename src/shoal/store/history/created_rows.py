"""The pods that were created, with the admission rules that they broke: a row for each workload, hour and set of rules.

So a gang of a thousand pods is one row, and ten thousand pods without a workload are as many rows of 150 bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from shoal.policy.admission_rules.past import HOUR_MS, CreatedPods
from shoal.store.history.tables import StoredRow, Tables

_SEPARATOR = " "
"""In no name of an object."""
_LONGEST_MS = 1 << 62


class CreatedRows:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, created: Iterable[CreatedPods]) -> None:
        """Each adds to the row of its workload."""
        found: dict[str, CreatedPods] = {}
        for one in created:
            key = _key(one)
            before = found.get(key) or self._stored(key)
            found[key] = one if before is None else _together(before, one)
        if found:
            self._tables.put("created", [_row(key, one) for key, one in found.items()])

    def between(self, start_ms: int, end_ms: int) -> list[CreatedPods]:
        """The hours of which a pod was created in the interval."""
        rows = self._tables.overlapping("created", start_ms, end_ms)
        return [_decoded(row) for row in rows]

    def since_ms(self) -> int | None:
        """When the first one was created; None if none is known."""
        first = next(iter(self._tables.overlapping("created", 0, _LONGEST_MS)), None)
        return None if first is None else first.start_ms

    def _stored(self, key: str) -> CreatedPods | None:
        row = self._tables.get("created", key)
        return None if row is None else _decoded(row)


def _key(one: CreatedPods) -> str:
    hour = one.start_ms // HOUR_MS
    return _SEPARATOR.join((str(hour), one.namespace, one.kind, one.name, ",".join(one.rules)))


def _together(one: CreatedPods, other: CreatedPods) -> CreatedPods:
    return msgspec.structs.replace(
        one,
        start_ms=min(one.start_ms, other.start_ms),
        end_ms=max(one.end_ms, other.end_ms),
        pods=one.pods + other.pods,
    )


def _row(key: str, one: CreatedPods) -> StoredRow:
    # The other fields are in the key.
    return StoredRow(key, one.start_ms, one.end_ms, one.namespace, msgspec.msgpack.encode(one.pods))


def _decoded(row: StoredRow) -> CreatedPods:
    _, namespace, kind, name, ids = row.key.split(_SEPARATOR)
    rules: Sequence[str] = ids.split(",") if ids else ()
    pods = msgspec.msgpack.decode(row.data, type=int)
    return CreatedPods(namespace, kind, name, row.start_ms, row.end_ms or row.start_ms, pods, tuple(rules))
