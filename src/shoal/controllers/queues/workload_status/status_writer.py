"""Writes the statuses of Workloads: one patch for each, against the version on which its changes were computed.

A change is a function of the present status. After a conflict it is applied to the status that was read again, so that
what other controllers wrote stays. A change that does not apply any more is discarded, and the discipline decides again
on the present status.

Guarantees: changes of one Workload are written in order, and in one request if several are queued; a request whose
answer was lost is not repeated before the object was read again; a server that does not answer is retried without limit
and affects no decision.

Rejected: server-side apply. Shoal would own the lists of conditions and checks, to which other controllers write too.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Callable
from typing import Literal

import msgspec

from shoal.client.conditions import Status, WriteTime, difference
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import WORKLOADS
from shoal.client.item import Item, Obj
from shoal.client.kind import Kind
from shoal.client.port import Patch
from shoal.client.refusals import ForbiddenError, NotFoundError, RefusedError, UnauthorizedError
from shoal.client.work_queue import WorkQueue
from shoal.store.watched.queues import WatchedQueues
from shoal.units.errors import ConflictError, TemporaryError

_log = logging.getLogger("shoal.queues")
_WORKERS = 32
_FORBIDDEN_S = 10.0
_MOST_CONFLICTS = 8
_MOST_FAULTS = 6


class EventRecord(msgspec.Struct, frozen=True):
    """An Event on the Workload, recorded once the change is written."""

    reason: str
    message: str
    type_: Literal["Normal", "Warning"] = "Normal"


class StatusChange(msgspec.Struct, frozen=True):
    uid: str
    apply: Callable[[Status, WriteTime], bool]
    """Changes the status in place; returns False if the change does not apply any more."""
    events: tuple[EventRecord, ...] = ()
    is_decision: bool = True
    """Other decisions count on it before it is written; False for a message that the next change may replace."""
    generation: int = 0
    """Generation of the Workload for which it was decided; 0 if it applies to any."""
    deactivates: bool = False
    """After the status, `spec.active` is set to false."""


OnWritten = Callable[[str, str], None]
"""Called with the Workload, and with the server's message if it refused the change."""


