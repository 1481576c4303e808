"""One look at one job: what it has, what follows, what is written.

Status first, finalizers second, numbers third; every step may be the last one of this process.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from shoal.controllers.jobs.backoff import NO_FAILURES, Failures
from shoal.controllers.jobs.course import with_announcement, with_end, with_numbers, with_pause
from shoal.controllers.jobs.demand import Demand, find_demand
from shoal.controllers.jobs.ending import REACHED, End, deadline_s, find_end
from shoal.controllers.jobs.job import Job, JobStatus, Obj, status_object
from shoal.controllers.jobs.pod_template import new_pod
from shoal.controllers.jobs.pod_writes import PodWrites
from shoal.controllers.jobs.pods import JobPod
from shoal.controllers.jobs.stock import Stock, take_stock
from shoal.controllers.jobs.tally import count_released, tally
from shoal.store.live.context import Context
from shoal.store.live.item import Item
from shoal.store.live.kind import JOBS
from shoal.units.errors import ShoalError


class Memory:
    """What is kept between looks. None of it is needed; without it some pods come sooner, or twice."""

    def __init__(self, context: Context) -> None:
        self.writes = PodWrites(context)
        self.failures: dict[str, Failures] = {}

    def forget(self, job_uid: str) -> None:
        self.failures.pop(job_uid, None)
        self.writes.forget(job_uid)


class Look:
    def __init__(self, context: Context, memory: Memory, item: Item, pods: Callable[[], list[JobPod]]) -> None:
        """`pods` are those of the job at the time of asking."""
        self._context = context
        self._writes = memory.writes
        self._failures = memory.failures
        self._item = item
        self._job = item.read(Job)
        self._pods = pods
        self._about = job_reference(item)
        self._now = context.clock.text()
        self._now_s = context.clock.seconds()

    async def go(self) -> float | None:
        job = self._job
        status = job.status
        if status.start_time is None and not job.spec.suspend:
            status = msgspec.structs.replace(status, start_time=self._now)
        stock = take_stock(msgspec.structs.replace(job, status=status), self._pods())
        failures = self._failures.get(job.uid, NO_FAILURES).after(stock.new_succeeded, stock.new_failed)
        end, demand, error = find_end(stock, self._now_s), Demand(), None
        if end is not None:
            error = await self._writes.delete(self._about, stock.active, untracked=False)
        elif not job.is_deleting:
            demand = find_demand(stock, failures, self._now_s)
            error = await self._meet(stock, demand)
        pods = self._pods()
        if end is None and stock.is_complete and not any(pod.is_active for pod in pods):
            end = REACHED
        elif end is None and not job.is_deleting:
            status = with_pause(status, job.spec.suspend, self._now)
        done = await self._count(stock, with_numbers(status, pods), end if error is None else None, failures)
        raise_if(error)
        if not done:
            return 0.0
        return None if end is not None else _soonest(demand.wait_s, deadline_s(self._job, self._now_s))

    async def _meet(self, stock: Stock, demand: Demand) -> ShoalError | None:
        if demand.remove:
            return await self._writes.delete(self._about, demand.remove, untracked=True)
        indexes = demand.indexes or (None,) * demand.create
        pods = [new_pod(self._job, one, stock.held.get(one) if one is not None else None) for one in indexes]
        return await self._writes.create(self._about, pods)

    async def _count(self, stock: Stock, status: JobStatus, end: End | None, failures: Failures) -> bool:
        """False when pods are left to be counted."""
        count = tally(stock, status, end)
        status = with_announcement(count.status, end, self._now) if end is not None else count.status
        await self._write(status)
        self._failures[self._job.uid] = failures
        error = await self._writes.release(count.release)
        pods = self._pods()
        status = with_numbers(count_released(status, {pod.uid for pod in pods if pod.is_tracked}), pods)
        has_ended = (
            end is not None and count.is_all and error is None
            and not status.uncounted_terminated_pods and not status.terminating and not status.active
        )  # fmt: skip
        if end is not None and has_ended:
            status = with_end(status, end, self._now)
        await self._write(status)
        if end is not None and has_ended:
            self._tell_end(end)
        raise_if(error)
        return count.is_all

    async def _write(self, status: JobStatus) -> None:
        before = self._job.status
        if status == before:
            return
        obj = self._item.obj()
        obj["status"] = status_object(status)
        self._item = await self._context.api.update(JOBS, obj, "status")
        self._job = msgspec.structs.replace(self._job, status=status)
        paused, was_paused = status.condition("Suspended"), before.condition("Suspended")
        if paused is not None and was_paused is None:
            self._context.events.record(self._about, "Suspended", "Job suspended")
        elif paused is None and was_paused is not None:
            self._context.events.record(self._about, "Resumed", "Job resumed")

    def _tell_end(self, end: End) -> None:
        record, wanted = self._context.events.record, self._job.spec.completions
        if not end.is_success:
            record(self._about, end.reason, end.message, type_="Warning")
            return
        if wanted is not None and self._job.status.succeeded > wanted:
            words = "Too many succeeded pods running after completion count reached"
            record(self._about, "TooManySucceededPods", words, type_="Warning")
        record(self._about, "Completed", "Job completed")


def job_reference(item: Item) -> Obj:
    metadata = {"name": item.name, "namespace": item.namespace, "uid": item.uid, "resourceVersion": str(item.version)}
    return {"kind": "Job", "apiVersion": "batch/v1", "metadata": metadata}


def _soonest(*waits_s: float | None) -> float | None:
    return min((wait_s for wait_s in waits_s if wait_s is not None), default=None)


def raise_if(error: ShoalError | None) -> None:
    if error is not None:
        raise error
