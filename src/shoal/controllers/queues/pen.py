"""Writes what was decided about workloads: one patch for each, against the version that it was worked out on.

A change is a function of the status as it is now, so that a conflict costs one reading: others may have written
something else into the same status, and that stays. A change that does not apply any more is given back, and whoever
decided it decides again on what is there.

Promises: changes of one workload are written in order and in one request where they come together; a request whose
answer was lost is not repeated before the object has been read; a server that does not answer is asked again for as
long as it takes, and decides nothing here.

Rejected: server-side apply. Its fields would belong to us alone, and other controllers have their say in the same
lists of conditions and checks.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Callable
from typing import Literal

import msgspec

from shoal.store.live.conditions import Moment, Status, difference
from shoal.store.live.context import Context
from shoal.store.live.ecosystem_kinds import WORKLOADS
from shoal.store.live.item import Item, Obj
from shoal.store.live.kind import Kind
from shoal.store.live.port import Patch
from shoal.store.live.refusals import ForbiddenError, NotFoundError, RefusedError, UnauthorizedError
from shoal.store.live.work_queue import WorkQueue
from shoal.store.watched.queues import WatchedQueues
from shoal.units.errors import ConflictError, TemporaryError

_log = logging.getLogger("shoal.queues")
_WORKERS = 32
_FORBIDDEN_S = 10.0
_MOST_CONFLICTS = 8
_MOST_FAULTS = 6


class Said(msgspec.Struct, frozen=True):
    """An Event on the workload, once the change is written."""

    reason: str
    message: str
    type_: Literal["Normal", "Warning"] = "Normal"


class Change(msgspec.Struct, frozen=True):
    uid: str
    apply: Callable[[Status, Moment], bool]
    """Changes the status in place; False where it does not apply any more."""
    said: tuple[Said, ...] = ()
    is_decision: bool = True
    """Others are held to it before it is written; False for words that the next ones replace."""
    generation: int = 0
    """Of the specification that it was decided on; 0 where that does not matter."""
    switches_off: bool = False
    """After the status, `spec.active` becomes false."""


Settled = Callable[[str, str], None]
"""Told the workload, and the server's words where it would not have the change."""


