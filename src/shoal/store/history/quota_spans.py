"""Nominal quotas in the history: a row for each queue or namespace and each time in which its quota was the same."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.cost.records import QuotaKind, QuotaSpan
from shoal.store.history.tables import StoredRow, Tables


class QuotaSpans:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def read(self, start_ms: int, end_ms: int) -> list[QuotaSpan]:
        return [_decoded(row) for row in self._tables.overlapping("quota", start_ms, end_ms)]

    def write(self, kind: QuotaKind, present: Sequence[QuotaSpan], now_ms: int) -> None:
        """`present`: all of the kind that there are now; they begin now, unless they are known."""
        wanted = {one.name: msgspec.structs.replace(one, start_ms=now_ms) for one in present}
        queue_of = {member: one.name for one in present for member in one.members}
        ended, gone = [], []
        for row in self._tables.open("quota"):
            known = _decoded(row)
            if known.kind != kind:
                continue
            new = wanted.get(known.name)
            if new is not None:
                # A recorder that has just started has not seen the work of all of them.
                kept = {one for one in known.members if queue_of.get(one, known.name) == known.name}
                new = msgspec.structs.replace(new, members=tuple(sorted(kept.union(new.members))))
                wanted[known.name] = new
            if new is not None and msgspec.structs.replace(new, start_ms=known.start_ms) == known:
                del wanted[known.name]
            elif known.start_ms >= now_ms:
                gone.append(row.key)
            elif new is not None and (new.share, new.parent) == (known.share, known.parent):
                # Another LocalQueue of the same quota.
                wanted[known.name] = msgspec.structs.replace(new, start_ms=known.start_ms)
            else:
                ended.append(msgspec.structs.replace(known, end_ms=now_ms))
        with self._tables.transaction():
            self._tables.delete("quota", gone)
            self._tables.put("quota", [_row(one) for one in (*ended, *wanted.values())])


def without_namespace(row: StoredRow, namespace: str) -> StoredRow | None:
    """The row of a ClusterQueue without the LocalQueues of a namespace; None where it has none of them."""
    found = _decoded(row)
    left = tuple(one for one in found.members if not one.startswith(f"{namespace}/"))
    return None if left == found.members else _row(msgspec.structs.replace(found, members=left))


def _row(one: QuotaSpan) -> StoredRow:
    tenant = one.name if one.kind == "namespace" else ""
    return StoredRow(
        f"{one.kind}/{one.name}/{one.start_ms}", one.start_ms, one.end_ms, tenant, msgspec.msgpack.encode(one)
    )


def _decoded(row: StoredRow) -> QuotaSpan:
    return msgspec.msgpack.decode(row.data, type=QuotaSpan)
