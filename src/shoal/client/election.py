"""Elects the leading process: the holder of a Lease, as in client-go's leader election.

Guarantees: work never runs in two processes at once if it ends within `lease_s - renew_s` after its cancellation. The
leader measures from the time at which it sent its renewal, a candidate from the time at which it saw the renewal, so
clocks that differ, jump or are wrong by years have no effect. After a lost answer, a refusal or an outage of the
server, the renewal is retried until the lease cannot be kept; if the leader sees another holder, its work ends at once,
where client-go waits for the deadline.

Rejected: asking the server before each write whether the process still leads. The answer is outdated when the write
arrives; writes are safe because of the versions and uids that they contain. Before each write only the time of the last
renewal is checked (`leased`).
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
from shoal.client.outage import Outage
from shoal.client.port import Api, Select
from shoal.client.recorder import Recorder
from shoal.client.refusals import AlreadyExistsError, ForbiddenError
from shoal.units.errors import ConflictError, ShoalError, TemporaryError

_log = logging.getLogger("shoal.election")
_APART_S = 0.1
"""Candidates that wait for the same expiry write at different moments."""
_SELDOM_S = 60.0
Work = Callable[[], Awaitable[None]]
Told = Callable[[Lock, str], None]
"""Called with a lease and its holder."""


def _stands_by(lock: Lock, holder: str) -> None:
    # Without this line the process would look stuck to the user who started it.
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
        """`api` should be a separate client, because a renewal must not wait behind a thousand bindings. `waits` is
        called when another process leads.
        """
        self._lock = lock
        self._timing = lock.timing
        self._api = api
        self._lease = LeaseLock(api, clock, lock)
        self._seen = asyncio.Event()
        """Set when the lease was read, so that there is a version to watch from."""
        self._released = asyncio.Event()
        self._draw = draw
        self._events = events
        self._waits = waits
        self._clock = clock
        self.outage = Outage()
        """The outage reporter of the server; shared with the caches of the process where it has any."""
        self._said = ""
        """The last refusal, which is logged once although it repeats at each retry."""

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
        """Wait for the lease, work, and wait again after a lost lease. Returns when the work ends. The lease is then
        released, also on cancellation, so that the next leader need not wait for its expiry.
        """
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
        """Returns whether the work ended by itself."""
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
                    # The release was not awaited, so the lease must expire.
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
                        is_renewed = await self._lease.attempt()
                        self.outage.ends(self)
                        return is_renewed
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
                # A server that does not answer must not prevent the next try of a candidate.
                async with asyncio.timeout(self._timing.renew_s):
                    if await self._lease.attempt() and self.is_leading:
                        self.outage.ends(self)
                        break
                self.outage.ends(self)
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
        """Watch the lease, so that a leader that releases it is replaced at once. If the watch is refused or breaks,
        the lease is still read at each retry.
        """
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
                # The retry uses a permission that was granted meanwhile.
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
        if not self.outage.takes(self, error, self._clock.seconds()):
            _log.log(level, "the lease %s/%s: %s", self._lock.namespace, self._lock.name, error)
        return max(self._timing.retry_s, error.delay_s if isinstance(error, TemporaryError) else 0.0)

    def _report(self, what: str) -> None:
        _log.info("%s %s", self._lock.identity, what)
        if self._events is not None:
            about = {"kind": LEASES.name, "apiVersion": LEASES.api_version, "metadata": self._lease.meta}
            self._events.record(about, "LeaderElection", f"{self._lock.identity} {what}")
