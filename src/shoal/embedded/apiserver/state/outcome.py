"""The outcome of work that another task does for a writer.

A writer that is cancelled (its client went away) still waits for the outcome of what it handed over: it holds locks,
and who comes next has to see that outcome.
"""

from __future__ import annotations

import asyncio


class Outcome:
    """Open until it is settled, for one who waits."""

    __slots__ = ("_known", "fault", "is_settled")

    def __init__(self) -> None:
        self.fault: Exception | None = None
        self.is_settled = False
        self._known: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def settle(self, fault: Exception | None = None) -> None:
        self.fault = fault
        self.is_settled = True
        if not self._known.done():
            self._known.set_result(None)

    async def known(self) -> None:
        try:
            await self._known
        except asyncio.CancelledError:
            if not self.is_settled:
                self._known = asyncio.get_running_loop().create_future()
                await asyncio.wait((self._known,))
            raise
