"""Prevents two processes from doing the same work: checks for another one before this process starts without a lease,
and holds a lease so that others wait.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from uuid import uuid4

import msgspec

from shoal.api.run_configuration import LeaderElectionRules
from shoal.client.election import LeaderElection, Work
from shoal.client.kind import LEASES
from shoal.client.lease_lock import Lock, Timing
from shoal.client.port import Api
from shoal.client.refusals import ForbiddenError, NotFoundError
from shoal.units.errors import TemporaryError
from shoal.wiring.process_tasks import ProcessTasks
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
        _two_work(lock, holder, "; end the other one, or run this one with --leader-elect")


def _two_work(lock: Lock, holder: str, advice: str = "; end the other one") -> None:
    words = "%s holds the lease %s/%s: two schedulers of one name work against each other%s"
    _log.warning(words, holder, lock.namespace, lock.name, advice)


async def _holder(api: Api, lock: Lock) -> str:
    try:
        lease = await api.get(LEASES, lock.namespace, lock.name)
    except (NotFoundError, ForbiddenError, TemporaryError):
        return ""
    return lease.read(_Lease).spec.holder_identity or ""


async def work_in_turn(life: ProcessTasks, api: Api, rules: LeaderElectionRules, at_once: Work, later: Work) -> None:
    """For a cluster with Shoal inside: holds the lease for which others wait. If only an earlier process of this
    cluster holds it, which has ended since the folder is ours, work begins at once; if another process does, `later`
    begins when it releases the lease, and ends with the lease.

    Rejected: to end what began at once when the lease is lost. That takes a server, in this same process, which does
    not answer itself for ten seconds; the caches are the whole cluster's by then, and could not be let go of. It is
    said."""
    identity = f"{_UP}{uuid4().hex[:8]}"
    lock = Lock(rules.resource_namespace, rules.resource_name, identity, Timing(*rules.timing_s()), heir_of=_UP)
    holder = await _holder(api, lock)
    if holder and not holder.startswith(_UP):
        election = LeaderElection(api, life.clock, life.draw, lock)
        life.start("election", lambda: election.run(later))
        return
    kept = LeaderElection(api, life.clock, life.draw, lock, waits=_two_work)
    life.start("lease", lambda: kept.run(_nothing_more))
    await at_once()


async def _nothing_more() -> None:
    await asyncio.Event().wait()
