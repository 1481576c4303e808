"""Shares equal label sets and equal strings in memory.

Ten thousand pods come from a few templates. The table forgets everything when it is full: what is shared stays shared
by those that share it, and labels that are different for every object cost no more than a bounded table.
"""

from __future__ import annotations

from collections.abc import Mapping
from sys import intern

_MOST = 16_384


class Interned:
    """Dictionaries that have been seen."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[str, str], ...], Mapping[str, str]] = {}

    def share(self, words: Mapping[str, str]) -> Mapping[str, str]:
        key = tuple(words.items())
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            known = {intern(name): intern(value) for name, value in key}
            self._known[tuple(known.items())] = known
        return known
