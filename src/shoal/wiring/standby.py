"""Prevents two processes from doing the same work: checks for another one before this process starts without a lease,
and holds a lease so that others wait.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from uuid import uuid4

from shoal.api.lease import Lease
from shoal.api.run_configuration import IN_USE, QUEUES_IN_USE, RunConfiguration
from shoal.api.wire import to_json
from shoal.client.election import LeaderElection, Work
from shoal.client.kind import LEASES
from shoal.client.lease_lock import Lock, Timing
from shoal.client.port import Api
from shoal.client.refusals import ForbiddenError, NotFoundError
from shoal.units.errors import TemporaryError
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.run_choice import OWN_NAMES, SCHEDULER

_log = logging.getLogger("shoal")
_UP = "shoal-up_"


async def is_beside_up(api: Api, lock: Lock, names: Iterable[str]) -> bool:
    """Whether a cluster of `shoal up` holds the lease and schedules pods of other scheduler names than these: then this
    process need not wait."""
    holder = await _holder(api, lock)
    return holder.startswith(_UP) and not {*names} & {*OWN_NAMES}


async def check_alone(api: Api, lock: Lock, parts: Sequence[str]) -> None:
    """Log a warning if another process holds the lease. That process may have died without releasing it, so this is no
    error. `parts`: what runs here. Which parts the other process runs is not known."""
    holder = await _holder(api, lock)
    if not holder or holder == lock.identity:
        return
    if SCHEDULER in parts:
        _warn_of_two(lock, holder, "; end the other one, or run this one with --leader-elect")
        return
    words = "%s holds the lease %s/%s: if it runs %s too, both change the same objects; end one of them then"
    _log.warning(words, holder, lock.namespace, lock.name, " or ".join(parts))


def _warn_of_two(lock: Lock, holder: str, advice: str = "; end the other one") -> None:
    words = "%s holds the lease %s/%s: two schedulers of one name work against each other%s"
    _log.warning(words, holder, lock.namespace, lock.name, advice)


async def _holder(api: Api, lock: Lock) -> str:
    try:
        lease = await api.get(LEASES, lock.namespace, lock.name)
    except (NotFoundError, ForbiddenError, TemporaryError):
        return ""
    return lease.read(Lease).content().holder_identity or ""


async def run_with_lease(tasks: ProcessTasks, api: Api, own: RunConfiguration, at_once: Work, later: Work) -> None:
    """For a cluster of `shoal up`: hold the lease, so that other processes wait. If only an earlier process of this
    cluster holds it, which has ended because its folder is in use here, work begins at once; if another process does,
    `later` begins when it releases the lease, and ends with the lease.

    Rejected: to end the work when the lease is lost. The lease is lost only if the server in this process does not
    answer its own process for ten seconds; the whole cluster uses its caches by then. A warning is logged."""
    identity = f"{_UP}{uuid4().hex[:8]}"
    rules = own.leader_election
    lock = Lock(
        rules.resource_namespace,
        rules.resource_name,
        identity,
        Timing(*rules.timing_s()),
        successor_of=_UP,
        # A holder before it may have had another configuration.
        annotations=((IN_USE, to_json(own.deciding()).decode()), (QUEUES_IN_USE, "")),
    )
    holder = await _holder(api, lock)
    if holder and not holder.startswith(_UP):
        election = LeaderElection(api, tasks.clock, tasks.random, lock)
        tasks.start("election", lambda: election.run(later))
        return
    kept = LeaderElection(api, tasks.clock, tasks.random, lock, waits=_warn_of_two)
    tasks.start("lease", lambda: kept.run(_wait_forever))
    await at_once()


async def _wait_forever() -> None:
    await asyncio.Event().wait()
