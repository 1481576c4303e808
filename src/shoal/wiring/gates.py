"""Whoever is told that all is ready may send a job at once: the policies that hold it back stand by then."""

from __future__ import annotations

import asyncio
import contextlib

from shoal.controllers.gatekeeping.policies import BINDINGS, rendezvous_policy
from shoal.store.live.item import Item
from shoal.store.live.served import Served
from shoal.wiring.life import Life
from shoal.wiring.run_choice import RunChoice

_GATEKEEPER = "gatekeeper"
_PATIENCE_S = 5.0


async def gates_stand(life: Life, served: Served, choice: RunChoice) -> None:
    """Returns when they stand, or when that takes too long: somebody may not let us. The caches run."""
    kind = served.find(BINDINGS)
    if _GATEKEEPER not in choice.controllers or kind is None:
        return
    # The one that is always written, and after all others.
    last, stands = rendezvous_policy().name, asyncio.Event()

    def look(_: Item | None, after: Item | None) -> None:
        if after is not None and after.name == last:
            stands.set()

    life.informers.of(kind).on_change(look)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stands.wait(), _PATIENCE_S)
