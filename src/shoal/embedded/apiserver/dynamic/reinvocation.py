"""A second round for those that changed an object before others changed it again.

A webhook or policy that asks for it (`IfNeeded`) is asked once more when something changed after it; there is one
more round, never a third, and no webhook is called for the first time in it.
"""

from __future__ import annotations

from typing import Any

import msgspec

Obj = dict[str, Any]


class MutationRound:
    """The account of one kind of mutators, kept over both rounds."""

    def __init__(self) -> None:
        self.is_second = False
        self.is_changed = False
        """Whether any of them changed the object."""
        self.is_touched = False
        """Whether any of them had something to do, even if it came to nothing."""
        self._done: set[str] = set()
        """Who was asked and wants to be asked again, if something changes now."""
        self._again: set[str] = set()
        self._last = b""

    def begin(self, obj: Obj | None) -> None:
        """In the second round others may have changed the object in between."""
        if self.is_second and _bytes(obj) != self._last:
            self.require()

    def includes(self, key: str) -> bool:
        return not self.is_second or key in self._again

    def done(self, key: str, *, changed: bool, again: bool) -> None:
        if changed:
            self.is_changed = True
            self.require()
        if again:
            self._done.add(key)

    def end(self, obj: Obj | None) -> None:
        self._last = _bytes(obj) if self._done or self._again else b""

    def require(self) -> None:
        """All that were asked and want it are asked again."""
        self._again |= self._done
        self._done.clear()


def _bytes(obj: Obj | None) -> bytes:
    return msgspec.json.encode(obj, order="sorted")
