"""Acquires and renews one Lease for which several processes compete, and records its observed state.

Only renewals that this process observed count, by the monotonic time of the event loop; times that other processes
wrote into the lease are never compared. The lease is held after a write that succeeded; every write contains the
version that it replaces, so that only one of two concurrent writes succeeds.

Two rules are stricter than in client-go. A lease with this identity but with an unknown renewal belongs to another
process: two processes have the same identity. If a lease is deleted, processes that saw it held wait until it would
have expired.
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
    """The time that candidates wait after the last renewal that they saw."""
    renew_s: float = 5.0
    """The time that a leader continues without a renewal."""
    retry_s: float = 1.0

    def __post_init__(self) -> None:
        if not self.lease_s > self.renew_s > self.retry_s * JITTER > 0:
            raise ValueError("a lease lasts longer than its renewal may take, and that longer than the wait to a retry")


class Lock(msgspec.Struct, frozen=True):
    """One lease, and the identity under which a process holds it."""

    namespace: str
    name: str
    identity: str
    """The unique identity of this process: `host_<random>`."""
    timing: Timing = Timing()
    successor_of: str = ""
    """The prefix of holders that have ended, because this process has the lock of their state folder."""
    annotations: tuple[tuple[str, str], ...] = ()
    """What the holder says of itself to those who read the lease."""


class LeaseLock:
    def __init__(self, api: Api, clock: Clock, lock: Lock) -> None:
        self.lock = lock
        self.renewed_at_s = float("-inf")
        """When the last successful write was sent, in the loop's time."""
        self._api = api
        self._clock = clock
        self._record = LeaseSpec()
        """The last seen spec of the lease."""
        self._version = 0
        self._seen_at_s = float("-inf")
        """When the last change of the spec was seen."""
        self._held: Obj | None = None
        """The lease after this process's last write."""
        self._sent: deque[str] = deque(maxlen=_REMEMBERED)
        """The renewals that this process tried to write. Some without an answer may have succeeded."""

    @property
    def holder(self) -> str:
        return self._record.holder_identity or ""

    @property
    def meta(self) -> Obj:
        """The metadata of the lease, as far as it is known."""
        known = {"namespace": self.lock.namespace, "name": self.lock.name}
        return dict(self._held["metadata"]) if self._held is not None else known

    @property
    def version(self) -> int:
        """The last seen resourceVersion of the lease; 0: none was seen."""
        return self._version

    @property
    def is_released(self) -> bool:
        """Whether the lease was seen without a holder."""
        return self._version > 0 and not self.holder

    @property
    def expires_in_s(self) -> float:
        """The remaining time of the holder if it does not renew the lease."""
        return max(0.0, self._seen_at_s + self._lasts_s - now_s())

    def observe(self, item: Item) -> None:
        """Record the lease from a watch, unless a newer version is known."""
        if item.version > self._version:
            self._see(item)

    async def attempt(self) -> bool:
        """Acquire or renew the lease; returns whether it is now held. False: another process holds it, and it has not
        expired.
        """
        if self._held is not None:
            held, self._held = self._held, None
            with suppress(NotFoundError, ConflictError):
                return await self._write(held)
        lease = await self._look()
        if not self._is_ours and self._is_kept_by_another:
            return False
        return await self._write(lease)

    async def release(self) -> None:
        """Release the lease at once if it is held, even by a write whose answer is not awaited."""
        held, self._held = self._held, None
        if self._sent:
            lease = held or await self._look()
            if lease is not None and self._is_ours:
                now = self._clock.micro_text()
                spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": now, "renewTime": now}
                self._see(await self._api.update(LEASES, {**lease, "spec": {**lease["spec"], **spec}}))
        self.forget()

    def forget(self) -> None:
        """Forget all own writes."""
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
            item = await self._api.create(LEASES, {"metadata": self._annotated(meta), "spec": spec})
        else:
            body = {**lease, "metadata": self._annotated(lease["metadata"])}
            item = await self._api.update(LEASES, {**body, "spec": {**(lease.get("spec") or {}), **spec}})
        self._see(item)
        self._held, self.renewed_at_s = item.obj(), sent_at_s
        return True

    def _annotated(self, meta: Obj) -> Obj:
        if not self.lock.annotations:
            return meta
        return {**meta, "annotations": {**(meta.get("annotations") or {}), **dict(self.lock.annotations)}}

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
