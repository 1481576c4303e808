"""Delays readiness until the admission policies that hold jobs are in force.

A kube-apiserver goes by a new policy a second after it was written, when it has compiled it; the embedded one at once.
"""

from __future__ import annotations

import asyncio
import contextlib
from datetime import datetime

import msgspec

from shoal.client.item import Item
from shoal.client.served import Served
from shoal.controllers.gatekeeping.policies import BINDINGS, rendezvous_policy
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.run_choice import RunChoice

_GATEKEEPER = "gatekeeper"
_PATIENCE_S = 5.0
_UNTIL_IN_FORCE_S = 3.0
"""Objects say the second in which they were made."""


class _Meta(msgspec.Struct, rename="camel"):
    creation_timestamp: datetime


class _Made(msgspec.Struct):
    metadata: _Meta


async def gates_stand(life: ProcessTasks, served: Served, choice: RunChoice, *, are_at_once: bool = True) -> None:
    """Returns when the policies are in force, or after a timeout: Shoal may not be allowed to write them. The caches
    must run. `are_at_once`: policies are in force as soon as they are written.
    """
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
    item = life.informers.of(kind).get("", last)
    if item is None or are_at_once:
        return
    age_s = life.clock.seconds() - item.read(_Made).metadata.creation_timestamp.timestamp()
    if age_s < _UNTIL_IN_FORCE_S:
        await life.clock.sleep(min(_UNTIL_IN_FORCE_S - age_s, _UNTIL_IN_FORCE_S))
