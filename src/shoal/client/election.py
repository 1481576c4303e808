"""Elects the process that works: the one that holds a Lease, as in client-go's leader election.

Guarantees: work never runs in two processes at once, as long as it ends within `lease_s - renew_s` of being cancelled.
Who leads counts from when its renewal was sent, who waits from when it saw it: clocks that disagree, jump or are wrong
by years change nothing. An answer that is lost, a refusal, a server that is away are tried again until the lease
cannot be kept any more; seeing another holder ends the work at once, where client-go waits for the deadline.

Rejected: asking the server before each write whether one still leads. The answer is old when the write arrives; writes
are safe by the versions and uids that they name. Only the time of the last renewal is looked at before each (`leased`).
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress

from shoal.client.clock import Clock
from shoal.client.item import WatchEvent
from shoal.client.kind import LEASES
from shoal.client.lease_lock import JITTER, LeaseLock, Lock, now_s
from shoal.client.port import Api, Select
from shoal.client.recorder import Recorder
from shoal.client.refusals import AlreadyExistsError, ForbiddenError
from shoal.units.errors import ConflictError, ShoalError, TemporaryError

_log = logging.getLogger("shoal.election")
_APART_S = 0.1
"""Candidates that wait for the same expiry do not all write in the same moment."""
_SELDOM_S = 60.0
Work = Callable[[], Awaitable[None]]
Told = Callable[[Lock, str], None]
"""Of a lease, and who holds it."""


def _stands_by(lock: Lock, holder: str) -> None:
    # Silence would look like a fault to the user who started it.
    _log.warning("standing by: %s holds the lease %s/%s and is active", holder, lock.namespace, lock.name)


class LeaderElection:
    def __init__(
        self,
        api: Api,
        clock: Clock,
        draw: random.Random,
        lock: Lock,
        events: Recorder | None = None,
        waits: Told = _stands_by,
    ) -> None:
        """`api` is best one of its own: a renewal must not wait behind a thousand bindings. `waits` reports that
        another process else leads.
        """
        self._lock = lock
        self._timing = lock.timing
        self._api = api
        self._lease = LeaseLock(api, clock, lock)
        self._seen = asyncio.Event()
        """The lease was read: there is a version from which it can be watched."""
        self._released = asyncio.Event()
        self._draw = draw
        self._events = events
        self._waits = waits
        self._said = ""
        """What was refused last: it is tried at each retry, and told once."""

    @property
    def leader(self) -> str:
        """The holder of the lease, as last seen; empty: none."""
        return self._lease.holder

    @property
    def is_leading(self) -> bool:
        return now_s() < self._deadline_s

    @property
    def _deadline_s(self) -> float:
        return self._lease.renewed_at_s + self._timing.renew_s

    async def run(self, work: Work) -> None:
        """Wait to lead, work, and after a lost lease wait again. Ends when the work does. The lease is free then, and
        also when this is cancelled, so that the next one need not wait it out."""
        try:
            while True:
                await self._acquire()
                if await self._lead(work):
                    return
        finally:
            with suppress(ShoalError, TimeoutError):
                async with asyncio.timeout(self._timing.retry_s):
                    await self._lease.release()
            self._lease.forget()

    async def _lead(self, work: Work) -> bool:
        """Whether the work came to an end of its own."""
        self._report("became leader")
        working = asyncio.ensure_future(work())
        keeping = asyncio.ensure_future(self._keep())
        try:
            await asyncio.wait((working, keeping), return_when=asyncio.FIRST_COMPLETED)
            has_ended = working.done()
        finally:
            self._report("stopped leading")
            working.cancel()
            keeping.cancel()
            try:
                await asyncio.gather(working, keeping, return_exceptions=True)
            finally:
                if not working.done():
                    # The release was not awaited, so the lease has to expire.
                    self._lease.forget()
        if has_ended:
            working.result()
            return True
        if not working.cancelled() and (error := working.exception()) is not None:
            _log.error("work did not end well when its lease was lost", exc_info=error)
        keeping.result()
        return False

    async def _keep(self) -> None:
        """Returns when the lease is lost."""
        while self.is_leading:
            await asyncio.sleep(min(self._timing.retry_s, self._deadline_s - now_s()))
            if not await self._is_renewed_until(self._deadline_s):
                break
        _log.warning("%s lost the lease %s", self._lock.identity, self._lock.name)
        self._lease.renewed_at_s = float("-inf")

    async def _is_renewed_until(self, deadline_s: float) -> bool:
        while now_s() < deadline_s:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(deadline_s):
                    try:
                        return await self._lease.attempt()
                    except ShoalError as error:
                        wait_s = self._wait_after(error)
                    await asyncio.sleep(wait_s)
        return False

    async def _acquire(self) -> None:
        following = asyncio.ensure_future(self._follow())
        try:
            await self._acquired()
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    async def _acquired(self) -> None:
        waits_for = ""
        while True:
            wait_s = self._timing.retry_s
            most_s = float("inf")
            self._released.clear()
            try:
                # A server that does not answer must not keep a candidate from its next try.
                async with asyncio.timeout(self._timing.renew_s):
                    if await self._lease.attempt() and self.is_leading:
                        break
                most_s = self._lease.expires_in_s + self._draw.uniform(0, _APART_S)
                self._seen.set()
                if self.leader not in ("", waits_for):
                    waits_for = self.leader
                    self._waits(self._lock, waits_for)
            except TimeoutError:
                _log.info("the lease %s/%s: no answer", self._lock.namespace, self._lock.name)
            except ShoalError as error:
                wait_s = self._wait_after(error)
            wait_s = min(wait_s * self._draw.uniform(1, 1 + JITTER), most_s)
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._released.wait()

    async def _follow(self) -> None:
        """Watch the lease, so that a leader that ends in order is replaced at once. Where the watch is refused or
        breaks, the lease is still read at each retry."""
        await self._seen.wait()
        only = Select(fields=f"metadata.name={self._lock.name}")
        wait_s = self._timing.retry_s
        while True:
            try:
                watch = self._api.watch(LEASES, self._lease.version, self._lock.namespace, only)
                async with aclosing(watch) as batches:
                    async for changes in batches:
                        for change in changes:
                            self._note(change)
                wait_s = self._timing.retry_s
            except ForbiddenError:
                # A permission that is granted later is used then.
                wait_s = min(2 * wait_s, _SELDOM_S)
            except ShoalError:
                wait_s = self._timing.retry_s
            await asyncio.sleep(wait_s)

    def _note(self, change: WatchEvent) -> None:
        item = change.item
        if item is None or change.kind == "DELETED" or item.name != self._lock.name:
            return
        self._lease.observe(item)
        if self._lease.is_released:
            self._released.set()

    def _wait_after(self, error: ShoalError) -> float:
        is_reported = isinstance(error, ForbiddenError) and error.is_reported
        will_pass = is_reported or isinstance(error, TemporaryError | ConflictError | AlreadyExistsError)
        is_news, self._said = str(error) != self._said, str(error)
        level = logging.WARNING if is_news and not will_pass else logging.INFO
        _log.log(level, "the lease %s/%s: %s", self._lock.namespace, self._lock.name, error)
        return max(self._timing.retry_s, error.delay_s if isinstance(error, TemporaryError) else 0.0)

    def _report(self, what: str) -> None:
        _log.info("%s %s", self._lock.identity, what)
        if self._events is not None:
            about = {"kind": LEASES.name, "apiVersion": LEASES.api_version, "metadata": self._lease.meta}
            self._events.record(about, "LeaderElection", f"{self._lock.identity} {what}")
