"""A part kept up: one that breaks is logged by its name and begun again after a moment.

Promises: nothing but its own end, or being cancelled, ends it; so whoever keeps several parts up beside each other
loses none of them to a fault of another. A part that is kept up has to stand being begun again: it says itself what it
remembers.

Rejected: letting the fault out to whoever began the parts. A group of tasks ends all of them when one breaks, and what
the others had in hand is lost.
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
            # As a task of its own: a group of tasks that breaks leaves whoever awaits it cancelled, as it looks.
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
