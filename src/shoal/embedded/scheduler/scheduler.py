"""Runs the scheduler: takes the next pod, decides, assumes the pod on its node, and writes in the background.

One pod at a time is decided, in microseconds and without waiting. Writes (bindings, conditions, evictions) run in the
background, a limited number at once; a pod that waits only for its volumes does not count. No state is needed across
restarts: pods, nodes and claims contain everything. `run` may be called again after it ended for any reason.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, NamedTuple

from shoal.client.context import Context
from shoal.client.item import Obj
from shoal.client.kind import DISRUPTION_BUDGETS, PODS
from shoal.client.refusals import NotFoundError
from shoal.client.volumes.needs import WantedClaim
from shoal.controllers.bind_preparation.claims import ClaimWriter
from shoal.controllers.bind_preparation.users import User
from shoal.controllers.bind_preparation.volumes import VolumeWriter
from shoal.embedded.scheduler.device_fit import ClaimDevices, DeviceFit
from shoal.embedded.scheduler.event_handlers import KINDS, EventHandlers
from shoal.embedded.scheduler.node_choice import FilterResult
from shoal.embedded.scheduler.pod_info import PodInfo
from shoal.embedded.scheduler.reasons import NEVER, TERMINATING_VICTIMS, no_victims
from shoal.embedded.scheduler.reports import ScheduledConditionWriter
from shoal.embedded.scheduler.victims import BudgetState, Victims, cheapest_victims
from shoal.embedded.scheduler.volume_fit import VolumeFit, mounts_of
from shoal.units.errors import ShoalError, TemporaryError

_log = logging.getLogger("shoal.controllers")
MAX_WRITES = 128
"""The number of writes in progress at once."""
_AT_A_TIME = 32
"""The number of decisions before other tasks get a turn."""
_MAX_REFUSALS = 4096
Work = Callable[[], Awaitable[None]]


class Scheduler:
    def __init__(self, context: Context, names: frozenset[str], max_writes: int = MAX_WRITES) -> None:
        self.name = context.name
        self._context = context
        self._clock = context.clock
        self._wakeup = asyncio.Event()
        self.event_handlers = EventHandlers(context, names, self._wakeup.set)
        self._queue, self._state = self.event_handlers.queue, self.event_handlers.state
        self._binder = Binder(context, self.event_handlers.volumes, self.event_handlers.devices)
        self._reporter = ScheduledConditionWriter(context)
        self._pods = context.informers.of(PODS)
        self._budgets = context.informers.of(DISRUPTION_BUDGETS)
        self._max_writes = max_writes
        self._writes = asyncio.Semaphore(max_writes)
        self._refusals: dict[Any, str] = {}
        self._refused_at = -1

    async def run(self) -> None:
        await self._context.informers.synced((*KINDS, DISRUPTION_BUDGETS))
        await self._settle()
        async with asyncio.TaskGroup() as group:
            while True:
                self._queue.activate_due(self._clock.seconds())
                self._wakeup.clear()
                if not await self._decide_some(group):
                    await self._until(self._queue.next_s())

    async def _settle(self) -> None:
        """Cleans up after an earlier run: tasks that were cancelled before they started could not."""
        self._writes = asyncio.Semaphore(self._max_writes)
        for pod in self._queue.worked_on():
            await self._reread(pod)
        self._state.forget_reservations()
        self.event_handlers.activate()

    async def _until(self, due_s: float | None) -> None:
        """Waits for an event, or until the time is due."""
        timer = None
        if due_s is not None:
            timer = self._clock.call_later(due_s - self._clock.seconds(), self._wakeup.set)
        try:
            await self._wakeup.wait()
        finally:
            if timer is not None:
                timer.cancel()

    async def _decide_some(self, group: asyncio.TaskGroup) -> bool:
        """Makes a few decisions; returns whether there was one."""
        for _ in range(_AT_A_TIME):
            # In this order: a pod may change or be deleted while no write slot is free.
            await self._writes.acquire()
            pod = self._queue.pop()
            if pod is None:
                self._writes.release()
                return False
            try:
                work = self._decide(pod)
            except Exception:  # noqa: BLE001 - an error for one pod must not stop the work on the others
                _log.exception("%s: %s failed", self.name, "/".join(pod.key))
                self._queue.delay(pod.uid, self._clock.seconds())
                self._writes.release()
                continue
            group.create_task(self._write(pod, work))
        await asyncio.sleep(0)
        return True

    async def _write(self, pod: PodInfo, work: Work) -> None:
        try:
            await work()
        except ShoalError as error:
            _log.info("%s: %s: %s", self.name, "/".join(pod.key), error)
        except Exception:  # noqa: BLE001 - as above
            _log.exception("%s: %s failed", self.name, "/".join(pod.key))
        finally:
            self._writes.release()

    # -- decisions --------------------------------------------------------------------------------------------------

    def _decide(self, pod: PodInfo) -> Work:
        """Decides about a pod and returns the write. Later decisions already see the result."""
        state = self._state
        same = (pod.request, pod.priority, pod.never_preempts, pod.namespace, *sorted(pod.labels.items()))
        is_plain = not pod.request.volume_claims and not pod.request.device_claims and not state.nominated
        if self._refused_at != state.columns.version or len(self._refusals) > _MAX_REFUSALS:
            self._refusals.clear()
            self._refused_at = state.columns.version
        known = self._refusals.get(same) if is_plain else None
        if known is not None:
            self._queue.mark_unschedulable(pod.uid, self._clock.seconds())
            return partial(self._reporter.unplaced, pod, known, None)
        result = state.filter(pod)
        if len(result.rows):
            return self._place(pod, result)
        work, words = self._refuse(pod, result)
        if is_plain and words:
            self._refusals[same] = words
            self._refused_at = state.columns.version
        return work

    def _place(self, pod: PodInfo, result: FilterResult) -> Work:
        state, columns = self._state, self._state.columns
        nominated = columns.row_of.get(pod.nominated, -1)
        row = nominated if nominated in result.rows else state.chooser.best(pod, result.rows)
        node = columns.name(row)
        needed, _ = state.needs(pod)
        wanted = (needed and state.volumes.needs.wanted(needed, node, columns.labels(row))) or []
        devices_for = (self.event_handlers.devices.devices_for(pod, row) or {}) if pod.request.device_claims else {}
        state.volumes.needs.reserve(wanted)
        self.event_handlers.devices.reserve(devices_for)
        state.place(node, pod)
        return partial(self._apply, Decision(pod, node, wanted, devices_for))

    def _refuse(self, pod: PodInfo, result: FilterResult) -> tuple[Work, str]:
        now_s, refusal = self._clock.seconds(), result.refusal
        self._queue.mark_unschedulable(pod.uid, now_s)
        if not refusal.nodes:
            return partial(self._reporter.unplaced, pod, refusal.words(), None), refusal.words()
        if pod.never_preempts:
            words = refusal.with_preemption(NEVER)
            return partial(self._reporter.unplaced, pod, words, ""), words
        if pod.nominated and any(
            other.is_terminating and other.priority < pod.priority
            for other in self._state.columns.pods_on(pod.nominated)
        ):
            return partial(self._reporter.unplaced, pod, refusal.with_preemption(TERMINATING_VICTIMS), None), ""
        budgets = [item.read(BudgetState) for item in self._budgets]
        victims = cheapest_victims(self._state, pod, result, budgets)
        if victims is None:
            words = refusal.with_preemption(no_victims(refusal.nodes, refusal.nodes - len(result.helpable)))
            return partial(self._reporter.unplaced, pod, words, ""), words
        self._state.nominated[pod.uid] = (victims.node, pod)
        return partial(self._preempt, pod, refusal.words(), victims), ""

    # -- writes -----------------------------------------------------------------------------------------------------

    async def _preempt(self, pod: PodInfo, words: str, victims: Victims) -> None:
        try:
            await self._reporter.end(victims.pods, pod, victims.node)
            await self._reporter.unplaced(pod, words, victims.node)
        except ShoalError:
            self._state.nominated.pop(pod.uid, None)
            raise
        finally:
            # If the victims were deleted before this write, or it failed, no other event activates the pod.
            self.event_handlers.activate(lambda other: other.uid == pod.uid)

    async def _apply(self, decision: Decision) -> None:
        pod = decision.pod
        try:
            await self._bind(decision)
        except Exception as error:
            # Other pods are activated only after its reservation is released.
            self.event_handlers.activate()
            if self._queue.get(pod.uid) is not None:
                await self._reporter.unplaced(pod, str(error), None, "SchedulerError")
            raise
        self._reporter.bound(pod, decision.node)

    async def _bind(self, decision: Decision) -> None:
        pod = decision.pod
        try:
            if pod.request.volume_claims:
                await self._binder.choose_volumes(decision)
                async with self._without_write_slot():
                    await self._binder.volumes_bound(decision)
            await self._binder.bind(decision)
            self._queue.drop(pod.uid)
        except Exception:
            await self._reread(pod)
            raise
        finally:
            self._state.volumes.needs.withdraw(decision.wanted)
            self.event_handlers.devices.unreserve(decision.devices_for)

    @asynccontextmanager
    async def _without_write_slot(self) -> AsyncIterator[None]:
        """Frees the write slot while the body waits."""
        self._writes.release()
        try:
            yield
        finally:
            await self._writes.acquire()

    async def _reread(self, pod: PodInfo) -> None:
        """Reads the pod after a write with an unknown result, before its capacity is used by others."""
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
            # The pod is bound or deleted, and the handlers have updated the scheduler cache.
            if self._pods.get(*pod.key) is None:
                self._state.remove(pod.uid)
            return
        self._state.remove(pod.uid)
        self._queue.delay(pod.uid, self._clock.seconds())


class Decision(NamedTuple):
    pod: PodInfo
    node: str
    wanted: list[WantedClaim]
    devices_for: ClaimDevices


class Binder:
    def __init__(self, context: Context, volumes: VolumeFit, devices: DeviceFit) -> None:
        self._api = context.api
        self._volumes = VolumeWriter(context, volumes.needs)
        self._claims = ClaimWriter(context, devices.reach)

    async def bind(self, decision: Decision) -> None:
        """Binds the pod after its volumes are bound."""
        pod = decision.pod
        for key in pod.request.device_claims:
            await self._claims.reserve(key, _user(pod), decision.devices_for.get(key, ()), decision.node)
        body: Obj = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
            "target": {"kind": "Node", "name": decision.node},
        }
        await self._api.post(PODS, pod.namespace, pod.name, "binding", body)

    async def choose_volumes(self, decision: Decision) -> None:
        await self._volumes.choose(decision.wanted, decision.node)

    async def volumes_bound(self, decision: Decision) -> None:
        pod = decision.pod
        await self._volumes.bound(_user(pod), mounts_of(pod), decision.wanted, decision.node)


def _user(pod: PodInfo) -> User:
    return User(pod.namespace, pod.name, pod.uid)
