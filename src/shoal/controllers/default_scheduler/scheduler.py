"""The scheduler's life: take the next pod, decide, count it where it goes, and let the writing go on beside.

One pod at a time is decided on, in microseconds and without waiting; what is written (bindings, conditions, ends of
pods that yield) runs beside it, a bounded number at once; a pod that only waits for its volumes does not count. Nothing
is remembered across restarts: pods, nodes and claims say all there is to know. `run` may be called again after it has
ended, in whatever way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from shoal.controllers.default_scheduler.asks import PodFacts
from shoal.controllers.default_scheduler.binding import Binder, Decision
from shoal.controllers.default_scheduler.choosing import Look
from shoal.controllers.default_scheduler.reasons import LEAVING, NEVER, nobody_yields
from shoal.controllers.default_scheduler.telling import Teller
from shoal.controllers.default_scheduler.victims import Budget, Victims, cheapest_victims
from shoal.controllers.default_scheduler.watching import KINDS, Watching
from shoal.store.live.context import Context
from shoal.store.live.kind import DISRUPTION_BUDGETS, PODS
from shoal.store.live.refusals import NotFoundError
from shoal.units.errors import ShoalError, TemporaryError

_log = logging.getLogger("shoal.controllers")
_MOST_WRITES = 128
_AT_A_TIME = 32
"""Decisions before others get a turn."""
_MOST_REFUSALS = 4096
Work = Callable[[], Awaitable[None]]


class Scheduler:
    def __init__(self, context: Context, names: frozenset[str]) -> None:
        self.name = context.name
        self._context = context
        self._clock = context.clock
        self._wakeup = asyncio.Event()
        self.watching = Watching(context, names, self._wakeup.set)
        self._queue, self._world = self.watching.queue, self.watching.world
        self._binder = Binder(context, self.watching.volumes, self.watching.devices)
        self._teller = Teller(context)
        self._pods = context.informers.of(PODS)
        self._budgets = context.informers.of(DISRUPTION_BUDGETS)
        self._writes = asyncio.Semaphore(_MOST_WRITES)
        self._refusals: dict[Any, str] = {}
        self._refused_at = -1

    async def run(self) -> None:
        await self._context.informers.synced((*KINDS, DISRUPTION_BUDGETS))
        await self._settle()
        async with asyncio.TaskGroup() as group:
            while True:
                self._queue.tick(self._clock.seconds())
                self._wakeup.clear()
                if not await self._some(group):
                    await self._until(self._queue.next_s())

    async def _settle(self) -> None:
        """End what an earlier run left in the middle: tasks that were cancelled before they began could not do so."""
        self._writes = asyncio.Semaphore(_MOST_WRITES)
        for pod in self._queue.worked_on():
            await self._look_again(pod)
        self._world.forget_promises()
        self.watching.stir()

    async def _until(self, due_s: float | None) -> None:
        """Something happens, or it is time."""
        timer = None
        if due_s is not None:
            timer = self._clock.call_later(due_s - self._clock.seconds(), self._wakeup.set)
        try:
            await self._wakeup.wait()
        finally:
            if timer is not None:
                timer.cancel()

    async def _some(self, group: asyncio.TaskGroup) -> bool:
        """A few decisions; whether there was one to make."""
        for _ in range(_AT_A_TIME):
            # In this order: a pod may change, or go, while there is nobody to write for it.
            await self._writes.acquire()
            pod = self._queue.pop()
            if pod is None:
                self._writes.release()
                return False
            try:
                work = self._decide(pod)
            except Exception:  # noqa: BLE001 - one pod that breaks the code must not end the work on all others
                _log.exception("%s: %s failed", self.name, "/".join(pod.key))
                self._queue.delay(pod.uid, self._clock.seconds())
                self._writes.release()
                continue
            group.create_task(self._write(pod, work))
        await asyncio.sleep(0)
        return True

    async def _write(self, pod: PodFacts, work: Work) -> None:
        try:
            await work()
        except ShoalError as error:
            _log.info("%s: %s: %s", self.name, "/".join(pod.key), error)
        except Exception:  # noqa: BLE001 - as above
            _log.exception("%s: %s failed", self.name, "/".join(pod.key))
        finally:
            self._writes.release()

    # -- deciding ---------------------------------------------------------------------------------------------------

    def _decide(self, pod: PodFacts) -> Work:
        """What is to be written about the pod. All that later decisions must know of it is known on return."""
        world = self._world
        same = (pod.ask, pod.priority, pod.never_preempts, pod.namespace, *sorted(pod.labels.items()))
        is_plain = not pod.ask.volume_claims and not pod.ask.device_claims and not world.nominated
        if self._refused_at != world.fleet.version or len(self._refusals) > _MOST_REFUSALS:
            self._refusals.clear()
            self._refused_at = world.fleet.version
        known = self._refusals.get(same) if is_plain else None
        if known is not None:
            self._queue.stuck(pod.uid, self._clock.seconds())
            return partial(self._teller.unplaced, pod, known, None)
        look = world.look(pod)
        if len(look.rows):
            return self._place(pod, look)
        work, words = self._refuse(pod, look)
        if is_plain and words:
            self._refusals[same] = words
            self._refused_at = world.fleet.version
        return work

    def _place(self, pod: PodFacts, look: Look) -> Work:
        world, fleet = self._world, self._world.fleet
        promised = fleet.row_of.get(pod.nominated, -1)
        row = promised if promised in look.rows else world.chooser.best(pod, look.rows)
        node = fleet.name(row)
        needed, _ = world.needs(pod)
        wanted = (needed and world.volumes.needs.wanted(needed, node, fleet.labels(row))) or []
        given = (self.watching.devices.given(pod, row) or {}) if pod.ask.device_claims else {}
        world.volumes.needs.promise(wanted)
        self.watching.devices.promise(given)
        world.place(node, pod)
        return partial(self._carry_out, Decision(pod, node, wanted, given))

    def _refuse(self, pod: PodFacts, look: Look) -> tuple[Work, str]:
        now_s, refusal = self._clock.seconds(), look.refusal
        self._queue.stuck(pod.uid, now_s)
        if not refusal.nodes:
            return partial(self._teller.unplaced, pod, refusal.words(), None), refusal.words()
        if pod.never_preempts:
            words = refusal.with_preemption(NEVER)
            return partial(self._teller.unplaced, pod, words, ""), words
        if pod.nominated and any(
            other.is_leaving and other.priority < pod.priority for other in self._world.fleet.pods_on(pod.nominated)
        ):
            return partial(self._teller.unplaced, pod, refusal.with_preemption(LEAVING), None), ""
        budgets = [item.read(Budget) for item in self._budgets]
        victims = cheapest_victims(self._world, pod, look, budgets)
        if victims is None:
            words = refusal.with_preemption(nobody_yields(refusal.nodes, refusal.nodes - len(look.helpable)))
            return partial(self._teller.unplaced, pod, words, ""), words
        self._world.nominated[pod.uid] = (victims.node, pod)
        return partial(self._preempt, pod, refusal.words(), victims), ""

    # -- writing ----------------------------------------------------------------------------------------------------

    async def _preempt(self, pod: PodFacts, words: str, victims: Victims) -> None:
        try:
            await self._teller.end(victims.pods, pod, victims.node)
            await self._teller.unplaced(pod, words, victims.node)
        except ShoalError:
            self._world.nominated.pop(pod.uid, None)
            raise
        finally:
            # If they were gone before this was written, or none of it could be, nobody else says that it is time.
            self.watching.stir(lambda other: other.uid == pod.uid)

    async def _carry_out(self, decision: Decision) -> None:
        pod = decision.pod
        try:
            await self._bind(decision)
        except Exception as error:
            # Not before what was promised to it is free again.
            self.watching.stir()
            if self._queue.get(pod.uid) is not None:
                await self._teller.unplaced(pod, str(error), None, "SchedulerError")
            raise
        self._teller.bound(pod, decision.node)

    async def _bind(self, decision: Decision) -> None:
        pod = decision.pod
        try:
            if pod.ask.volume_claims:
                await self._binder.choose_volumes(decision)
                async with self._aside():
                    await self._binder.volumes_bound(decision)
            await self._binder.bind(decision)
            self._queue.drop(pod.uid)
        except Exception:
            await self._look_again(pod)
            raise
        finally:
            self._world.volumes.needs.withdraw(decision.wanted)
            self.watching.devices.withdraw(decision.given)

    @asynccontextmanager
    async def _aside(self) -> AsyncIterator[None]:
        """Others write meanwhile."""
        self._writes.release()
        try:
            yield
        finally:
            await self._writes.acquire()

    async def _look_again(self, pod: PodFacts) -> None:
        """Nobody knows what became of a write that did not end well: look before the room is given to others."""
        while True:
            try:
                await self._context.api.get(PODS, *pod.key)
            except NotFoundError:
                self._queue.drop(pod.uid)
            except TemporaryError as busy:
                await self._clock.sleep(max(busy.delay_s, 0.5))
                continue
            except ShoalError:
                _log.info("%s: %s cannot be read", self.name, "/".join(pod.key))
            break
        if self._queue.get(pod.uid) is None:
            # Bound after all, or gone; the caches have said so to the world.
            if self._pods.get(*pod.key) is None:
                self._world.remove(pod.uid)
            return
        self._world.remove(pod.uid)
        self._queue.delay(pod.uid, self._clock.seconds())
