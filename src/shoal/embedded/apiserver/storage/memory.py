"""Objects that end with the process: for servers without persistence, and for tests.

It keeps what it is given, as the other storages do, so that one suite of tests holds for all of them and a state can be
opened again on it. The bytes are those the state holds anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shoal.embedded.apiserver.storage.port import Loaded, StoredChange

if TYPE_CHECKING:
    from shoal.embedded.apiserver.resource import Ref


class MemoryStorage:
    """The log and the objects as Python values."""

    def __init__(self) -> None:
        self._objects: dict[Ref, StoredChange] = {}
        self._log: list[StoredChange] = []
        self._floor = 0

    def load(self) -> Loaded:
        revision = self._log[-1].revision if self._log else self._floor
        return Loaded(revision, self._floor, list(self._objects.values()), list(self._log))

    async def commit(self, batch: Sequence[StoredChange]) -> None:
        self._log.extend(batch)

    async def compact(self, through: int) -> None:
        folded = 0
        for change in self._log:
            if change.revision > through:
                break
            folded += 1
            self._floor = change.revision
            if change.data is None:
                self._objects.pop(change.ref, None)
            else:
                self._objects[change.ref] = change
        del self._log[:folded]

    async def close(self) -> None:
        return