class Pen:
    def __init__(self, context: Context, watched: WatchedQueues, settled: Settled) -> None:
        self._context = context
        self._watched = watched
        self._settled = settled
        self._changes: dict[str, list[Change]] = {}
        self._under_way: dict[str, int] = {}
        """Decisions not written yet."""
        self._in_hand: dict[str, list[Change]] = {}
        """What is being written, of workloads that are not forgotten meanwhile."""
        self._queue: WorkQueue[str] = WorkQueue(context.clock, context.draw)

    def write(self, key: str, change: Change) -> None:
        changes = self._changes.setdefault(key, [])
        if change.is_decision:
            self._under_way[key] = self._under_way.get(key, 0) + 1
        # What was to be told before is old.
        changes[:] = [one for one in changes if one.is_decision]
        changes.append(change)
        self._queue.add(key)

    def say(self, key: str, said: Said) -> None:
        """An Event beside everything that is written."""
        kind = self._watched.kind(WORKLOADS)
        namespace, _, name = key.partition("/")
        item = self._watched.item(WORKLOADS, namespace, name)
        if kind is not None and item is not None:
            about = {"kind": kind.name, "apiVersion": kind.api_version, "metadata": _head(item)}
            self._context.events.record(about, said.reason, said.message, type_=said.type_)

    def is_deciding(self, key: str) -> bool:
        """Whether what is known of it is not yet what was decided."""
        return key in self._under_way

    @property
    def is_idle(self) -> bool:
        return not self._changes and not self._under_way

    def forget(self, key: str) -> None:
        """The workload is gone. One that is made anew under its name has nothing to do with what is being written."""
        self._changes.pop(key, None)
        self._in_hand.pop(key, None)
        self._under_way.pop(key, None)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(_WORKERS):
                group.create_task(self._work())

    # Inside

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            try:
                await self._once(key)
            finally:
                self._queue.done(key)

    async def _once(self, key: str) -> None:
        changes = self._changes.pop(key, [])
        if not changes:
            return
        self._in_hand[key] = changes
        try:
            refused = await self._write(key, changes)
        except asyncio.CancelledError:
            # Whoever begins again begins with it.
            self._put_back(key, changes)
            self._queue.add(key)
            raise
        except (ConflictError, TemporaryError) as error:
            self._put_back(key, changes)
            delay_s = self._queue.retry(key, error.delay_s if isinstance(error, TemporaryError) else 0.0)
            _log.info("workload %s: %s; again in %.1f s", key, error, delay_s)
            return
        except (ForbiddenError, UnauthorizedError) as error:
            self._put_back(key, changes)
            self._queue.retry(key, _FORBIDDEN_S)
            _log.warning("workload %s may not be written: %s", key, error)
            return
        except NotFoundError:
            # It went, at whichever step of it.
            refused = ""
        except Exception as error:  # noqa: BLE001 - one workload that cannot be written must not end the work on all others
            _log.exception("workload %s could not be written", key)
            if self._queue.failures(key) < _MOST_FAULTS:
                # It may pass; what is refused waits until somebody changes it.
                self._put_back(key, changes)
                self._queue.retry(key)
                return
            refused = str(error) or type(error).__name__
        self._queue.forget(key)
        self._done(key, changes, refused)

    def _is_forgotten(self, key: str, changes: list[Change]) -> bool:
        """From now on it is not being written, whether it is or not."""
        return self._in_hand.pop(key, None) is not changes

    def _put_back(self, key: str, changes: list[Change]) -> None:
        if self._is_forgotten(key, changes):
            return
        later = self._changes.get(key, [])
        kept = [one for one in changes if one.is_decision] if later else changes
        self._changes[key] = [*kept, *later]

    def _done(self, key: str, changes: list[Change], refused: str) -> None:
        if self._is_forgotten(key, changes):
            return
        count = sum(one.is_decision for one in changes)
        if not count and not refused:
            return
        left = self._under_way.get(key, 0) - count
        if left > 0:
            self._under_way[key] = left
        else:
            self._under_way.pop(key, None)
        self._settled(key, refused)

    async def _write(self, key: str, changes: list[Change]) -> str:
        """Why the server would not have it; empty where it is written, or was not to be written any more."""
        kind = self._watched.kind(WORKLOADS)
        if kind is None:
            return ""
        namespace, _, name = key.partition("/")
        item = self._watched.item(WORKLOADS, namespace, name)
        if self._queue.failures(key) or item is None:
            # Nobody knows what became of the last try.
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
                for said in change.said if change.uid == item.uid else ():
                    self.say(key, said)
            return ""
        raise TemporaryError("others write it all the time", 0.5)

    async def _patch(self, kind: Kind, item: Item, changes: list[Change]) -> Item | None:
        """None where there was nothing to write."""
        obj = item.obj()
        meta = obj["metadata"]
        moment = Moment(
            self._context.clock.text(), float(int(self._context.clock.seconds())), int(meta.get("generation") or 0)
        )
        before: Status = obj.get("status") or {}
        after = copy.deepcopy(before)
        switches_off = False
        for change in changes:
            if change.uid != item.uid or change.generation not in {0, moment.generation}:
                continue
            if meta.get("deletionTimestamp") and not change.switches_off and change.generation:
                continue
            trial = copy.deepcopy(after)
            if change.apply(trial, moment):
                after = trial
                switches_off = switches_off or change.switches_off
        written = None
        if body := difference(before, after):
            guard = {"resourceVersion": str(item.version), "uid": item.uid}
            patch = Patch("merge", {"metadata": guard, "status": body})
            written = await self._context.api.patch(kind, item.namespace, item.name, patch, "status")
        if switches_off:
            patch = Patch("merge", {"metadata": {"uid": item.uid}, "spec": {"active": False}})
            written = await self._context.api.patch(kind, item.namespace, item.name, patch)
        return written


def _head(item: Item) -> Obj:
    return {
        "name": item.name,
        "namespace": item.namespace,
        "uid": item.uid,
        "resourceVersion": str(item.version),
    }
