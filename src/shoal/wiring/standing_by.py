"""Two who do the same work: whether somebody does already what this process is about to do without asking for a lease,
and how others are told that it is done here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from uuid import uuid4

import msgspec

from shoal.api.run_configuration import LeaderElectionRules
from shoal.store.live.election import LeaderElection
from shoal.store.live.kind import LEASES
from shoal.store.live.lease_lock import Lock, Timing
from shoal.store.live.port import Api
from shoal.store.live.refusals import ForbiddenError, NotFoundError
from shoal.units.errors import TemporaryError
from shoal.wiring.life import Life
from shoal.wiring.run_choice import OWN_NAMES

_log = logging.getLogger("shoal")
_UP = "shoal-up_"


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None


class _Lease(msgspec.Struct):
    spec: _Spec


async def is_beside_up(api: Api, lock: Lock, names: Iterable[str]) -> bool:
    """Whether the lease is held by a cluster that has Shoal in itself, for pods of other names than these: then there
    is nothing to wait for."""
    holder = await _holder(api, lock)
    return holder.startswith(_UP) and not {*names} & {*OWN_NAMES}


async def check_alone(api: Api, lock: Lock) -> None:
    """Says so where a lease of that name has a holder. It may have died without giving it back, so that is all."""
    holder = await _holder(api, lock)
    if holder and holder != lock.identity:
        _log.warning(
            "%s holds the lease %s/%s: two schedulers of one name work against each other; "
            "end the other one, or run this one with --leader-elect",
            holder,
            lock.namespace,
            lock.name,
        )


async def _holder(api: Api, lock: Lock) -> str:
    try:
        lease = await api.get(LEASES, lock.namespace, lock.name)
    except (NotFoundError, ForbiddenError, TemporaryError):
        return ""
    return lease.read(_Lease).spec.holder_identity or ""


def hold(life: Life, api: Api, rules: LeaderElectionRules) -> None:
    """Keep the lease that others wait for, without waiting for it: a cluster that has Shoal in it schedules from its
    start on, and whoever runs another one beside it stands by."""
    lock = Lock(rules.resource_namespace, rules.resource_name, f"{_UP}{uuid4().hex[:8]}", Timing(*rules.timing_s()))
    election = LeaderElection(api, life.clock, life.draw, lock)

    async def nothing_more() -> None:
        await asyncio.Event().wait()

    life.start("lease", lambda: election.run(nothing_more))
