"""Awaits a function that may never return, such as one of the driver, without blocking the event loop.

Guarantees: the function runs at most once at a time, in a thread that does not keep the process from ending. Rejected:
the threads of the event loop, which it waits for at its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from shoal.agent.patient_call import PatientCall, SilentDriverError

T = TypeVar("T")
PATIENCE_S = 30.0


class BlockingRead(Generic[T]):
    def __init__(self, read: Callable[[], T], patience_s: float = PATIENCE_S) -> None:
        self._call, self._patience_s = PatientCall(read, patience_s), patience_s

    async def __call__(self) -> T:
        """Raises what the function raises, and `SilentDriverError` while it does not return."""
        running = self._call.begin()
        try:
            async with asyncio.timeout(self._patience_s):
                return await asyncio.wrap_future(running)
        except TimeoutError:
            raise SilentDriverError(self._patience_s) from None
        finally:
            self._call.end(running)
