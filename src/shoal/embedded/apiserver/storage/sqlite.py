"""Objects on disk: an SQLite file, and one thread that writes to it.

The event loop hands a batch to the thread and goes on; the thread answers when the batch is synced. One thread and one
connection, so that batches are kept in the order in which they were handed over.

Rejected: a pool of threads (`asyncio.to_thread`): nothing here can run side by side, and the order would be chance.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from shoal.embedded.apiserver.storage.sqlite_file import SqliteFile

if TYPE_CHECKING:
    from shoal.embedded.apiserver.storage.port import Loaded, StoredChange

FILE = "state.db"
_SWITCH_S = 0.0005


class _Order:
    """One piece of work for the thread, and the future for its result."""

    __slots__ = ("_done", "_loop", "_work")

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._loop = asyncio.get_running_loop()
        self._done: asyncio.Future[None] = self._loop.create_future()

    def run(self) -> None:
        fault: Exception | None = None
        try:
            self._work()
        except Exception as caught:  # noqa: BLE001 - raised again where the work was asked for
            fault = caught
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._answer, fault)

    def _answer(self, fault: Exception | None) -> None:
        if self._done.done():
            return
        if fault is None:
            self._done.set_result(None)
        else:
            self._done.set_exception(fault)

    async def answered(self) -> None:
        await self._done


class SqliteStorage:
    """`port.Storage` in a folder. Opening raises UserError when another process has the folder or writes are lost."""

    def __init__(self, folder: Path, *, accept_loss: bool = False) -> None:
        self._file = SqliteFile.open(folder / FILE, accept_loss=accept_loss)
        self._orders: SimpleQueue[_Order | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def load(self) -> Loaded:
        return self._file.load()

    async def commit(self, batch: Sequence[StoredChange]) -> None:
        await self._do(lambda: self._file.append(batch))

    async def compact(self, through: int) -> None:
        await self._do(lambda: self._file.fold(through))

    async def close(self) -> None:
        """Waits for what was handed over; the file is complete in itself afterwards."""
        if self._thread is not None:
            self._orders.put(None)
            self._thread.join()
        self._file.close()

    async def _do(self, work: Callable[[], None]) -> None:
        if self._thread is None:
            # The thread needs the interpreter's lock twice per batch. By default a busy event loop lets it wait 5 ms
            # each time, which at a thousand writes per second is the difference between keeping up and falling behind.
            sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_S))
            self._thread = threading.Thread(target=self._serve, name="shoal-storage", daemon=True)
            self._thread.start()
        order = _Order(work)
        self._orders.put(order)
        await order.answered()

    def _serve(self) -> None:
        while (order := self._orders.get()) is not None:
            order.run()
            self._file.between_batches()
