"""Delays readiness until the admission policies that hold jobs are in force.

kube-apiserver applies a new policy about one second after it was written, when it has compiled it; the embedded server
applies it at once.
"""

from __future__ import annotations

import asyncio
import contextlib

from shoal.api.meta import ObjectMeta
from shoal.api.partial import MetadataOf
from shoal.client.item import Item
from shoal.client.served import Served
from shoal.controllers.gatekeeping.policies import BINDINGS, rendezvous_policy
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.run_choice import RunChoice

_GATEKEEPER = "gatekeeper"
_PATIENCE_S = 5.0
_UNTIL_IN_FORCE_S = 3.0
"""Creation timestamps have a precision of one second."""


async def wait_for_gates(tasks: ProcessTasks, served: Served, choice: RunChoice, *, are_at_once: bool = True) -> None:
    """Returns when the policies are in force, or after a timeout: Shoal may not be allowed to write them. The caches
    must run. `are_at_once`: policies are in force as soon as they are written.
    """
    kind = served.find(BINDINGS)
    if _GATEKEEPER not in choice.controllers or kind is None:
        return
    # This policy is always written, and as the last one.
    last, written = rendezvous_policy().name, asyncio.Event()

    def look(_: Item | None, after: Item | None) -> None:
        if after is not None and after.name == last:
            written.set()

    tasks.informers.of(kind).on_change(look)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(written.wait(), _PATIENCE_S)
    item = tasks.informers.of(kind).get("", last)
    if item is None or are_at_once:
        return
    created = item.read(MetadataOf[ObjectMeta]).metadata.creation_timestamp
    age_s = tasks.clock.seconds() - (0.0 if created is None else created.timestamp())
    if age_s < _UNTIL_IN_FORCE_S:
        await tasks.clock.sleep(min(_UNTIL_IN_FORCE_S - age_s, _UNTIL_IN_FORCE_S))
