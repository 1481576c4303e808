"""A storage that misbehaves when a test tells it to: slow, failing, full.

It wraps a real one, so that what was kept can be looked at afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from shoal.embedded.apiserver.storage.port import StorageFault

if TYPE_CHECKING:
    from shoal.embedded.apiserver.storage.port import Loaded, Storage, StoredChange

DISK_FULL = "database or disk is full"


class FaultyStorage:
    """`port.Storage` with a gate and a fault."""

    def __init__(self, inner: Storage) -> None:
        self._inner = inner
        self._gate = asyncio.Event()
        self._gate.set()
        self._arrived = asyncio.Event()
        self.fault = ""
        """While set, every commit fails with it and nothing is kept."""
        self.batches: list[Sequence[StoredChange]] = []
        """Every batch handed over, kept or not."""

    def hold(self) -> None:
        """Commits wait from now on."""
        self._gate.clear()
        self._arrived.clear()

    async def held(self) -> None:
        """Wait until a commit waits since `hold`."""
        await self._arrived.wait()

    def release(self) -> None:
        self._gate.set()

    def release_one(self) -> None:
        """The commit that waits goes on; the next one waits."""
        self._gate.set()
        self._gate = asyncio.Event()
        self._arrived = asyncio.Event()

    def fill(self) -> None:
        self.fault = DISK_FULL

    def heal(self) -> None:
        self._arrived = asyncio.Event()
        self.fault = ""

    def load(self) -> Loaded:
        return self._inner.load()

    async def commit(self, batch: Sequence[StoredChange]) -> None:
        self.batches.append(batch)
        self._arrived.set()
        await self._gate.wait()
        if self.fault:
            raise StorageFault(self.fault)
        await self._inner.commit(batch)

    async def compact(self, through: int) -> None:
        if self.fault:
            raise StorageFault(self.fault)
        await self._inner.compact(through)

    async def close(self) -> None:
        await self._inner.close()
