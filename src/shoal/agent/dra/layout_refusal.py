"""Refuses MIG instances on demand of the device plugin on a Node whose GPUs are given to resource claims.

The scheduler would place pods on such instances, and no device plugin would ever advertise them. An Event of the Node
and the log say so, once each time that the label or annotation appears.
"""

from __future__ import annotations

import asyncio
import logging
import random

from shoal.client.clock import Clock
from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.client.kind import NODES
from shoal.client.port import Api, Select
from shoal.client.recorder import Recorder
from shoal.devices.mig_demand import problem_with_claims, settings_of

_log = logging.getLogger("shoal.agent.dra")
REASON = "MigLayoutNotSupported"


async def report_refused_layout(api: Api, clock: Clock, node: str) -> None:
    """Until it is cancelled."""
    recorder = Recorder(api, clock, "shoal-agent")
    informer = Informer(api, NODES, clock, random.Random(), Select(fields=f"metadata.name={node}"))
    about = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": node, "uid": node}}
    known = ""

    def look(_: Item | None, after: Item | None) -> None:
        nonlocal known
        metadata = {} if after is None else after.obj()["metadata"]
        settings = {**(metadata.get("labels") or {}), **settings_of(metadata.get("annotations") or {})}
        problem = problem_with_claims(settings, node)
        if problem and problem != known:
            _log.warning("%s", problem)
            recorder.record(about, REASON, problem, type_="Warning", host=node)
        known = problem

    informer.on_change(look)
    events = asyncio.create_task(recorder.run())
    try:
        await informer.run()
    finally:
        events.cancel()
