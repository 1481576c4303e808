"""Restarts a part of the process that fails, after a delay, and logs the failure with the name of the part.

Guarantees: a part ends only by itself or when it is cancelled, so an error in one part does not end the others. A
supervised part must tolerate a restart: it decides which state it keeps.

Rejected: raising the error in the task group of the parts. A task group cancels all tasks when one fails, and the work
of the others is lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from shoal.client.clock import Clock

_log = logging.getLogger("shoal")
AGAIN_S = 1.0


async def supervised(clock: Clock, name: str, run: Callable[[], Awaitable[None]]) -> None:
    """Runs until the part ends by itself, or is cancelled."""
    while True:
        try:
            # The part runs in a task of its own, because a task group that fails leaves the awaiting task cancelled.
            await asyncio.ensure_future(run())
        except Exception:  # noqa: BLE001 - an error in one part must not end the others; it is logged
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                # It failed during its cancellation, so it must not be restarted.
                return
            _log.exception("%s broke and starts again", name)
            await clock.sleep(AGAIN_S)
        else:
            return
