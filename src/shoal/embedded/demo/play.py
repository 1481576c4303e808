"""Submits the workloads of the demo: each arrival is written through the API at its time."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import count

from shoal.client.clock import Clock
from shoal.client.kind import DEPLOYMENTS, JOBS, NAMESPACES, NODES
from shoal.client.port import Api, Patch
from shoal.embedded.demo.arrivals import LENGTH_S, TEAMS, Arrival, arrivals
from shoal.embedded.demo.quotas import queue_objects
from shoal.embedded.kubelets.faults import GPU_FAULTS
from shoal.units.errors import ShoalError

_log = logging.getLogger("shoal.demo")


async def play(api: Api, clock: Clock, seed: int) -> None:
    """Runs until cancelled. A refused write does not stop the others."""
    for team in TEAMS:
        await api.create(NAMESPACES, {"metadata": {"name": team}})
    for kind, obj in queue_objects():
        await api.create(kind, obj)
    for turn in count():
        started = clock.seconds()
        await _minute(api, clock, arrivals(seed, turn))
        await clock.sleep(started + LENGTH_S - clock.seconds())


async def _minute(api: Api, clock: Clock, arriving: Iterable[Arrival]) -> None:
    started = clock.seconds()
    for one in arriving:
        await clock.sleep(started + one.at_s - clock.seconds())
        try:
            await _happen(api, one)
        except ShoalError as error:
            _log.warning("%s %s: %s", one.what, one.name, error)


async def _happen(api: Api, one: Arrival) -> None:
    if one.what == "job":
        await api.create(JOBS, one.obj)
    elif one.what == "deployment":
        await api.create(DEPLOYMENTS, one.obj)
    elif one.what == "scale":
        await api.patch(DEPLOYMENTS, one.team, one.name, Patch("merge", {"spec": {"replicas": one.replicas}}))
    else:
        faults = f'{{"{one.replicas}":79}}' if one.what == "gpu-fail" else None
        await api.patch(NODES, "", one.name, Patch("merge", {"metadata": {"annotations": {GPU_FAULTS: faults}}}))
