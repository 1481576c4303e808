"""One Lease as several processes compete for it: what was seen of it, and one try to hold it.

Only renewals that this process saw happen count, by the loop's own steady time: what clocks of others wrote into the
lease is never compared with anything. Held is what a write brought that was answered with success; every write says
which version it replaces, so that of two only one happens.

Stricter than client-go in two places. A lease that bears our name but not a renewal of ours is another's: two processes
were given one identity. If a lease is deleted, processes that saw it held wait until it would have expired.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress

import msgspec

from shoal.api.lease import Lease, LeaseSpec
from shoal.client.clock import Clock
from shoal.client.item import Item, Obj
from shoal.client.kind import LEASES
from shoal.client.port import Api
from shoal.client.refusals import NotFoundError
from shoal.units.errors import ConflictError

JITTER = 1.2
_REMEMBERED = 64


class Timing(msgspec.Struct, frozen=True):
    """client-go's rules, with shorter defaults: a leader that is killed is replaced within ten seconds."""

    lease_s: float = 7.0
    """How long others wait after the last renewal that they saw."""
    renew_s: float = 5.0
    """How long a leader goes on without a renewal."""
    retry_s: float = 1.0

    def __post_init__(self) -> None:
        if not self.lease_s > self.renew_s > self.retry_s * JITTER > 0:
            raise ValueError("a lease lasts longer than its renewal may take, and that longer than the wait to a retry")


class Lock(msgspec.Struct, frozen=True):
    """One lease, and the identity under which a process holds it."""

    namespace: str
    name: str
    identity: str
    """Of this process alone: `host_<random>`."""
    timing: Timing = Timing()
    successor_of: str = ""
    """Holders whose names begin so have ended, since this process has the lock of their state folder."""


class LeaseLock:
    def __init__(self, api: Api, clock: Clock, lock: Lock) -> None:
        self.lock = lock
        self.renewed_at_s = float("-inf")
        """When the last write that made it ours was sent, in the loop's time."""
        self._api = api
        self._clock = clock
        self._record = LeaseSpec()
        """As last seen."""
        self._version = 0
        self._seen_at_s = float("-inf")
        """When it last became another."""
        self._held: Obj | None = None
        """The lease as our last write left it."""
        self._sent: deque[str] = deque(maxlen=_REMEMBERED)
        """The renewals that we tried to write. Some that were never answered may have happened."""

    @property
    def holder(self) -> str:
        return self._record.holder_identity or ""

    @property
    def meta(self) -> Obj:
        """Of the lease, as far as it is known."""
        known = {"namespace": self.lock.namespace, "name": self.lock.name}
        return dict(self._held["metadata"]) if self._held is not None else known

    @property
    def version(self) -> int:
        """The resource version of the lease as last seen; 0: it was not seen."""
        return self._version

    @property
    def is_released(self) -> bool:
        """Whether the lease was seen, and has no holder."""
        return self._version > 0 and not self.holder

    @property
    def expires_in_s(self) -> float:
        """How long the holder keeps the lease if it does not renew it."""
        return max(0.0, self._seen_at_s + self._lasts_s - now_s())

    def observe(self, item: Item) -> None:
        """Take the lease as a watch reports it, unless something newer is known."""
        if item.version > self._version:
            self._see(item)

    async def attempt(self) -> bool:
        """Whether the lease is ours, written anew just now. False: it is another's, and not to be taken yet."""
        if self._held is not None:
            held, self._held = self._held, None
            with suppress(NotFoundError, ConflictError):
                return await self._write(held)
        lease = await self._look()
        if not self._is_ours and self._is_kept_by_another:
            return False
        return await self._write(lease)

    async def release(self) -> None:
        """Release it at once, if it is ours; also by a write whose answer is not awaited."""
        held, self._held = self._held, None
        if self._sent:
            lease = held or await self._look()
            if lease is not None and self._is_ours:
                now = self._clock.micro_text()
                spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": now, "renewTime": now}
                self._see(await self._api.update(LEASES, {**lease, "spec": {**lease["spec"], **spec}}))
        self.forget()

    def forget(self) -> None:
        """Nothing that was written is to count any more."""
        self._held = None
        self._sent.clear()
        self.renewed_at_s = float("-inf")

    async def _look(self) -> Obj | None:
        try:
            item = await self._api.get(LEASES, self.lock.namespace, self.lock.name)
        except NotFoundError:
            return None
        self._see(item)
        return item.obj()

    async def _write(self, lease: Obj | None) -> bool:
        sent_at_s = now_s()
        spec = self._next_spec()
        self._sent.append(spec["renewTime"])
        if lease is None:
            meta = {"namespace": self.lock.namespace, "name": self.lock.name}
            item = await self._api.create(LEASES, {"metadata": meta, "spec": spec})
        else:
            item = await self._api.update(LEASES, {**lease, "spec": {**(lease.get("spec") or {}), **spec}})
        self._see(item)
        self._held, self.renewed_at_s = item.obj(), sent_at_s
        return True

    def _next_spec(self) -> Obj:
        now, record, is_ours = self._clock.micro_text(), self._record, self._is_ours
        transitions = record.lease_transitions or 0
        is_first = record == LeaseSpec()
        return {
            "holderIdentity": self.lock.identity,
            "leaseDurationSeconds": max(round(self.lock.timing.lease_s), 1),
            "acquireTime": record.acquire_time if is_ours and record.acquire_time else now,
            "renewTime": now,
            "leaseTransitions": transitions if is_ours or is_first else transitions + 1,
        }

    def _see(self, item: Item) -> None:
        record = item.read(Lease).content()
        self._version = item.version
        if record != self._record:
            self._record, self._seen_at_s = record, now_s()

    @property
    def _is_ours(self) -> bool:
        return self._record.holder_identity == self.lock.identity and self._record.renew_time in self._sent

    @property
    def _lasts_s(self) -> float:
        return self._record.lease_duration_seconds or self.lock.timing.lease_s

    @property
    def _is_kept_by_another(self) -> bool:
        is_left_behind = bool(self.lock.successor_of) and self.holder.startswith(self.lock.successor_of)
        return bool(self.holder) and not is_left_behind and self.expires_in_s > 0


def now_s() -> float:
    """The monotonic time of the event loop."""
    return asyncio.get_running_loop().time()
