"""Reads decoded objects for checks that depend on other objects.

Admission, RBAC and policies read the same few namespaces, quotas and roles over and over, so these stay decoded until
they change. Ten thousand pods do not: what is decoded takes several times the bytes, so that a resource larger than the
budget is decoded as it is walked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from shoal.embedded.apiserver.resource import Home, Ref

if TYPE_CHECKING:
    from shoal.embedded.apiserver.state.record import Obj, Record
    from shoal.embedded.apiserver.state.sorted_records import SortedRecords

_BUDGET_BYTES = 4 << 20
"""Bytes of JSON that may stay decoded."""


class StateReader:
    """The state as `reading.Reader` describes it."""

    __slots__ = ("_decoded", "_records", "_size_bytes")

    def __init__(self, shelves: Mapping[Home, SortedRecords]) -> None:
        self._records = shelves
        self._decoded: dict[Ref, tuple[Record, Obj]] = {}
        self._size_bytes = 0

    def get(self, group: str, plural: str, namespace: str, name: str) -> Obj | None:
        ref = Ref(Home(group, plural), namespace, name)
        shelf = self._records.get(ref.home)
        record = shelf.get(ref) if shelf else None
        if record is None:
            self._forget(ref)
            return None
        return self._decode(record)

    def all(self, group: str, plural: str, namespace: str | None = None) -> Iterator[Obj]:
        shelf = self._records.get(Home(group, plural))
        if shelf is None:
            return
        start, end = shelf.span(namespace, None)
        is_small = shelf.size_bytes <= _BUDGET_BYTES // 2
        for key in shelf.keys[start:end]:
            record = shelf.records.get(key)
            if record is not None:
                yield self._decode(record) if is_small else self._peek(record)

    def stamp(self, group: str, plural: str) -> int:
        shelf = self._records.get(Home(group, plural))
        return shelf.stamp if shelf else 0

    def _peek(self, record: Record) -> Obj:
        known = self._decoded.get(record.ref)
        return known[1] if known and known[0] is record else record.obj()

    def _decode(self, record: Record) -> Obj:
        known = self._decoded.pop(record.ref, None)
        if known is None or known[0] is not record:
            if known is not None:
                self._size_bytes -= len(known[0].data)
            known = record, record.obj()
            self._size_bytes += len(record.data)
        # Taken out and put back at the end: what was asked for longest ago goes first.
        self._decoded[record.ref] = known
        while self._size_bytes > _BUDGET_BYTES and len(self._decoded) > 1:
            self._forget(next(iter(self._decoded)))
        return known[1]

    def _forget(self, ref: Ref) -> None:
        known = self._decoded.pop(ref, None)
        if known is not None:
            self._size_bytes -= len(known[0].data)
