"""The clock of an embedded cluster: it runs at the chosen speed, never runs backwards, and is the same in all processes
of the cluster."""

from __future__ import annotations

import asyncio
from time import time

import msgspec

from shoal.api.lease import Lease
from shoal.client.clock import Clock, LoopClock, WallClock
from shoal.client.kind import LEASES
from shoal.client.port import Api, Patch
from shoal.client.refusals import NotFoundError

_NAMESPACE, _NAME = "kube-system", "shoal-clock"
_EVERY_S = 5.0


class ClockReading(msgspec.Struct, frozen=True):
    """It was `cluster_s` in the cluster when it was `machine_s` on the machine, both in seconds since 1970."""

    machine_s: float
    cluster_s: float

    @classmethod
    def read(cls, text: str) -> ClockReading:
        machine, _, cluster = text.partition(":")
        return cls(float(machine), float(cluster))

    def __str__(self) -> str:
        return f"{self.machine_s!r}:{self.cluster_s!r}"


OwnClock = WallClock | LoopClock


def clock_of(speed: float, since: ClockReading | None = None) -> OwnClock:
    if speed == 1.0:
        clock = WallClock()
        if since is not None:
            clock.not_before(_at(time(), speed, since))
        return clock
    now = time()
    return LoopClock(now if since is None else _at(now, speed, since), speed)


def _at(machine_s: float, speed: float, since: ClockReading) -> float:
    return since.cluster_s + (machine_s - since.machine_s) * speed


def moment(clock: Clock) -> ClockReading:
    return ClockReading(time(), clock.seconds())


async def restore(clock: OwnClock, api: Api) -> None:
    """Continue from the stored time if it is later than the machine's: controllers expect no objects from the
    future."""
    try:
        found = await api.get(LEASES, _NAMESPACE, _NAME)
    except NotFoundError:
        return
    stored = found.read(Lease).content().renewed_at()
    if stored is not None:
        clock.not_before(stored.timestamp())


async def store_regularly(clock: OwnClock, api: Api) -> None:
    """Store the time of the cluster until cancelled. A cluster that uses the machine's time stores nothing."""
    while clock.is_own:
        await store(clock, api)
        await asyncio.sleep(_EVERY_S)


async def store(clock: OwnClock, api: Api) -> None:
    if clock.is_own:
        spec = {"holderIdentity": _NAME, "renewTime": clock.micro_text()}
        lease = {"metadata": {"name": _NAME, "namespace": _NAMESPACE}, "spec": spec}
        await api.patch(LEASES, _NAMESPACE, _NAME, Patch("apply", lease, force=True))