class StatusWriter:
    def __init__(self, context: Context, watched: WatchedQueues, on_written: OnWritten) -> None:
        self._context = context
        self._watched = watched
        self._on_written = on_written
        self._changes: dict[str, list[StatusChange]] = {}
        self._unwritten: dict[str, int] = {}
        """Workload -> number of its decisions that are not written yet."""
        self._in_progress: dict[str, list[StatusChange]] = {}
        """The changes that a request writes now, without those of Workloads that were deleted meanwhile."""
        self._queue: WorkQueue[str] = WorkQueue(context.clock, context.draw)

    def write(self, key: str, change: StatusChange) -> None:
        changes = self._changes.setdefault(key, [])
        if change.is_decision:
            self._unwritten[key] = self._unwritten.get(key, 0) + 1
        # Messages that are not written yet are out of date.
        changes[:] = [one for one in changes if one.is_decision]
        changes.append(change)
        self._queue.add(key)

    def record(self, key: str, event: EventRecord) -> None:
        """Record an Event, whatever is being written."""
        kind = self._watched.kind(WORKLOADS)
        namespace, _, name = key.partition("/")
        item = self._watched.item(WORKLOADS, namespace, name)
        if kind is not None and item is not None:
            about = {"kind": kind.name, "apiVersion": kind.api_version, "metadata": _event_meta(item)}
            self._context.events.record(about, event.reason, event.message, type_=event.type_)

    def is_outdated(self, key: str) -> bool:
        """Whether the watch caches are older than the last decision about the Workload."""
        return key in self._unwritten

    @property
    def is_idle(self) -> bool:
        return not self._changes and not self._unwritten

    def forget(self, key: str) -> None:
        """The Workload was deleted. Changes that are being written do not count for a new one of the same name."""
        self._changes.pop(key, None)
        self._in_progress.pop(key, None)
        self._unwritten.pop(key, None)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(_WORKERS):
                group.create_task(self._run_worker())

    # internals

    async def _run_worker(self) -> None:
        while True:
            key = await self._queue.get()
            try:
                await self._process(key)
            finally:
                self._queue.done(key)

    async def _process(self, key: str) -> None:
        changes = self._changes.pop(key, [])
        if not changes:
            return
        self._in_progress[key] = changes
        try:
            refused = await self._write(key, changes)
        except asyncio.CancelledError:
            # The worker that starts next writes it.
            self._put_back(key, changes)
            self._queue.add(key)
            raise
        except (ConflictError, TemporaryError) as error:
            self._put_back(key, changes)
            delay_s = self._queue.retry(key, error.delay_s if isinstance(error, TemporaryError) else 0.0)
            _log.info("workload %s: %s; retrying in %.1f s", key, error, delay_s)
            return
        except (ForbiddenError, UnauthorizedError) as error:
            self._put_back(key, changes)
            self._queue.retry(key, _FORBIDDEN_S)
            _log.warning("cannot update workload %s: %s", key, error)
            return
        except NotFoundError:
            # The Workload was deleted, at whichever request this was noticed.
            refused = ""
        except Exception as error:  # noqa: BLE001 - one Workload that cannot be written must not end the work on all others
            _log.exception("cannot update workload %s", key)
            if self._queue.failures(key) < _MOST_FAULTS:
                # The fault may be temporary. A refused change waits until the Workload is changed.
                self._put_back(key, changes)
                self._queue.retry(key)
                return
            refused = str(error) or type(error).__name__
        self._queue.forget(key)
        self._finish_write(key, changes, refused)

    def _is_obsolete(self, key: str, changes: list[StatusChange]) -> bool:
        """Whether the Workload was deleted since the write began. The changes are not in progress any more."""
        return self._in_progress.pop(key, None) is not changes

    def _put_back(self, key: str, changes: list[StatusChange]) -> None:
        if self._is_obsolete(key, changes):
            return
        later = self._changes.get(key, [])
        kept = [one for one in changes if one.is_decision] if later else changes
        self._changes[key] = [*kept, *later]

    def _finish_write(self, key: str, changes: list[StatusChange], refused: str) -> None:
        if self._is_obsolete(key, changes):
            return
        count = sum(one.is_decision for one in changes)
        if not count and not refused:
            return
        left = self._unwritten.get(key, 0) - count
        if left > 0:
            self._unwritten[key] = left
        else:
            self._unwritten.pop(key, None)
        self._on_written(key, refused)

    async def _write(self, key: str, changes: list[StatusChange]) -> str:
        """Returns why the server refused it; empty if it is written or does not have to be written any more."""
        kind = self._watched.kind(WORKLOADS)
        if kind is None:
            return ""
        namespace, _, name = key.partition("/")
        item = self._watched.item(WORKLOADS, namespace, name)
        if self._queue.failures(key) or item is None:
            # Whether the last request was carried out is unknown.
            item = await self._context.api.get(kind, namespace, name)
        for _ in range(_MOST_CONFLICTS):
            try:
                written = await self._patch(kind, item, changes)
            except ConflictError:
                item = await self._context.api.get(kind, namespace, name)
                continue
            except RefusedError as error:
                if isinstance(error, (NotFoundError, ForbiddenError, UnauthorizedError)):
                    raise
                return str(error)
            for change in changes if written is not None else ():
                for event in change.events if change.uid == item.uid else ():
                    self.record(key, event)
            return ""
        raise TemporaryError("too many conflicts with other writers", 0.5)

    async def _patch(self, kind: Kind, item: Item, changes: list[StatusChange]) -> Item | None:
        """Returns None if there was nothing to write."""
        obj = item.obj()
        meta = obj["metadata"]
        moment = WriteTime(
            self._context.clock.text(), float(int(self._context.clock.seconds())), int(meta.get("generation") or 0)
        )
        before: Status = obj.get("status") or {}
        after = copy.deepcopy(before)
        deactivates = False
        for change in changes:
            if change.uid != item.uid or change.generation not in {0, moment.generation}:
                continue
            if meta.get("deletionTimestamp") and not change.deactivates and change.generation:
                continue
            trial = copy.deepcopy(after)
            if change.apply(trial, moment):
                after = trial
                deactivates = deactivates or change.deactivates
        written = None
        if body := difference(before, after):
            guard = {"resourceVersion": str(item.version), "uid": item.uid}
            patch = Patch("merge", {"metadata": guard, "status": body})
            written = await self._context.api.patch(kind, item.namespace, item.name, patch, "status")
        if deactivates:
            patch = Patch("merge", {"metadata": {"uid": item.uid}, "spec": {"active": False}})
            written = await self._context.api.patch(kind, item.namespace, item.name, patch)
        return written


def _event_meta(item: Item) -> Obj:
    return {
        "name": item.name,
        "namespace": item.namespace,
        "uid": item.uid,
        "resourceVersion": str(item.version),
    }
