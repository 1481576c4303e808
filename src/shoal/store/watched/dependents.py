"""Tracks which objects must be read again when another one changes; each object declares its dependencies when it is
read.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable


class Dependents:
    """Readers by name, with the dependencies of each."""

    def __init__(self) -> None:
        self._on: dict[str, frozenset[Hashable]] = {}
        self._of: dict[Hashable, set[str]] = {}
        self._stirred: set[str] = set()

    def put(self, reader: str, on: Iterable[Hashable]) -> None:
        """The reader was read again and has these dependencies from now on."""
        after = frozenset(on)
        before = self._on.get(reader, frozenset())
        if after == before:
            return
        for each in before - after:
            self._forget(each, reader)
        for each in after - before:
            self._of.setdefault(each, set()).add(reader)
        if after:
            self._on[reader] = after
        else:
            del self._on[reader]

    def drop(self, reader: str) -> None:
        self.put(reader, ())
        self._stirred.discard(reader)

    def stir(self, what: Hashable) -> bool:
        """Report a change; returns whether an object depends on it."""
        readers = self._of.get(what)
        if readers:
            self._stirred |= readers
        return bool(readers)

    def take(self) -> set[str]:
        """Readers whose dependencies changed since the last call."""
        stirred, self._stirred = self._stirred, set()
        return stirred

    def _forget(self, what: Hashable, reader: str) -> None:
        readers = self._of[what]
        readers.discard(reader)
        if not readers:
            del self._of[what]
