"""Group commit: everything that was asked for while the last batch became durable goes into the next one.

One task hands batches to the storage, in the order of their revisions and one at a time, so that a slow disk makes
batches larger and not the line longer. Durable writes are published before they are acknowledged; failed ones leave no
trace but unused revisions. Whatever way a storage fails in, its batch is over: nothing stays pending.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from shoal.embedded.apiserver.state.outcome import Outcome
from shoal.embedded.apiserver.status import internal
from shoal.embedded.apiserver.storage.port import Storage, StorageFault, StoredChange

if TYPE_CHECKING:
    from shoal.embedded.apiserver.state.event import Event


class Ticket:
    """One commit on its way: what to keep, and the events it will be. One without changes only keeps its place."""

    __slots__ = ("changes", "events", "outcome")

    def __init__(self, changes: Sequence[StoredChange], events: Sequence[Event]) -> None:
        self.changes = changes
        self.events = events
        self.outcome = Outcome()


class Commits:
    """The line in front of the storage."""

    __slots__ = ("_publish", "_pump", "_storage", "_waiting", "fault")

    def __init__(self, storage: Storage, publish: Callable[[Sequence[Ticket], bool], int]) -> None:
        self._storage = storage
        self._publish = publish
        """Told of every batch and whether it is durable; makes its events visible if so, and answers up to which
        revision the storage may fold its changes, 0 for none."""
        self._waiting: list[Ticket] = []
        self.fault = ""
        """Why the last batch was not kept; empty when it was."""
        self._pump: asyncio.Task[None] | None = None

    async def settled(self, ticket: Ticket) -> None:
        """Returns when the ticket's changes are durable and visible; raises ApiError when they never will be."""
        self._enter(ticket)
        await ticket.outcome.known()
        fault = ticket.outcome.fault
        if fault is not None:
            raise internal(f"the write was not stored: {fault}") from fault

    async def passed(self) -> None:
        """Returns when all writes that are queued now are settled."""
        if self._pump is not None:
            await self.settled(Ticket((), ()))

    def try_again(self) -> None:
        """After a fault, find out whether the storage keeps things again."""
        if self.fault and self._pump is None:
            self._enter(Ticket((), ()))

    async def drain(self) -> None:
        while self._pump is not None:
            await asyncio.wait((self._pump,))

    def _enter(self, ticket: Ticket) -> None:
        self._waiting.append(ticket)
        if self._pump is None:
            self._pump = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        batch: list[Ticket] = []
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                fault = await self._keep([change for ticket in batch for change in ticket.changes])
                through = self._publish(batch, fault is None)
                for ticket in batch:
                    ticket.outcome.settle(fault)
                if through:
                    # A fold that fails loses nothing: the changes stay in the log, and the next one takes them along.
                    await _fault_of(self._storage.compact(through))
        finally:
            self._pump = None
            # Only when this task was cancelled: pending writes must not wait forever.
            left = [ticket for ticket in (*batch, *self._waiting) if not ticket.outcome.is_settled]
            self._publish(left, False)
            for ticket in left:
                ticket.outcome.settle(StorageFault("the server ended"))

    async def _keep(self, changes: Sequence[StoredChange]) -> StorageFault | None:
        if not changes and not self.fault:
            return None
        # Nothing to keep and a fault: the storage is only tried.
        fault = await _fault_of(self._storage.commit(changes))
        self.fault = "" if fault is None else str(fault)
        return fault


async def _fault_of(work: Awaitable[None]) -> StorageFault | None:
    try:
        await work
    except StorageFault as fault:
        return fault
    except Exception as error:  # noqa: BLE001 - whatever went wrong in a storage, its batch was not kept
        asyncio.get_running_loop().call_exception_handler(
            {"message": "the storage failed in a way that is not its own", "exception": error}
        )
        return StorageFault(repr(error))
    return None
