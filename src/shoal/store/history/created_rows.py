"""The pods that were created, with the admission rules that they broke: a row for each workload, hour and set of rules.

So a gang of a thousand pods is one row, and ten thousand pods without a workload are as many rows of 150 bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

import msgspec

from shoal.policy.admission_rules.past import HOUR_MS, CreatedPods
from shoal.store.history.tables import StoredRow, Tables

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
        found = [one for row in rows if (one := _decoded(row)) is not None]
        return sorted(found, key=lambda one: (one.start_ms, one.namespace, one.kind, one.name, one.rules))

    def since_ms(self) -> int | None:
        """When the first one was created; None if none is known."""
        rows = self._tables.overlapping("created", 0, _LONGEST_MS)
        return next((row.start_ms for row in rows if _decoded(row) is not None), None)

    def _stored(self, key: str) -> CreatedPods | None:
        row = self._tables.get("created", key)
        return None if row is None else _decoded(row)


def _key(one: CreatedPods) -> str:
    """Of fixed length: owners of pods may have any kind and name."""
    fields = (one.start_ms // HOUR_MS, one.namespace, one.kind, one.name, one.rules)
    return blake2b(msgspec.msgpack.encode(fields), digest_size=16).hexdigest()


def _together(one: CreatedPods, other: CreatedPods) -> CreatedPods:
    return msgspec.structs.replace(
        one,
        start_ms=min(one.start_ms, other.start_ms),
        end_ms=max(one.end_ms, other.end_ms),
        pods=one.pods + other.pods,
    )


def _row(key: str, one: CreatedPods) -> StoredRow:
    data = msgspec.msgpack.encode((one.kind, one.name, one.rules, one.pods))
    return StoredRow(key, one.start_ms, one.end_ms, one.namespace, data)


def _decoded(row: StoredRow) -> CreatedPods | None:
    """None for a row of another form."""
    try:
        kind, name, rules, pods = msgspec.msgpack.decode(row.data, type=tuple[str, str, tuple[str, ...], int])
    except msgspec.DecodeError:
        return None
    return CreatedPods(row.tenant, kind, name, row.start_ms, row.end_ms or row.start_ms, pods, rules)
