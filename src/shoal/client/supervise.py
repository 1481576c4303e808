"""A part kept up: one that breaks is logged by its name and begun again after a moment.

Guarantees: a part ends only by itself or when it is cancelled, so an error in one part does not end the others. A
supervised part has to tolerate a restart: it decides which state it keeps.

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
    """Until it ends by itself, or is cancelled."""
    while True:
        try:
            # As a task of its own: a task group that fails leaves the awaiting task cancelled.
            await asyncio.ensure_future(run())
        except Exception:  # noqa: BLE001 - one part's fault must not end the others; the log has the story
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                # It broke while it was being ended, and ended is what it is to be.
                return
            _log.exception("%s broke and starts again", name)
            await clock.sleep(AGAIN_S)
        else:
            return
