"""Whether somebody else does already what this process is about to do without asking for a lease."""

from __future__ import annotations

import logging

import msgspec

from shoal.store.live.kind import LEASES
from shoal.store.live.lease_lock import Lock
from shoal.store.live.port import Api
from shoal.store.live.refusals import ForbiddenError, NotFoundError

_log = logging.getLogger("shoal")


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None


class _Lease(msgspec.Struct):
    spec: _Spec


async def check_alone(api: Api, lock: Lock) -> None:
    """Says so where a lease of that name has a holder. It may have died without giving it back, so that is all."""
    try:
        lease = await api.get(LEASES, lock.namespace, lock.name)
    except (NotFoundError, ForbiddenError):
        return
    holder = lease.read(_Lease).spec.holder_identity
    if holder and holder != lock.identity:
        _log.warning(
            "%s holds the lease %s/%s: two schedulers of one name work against each other; "
            "end the other one, or run this one with --leader-elect",
            holder,
            lock.namespace,
            lock.name,
        )
