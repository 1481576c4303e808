"""Runs a controller's reconcile function: takes a key from the work queue, reconciles it, requeues it after a failure.

`reconcile` gets the key of an object and brings the actual state closer to the desired state of the object. It reads
caches, so that it may be called at any time and any number of times; it returns the seconds after which it must be
called again, or None.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from shoal.client.context import Context
from shoal.client.item import Item, Key
from shoal.client.kind import Kind
from shoal.client.refusals import NotFoundError, RefusedError
from shoal.client.work_queue import WorkQueue
from shoal.units.errors import ConflictError, TemporaryError

_log = logging.getLogger("shoal.controllers")
Reconcile = Callable[[Key], Awaitable[float | None]]


class Loop:
    """One controller: a queue of keys, and workers that reconcile them. Different keys may be reconciled
    concurrently.
    """

    def __init__(self, context: Context, reconcile: Reconcile, *, workers: int = 4) -> None:
        self.name = context.name
        self.queue: WorkQueue[Key] = WorkQueue(context.clock, context.draw)
        context.lines.append(self.queue)
        self._context = context
        self._reconcile = reconcile
        self._workers = workers
        self._needs: set[Kind] = set()

    def follow(
        self, kind: Kind, keys: Callable[[Item], Iterable[Key]] | None = None, *, only_latest: bool = False
    ) -> None:
        """Reconcile an object whenever it changes; or, with `keys`, the objects that a change of this kind concerns.

        `only_latest`: objects that the item concerned before the change are not queued. Pods change frequently and
        concern few objects, so reading each change once instead of twice matters.
        """
        self._needs.add(kind)

        def changed(before: Item | None, after: Item | None) -> None:
            for item in (after or before,) if only_latest else (before, after):
                if item is None:
                    continue
                for key in (item.key,) if keys is None else keys(item):
                    self.queue.add(key)

        self._context.informers.of(kind).on_change(changed)

    def need(self, *kinds: Kind) -> None:
        """Declare kinds that reconcile reads but whose changes do not queue a key."""
        for kind in kinds:
            self._context.informers.of(kind)
            self._needs.add(kind)

    def wake(self, key: Key, after_s: float = 0.0) -> None:
        self.queue.add_after(key, after_s)

    async def run(self) -> None:
        """Runs until cancelled; starts when all followed caches are synced."""
        await self._context.informers.synced(self._needs)
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            key = await self.queue.get()
            try:
                await self._once(key)
            except BaseException:
                # The call was cancelled: the key must be reconciled again.
                self.queue.add(key)
                raise
            finally:
                self.queue.done(key)

    async def _once(self, key: Key) -> None:
        queue = self.queue
        try:
            after_s = await self._reconcile(key)
        except (ConflictError, NotFoundError) as error:
            # The caches will report the concurrent change.
            _log.debug("%s: %s: %s", self.name, "/".join(key), error)
            queue.retry(key)
        except TemporaryError as error:
            delay_s = queue.retry(key, error.delay_s)
            _log.info("%s: %s: %s; again in %.1f s", self.name, "/".join(key), error, delay_s)
        except RefusedError as error:
            delay_s = queue.retry(key, 1.0)
            _log.warning("%s: %s: %s; again in %.1f s", self.name, "/".join(key), error, delay_s)
        except Exception:  # noqa: BLE001 - an error for one object must not stop the work on the others
            delay_s = queue.retry(key, 1.0)
            _log.exception("%s: %s failed; again in %.1f s", self.name, "/".join(key), delay_s)
        else:
            queue.forget(key)
            if after_s is not None:
                queue.add_after(key, after_s)
