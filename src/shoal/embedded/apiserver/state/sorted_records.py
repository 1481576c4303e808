"""The objects of one resource, in the order in which they are listed.

Kubernetes lists by storage key, `namespace/name` as text, so that `a-b/x` precedes `a/x`. The sorted keys are kept
up to date by every creation and deletion (a few microseconds for ten thousand objects), so that a page, a namespace and
a continue token are each a slice.

Rejected: sorting at each list. A page of one object would then pay for all of them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.embedded.apiserver.resource import Home, Ref
    from shoal.embedded.apiserver.state.record import Record


def key_of(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


class SortedRecords:
    """What is there now."""

    __slots__ = ("home", "keys", "records", "size_bytes", "stamp")

    def __init__(self, home: Home) -> None:
        self.home = home
        self.keys: list[str] = []
        self.records: dict[str, Record] = {}
        self.size_bytes = 0
        self.stamp = 0
        """The revision of the last change."""

    def get(self, ref: Ref) -> Record | None:
        return self.records.get(key_of(ref.namespace, ref.name))

    def put(self, record: Record) -> Record | None:
        """The previous value is returned."""
        key = key_of(record.ref.namespace, record.ref.name)
        before = self.records.get(key)
        if before is None:
            insort(self.keys, key)
        else:
            self.size_bytes -= len(before.data)
        self.records[key] = record
        self.size_bytes += len(record.data)
        self.stamp = record.revision
        return before

    def drop(self, ref: Ref, revision: int) -> Record | None:
        key = key_of(ref.namespace, ref.name)
        before = self.records.pop(key, None)
        if before is not None:
            del self.keys[bisect_left(self.keys, key)]
            self.size_bytes -= len(before.data)
        self.stamp = revision
        return before

    def span(self, namespace: str | None, after: tuple[str, str] | None) -> tuple[int, int]:
        """Where in `keys` a namespace begins and ends, from behind one object on."""
        start, end = 0, len(self.keys)
        if namespace:
            start, end = (bisect_left(self.keys, bound) for bound in bounds(namespace))
        if after:
            start = max(start, bisect_right(self.keys, key_of(*after)))
        return start, max(start, end)


def bounds(namespace: str) -> tuple[str, str]:
    """Texts that no key lies on, with all keys of the namespace between them: "0" is what follows "/"."""
    return f"{namespace}/", f"{namespace}0"
