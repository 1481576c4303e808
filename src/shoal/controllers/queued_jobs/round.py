"""One look at one job: what is the next thing to be done about it and its Workload, and that is done.

Each look does one thing and reads everything anew afterwards. The order is the law: what has ended is told first, a
Workload that goes stops its job before it goes, an eviction comes before a start, and a job runs only while its
Workload is admitted.
"""

from __future__ import annotations

from shoal.controllers.queued_jobs.ancestors import managed_ancestor
from shoal.controllers.queued_jobs.children import hold_child
from shoal.controllers.queued_jobs.elastic import as_slice, as_written, holds_new_pods, is_elastic, sized
from shoal.controllers.queued_jobs.finding import Search, release, release_all
from shoal.controllers.queued_jobs.office import Office
from shoal.controllers.queued_jobs.priorities import NoClassError
from shoal.controllers.queued_jobs.queue_name import queue_of
from shoal.controllers.queued_jobs.row import Course
from shoal.controllers.queued_jobs.saying import say_checks
from shoal.controllers.queued_jobs.slices import Slices
from shoal.controllers.queued_jobs.standing import finished, left, readiness, reclaimed
from shoal.controllers.queued_jobs.switching import Switch
from shoal.controllers.queued_jobs.workloads import Workload, new_workload, owned, owner_value
from shoal.controllers.queued_work.kueue_names import EVICTED, FINISHED
from shoal.controllers.queued_work.pod_set_info import PodSetConflictError
from shoal.controllers.queued_work.rules import JobRules
from shoal.store.live.item import Item, Obj
from shoal.store.live.refusals import AlreadyExistsError
from shoal.store.queues.job_parts import PodPart, dig
from shoal.units.errors import UserError, Where

_SOON_S = 1.0
"""Something is missing that nobody tells this job about."""
_LATER_S = 30.0
_NEVER_BEGUN = frozenset({"FailedToStart", "OutOfSync"})
_MARKED = b"kueue.x-k8s.io/"


def concerns_queues(item: Item, rules: JobRules) -> bool:
    """Most jobs of a cluster may be none of ours: they are passed over without being read."""
    return rules.queues_everything or _MARKED in item.data or owned(item).controller is not None


class Round:
    def __init__(self, office: Office, item: Item, rules: JobRules) -> None:
        self._office = office
        self._row = office.row
        self._item = item
        self._rules = rules
        self._job: Obj = office.whole(item)
        self._parts: tuple[PodPart, ...] = ()
        self._switch = Switch(office, self._job, ())

    async def go(self) -> float | None:
        if "deletionTimestamp" in self._job["metadata"]:
            await release_all(self._office, self._item.key)
            return None
        if self._row.shape.is_left_alone(self._job):
            return None
        above = managed_ancestor(self._office.context, self._office.find, self._item, self._rules)
        if above is not None:
            if not self._switch.is_suspended:
                await hold_child(self._office, self._job, *above)
            return None
        queue, misplaced = queue_of(self._item, self._job)
        if not queue and not self._rules.queues_everything:
            return None
        if not self._rules.manages(self._item.namespace, self._office.namespace_labels(self._item.namespace)):
            return None
        if misplaced:
            words = f"{queue!r} at {misplaced} is not a label of the job itself: it is taken for one"
            self._office.warn(self._job, "MisplacedQueueName", words)
        try:
            return await self._queued(queue)
        except NoClassError as error:
            reason = "WorkloadPriorityClassNotFound" if error.kind == "WorkloadPriorityClass" else "ErrWorkloadCompose"
            fault = reason, error.what
        except UserError as error:
            fault = "ErrWorkloadCompose", str(error)
        self._office.warn(self._job, *fault)
        # Nobody can say what it would take: it must not run meanwhile, unless it was let in before.
        if not await self._hold():
            await self._office.mark(self._job, fault)
        return _LATER_S

    async def _hold(self) -> bool:
        """Whether it had to be stopped; that it is brings it back here."""
        if self._switch.is_suspended or self._row.shape.ending(self._job) is not None or self._has_workload():
            return False
        await self._switch.stop(None, "Not admitted by cluster queue")
        return True

    def _has_workload(self) -> bool:
        kind = self._office.kind
        return bool(self._office.of_owner[owner_value(kind.group, kind.name, self._item.key)])

    # -- jobs that wait on their own --------------------------------------------------------------------------------

    async def _queued(self, queue: str) -> float | None:
        office, ending = self._office, self._row.shape.ending(self._job)
        self._parts = () if ending is not None else self._row.shape.read(self._job, Where(), office.look)
        self._switch = Switch(office, self._job, self._parts)
        search = Search(office, self._job, self._parts, self._switch)
        slices = self._slices(is_over=ending is not None)
        workload = None if slices is None else await slices.settle(is_over=ending is not None)
        if slices is not None and slices.is_busy:
            return None
        workload = workload or await search.find(queue, is_over=ending is not None)
        if search.is_busy:
            return None
        if ending is not None:
            if workload is not None:
                await self._end(workload, "Succeeded" if ending.is_success else "Failed", ending.message)
            return None
        if workload is None:
            return await self._without(search, queue)
        if workload.is_finished:
            await self._declared_finished(workload)
            return None
        if workload.is_deleting:
            if not await self._switch.stop(workload, "Workload is deleted"):
                return None
            return await self._let_go(workload)
        return await self._goes_on(workload, queue, slices)

    def _slices(self, *, is_over: bool) -> Slices | None:
        is_begun = not (is_over or self._switch.is_suspended)
        if not is_elastic(self._row, self._job) or (is_begun and not holds_new_pods(self._parts)):
            return None
        return Slices(self._office, self._job, self._parts, self._switch)

    async def _goes_on(self, workload: Workload, queue: str, slices: Slices | None) -> float | None:
        course = self._row.course(self._job, self._parts if slices is None else sized(self._parts, workload))
        if await self._told(workload, course):
            return None
        if slices is not None and slices.lacks_next:
            return await self._make(queue, workload)
        if workload.is_evicted and not await self._has_left(workload, course):
            return None
        if self._switch.is_suspended:
            return await self._waiting(workload, queue)
        elif not workload.is_admitted:
            await self._switch.stop(workload, "Not admitted by cluster queue")
        elif self._office.priorities.is_newly_named(self._job, workload.obj):
            await self._rank(workload)
        return None

    async def _end(self, workload: Workload, reason: str, message: str) -> None:
        office = self._office
        if not workload.is_finished:
            await office.write_workload_status(workload.obj, finished(workload, office.context.clock, reason, message))
            office.say(self._job, "FinishedWorkload", f"Workload '{workload.key}' is declared finished")
        else:
            await release(office, workload)

    async def _let_go(self, workload: Workload) -> float | None:
        if not await self._office.is_present(self._job):
            return _SOON_S
        await release(self._office, workload)
        return None

    async def _declared_finished(self, workload: Workload) -> None:
        """By somebody else than the job."""
        told = workload.condition(FINISHED) or {}
        if told.get("reason") in _NEVER_BEGUN and self._switch.is_suspended:
            await self._office.mark(self._job, (str(told["reason"]), str(told.get("message") or "")))
        if not self._switch.is_suspended:
            await self._switch.stop(workload, "Not admitted by cluster queue")
        elif await release(self._office, workload):
            self._office.say(self._job, "FinishedWorkload", f"Workload '{workload.key}' is declared finished")

    async def _without(self, search: Search, queue: str) -> float | None:
        if search.prebuilt:
            await self._switch.stop(None, "missing workload")
            return _LATER_S
        if self._switch.is_stopping:
            await self._switch.restore(None)
            return None
        if self._row.course(self._job, self._parts).is_active:
            return None
        return await self._make(queue, None)

    async def _make(self, queue: str, before: Workload | None) -> float | None:
        """`before`: whose place it is to take, of a job that has grown."""
        office, parts = self._office, self._parts if before is None else as_written(self._parts, before)
        priority = office.priorities.fields(self._job, parts, self._row.priority_class)
        made = new_workload(office.kind, self._job, parts, queue, priority, self._rules.labels_to_copy)
        if is_elastic(self._row, self._job):
            made = as_slice(made, office.kind, self._job, before)
        name = made["metadata"]["name"]
        try:
            await office.context.api.create(office.workload_kind, made)
        except AlreadyExistsError:
            # An answer that was lost, or one of an earlier time that is on its way out.
            return _SOON_S
        office.say(self._job, "CreatedWorkload", f"Created Workload: {self._item.namespace}/{name}")
        return None

    async def _told(self, workload: Workload, course: Course) -> bool:
        """Whether something about the job's course was to be told."""
        office = self._office
        status = reclaimed(workload, course.reclaimable)
        if status is None and self._rules.reports_pods_ready:
            status = readiness(workload, office.context.clock, is_ready=course.is_ready)
        if status is not None:
            await office.write_workload_status(workload.obj, status)
        return status is not None

    async def _has_left(self, workload: Workload, course: Course) -> bool:
        """Of an evicted one: whether it is suspended, stopped and has given its quota back."""
        message = str((workload.condition(EVICTED) or {}).get("message") or "")
        if not await self._switch.stop(workload, message, course):
            return False
        if not workload.has_quota:
            return True
        if not course.is_active and await self._office.is_present(self._job):
            await self._office.write_workload_status(workload.obj, left(workload, self._office.context.clock))
        return False

    async def _waiting(self, workload: Workload, queue: str) -> float | None:
        office = self._office
        if await office.mark(self._job, workload.fault):
            return None
        if workload.is_admitted and not self._switch.is_stopping:
            try:
                begun = await self._switch.start(workload, self._rules.schedulers)
            except PodSetConflictError as error:
                await self._end(workload, "FailedToStart", error.what)
                return None
            return None if begun else _SOON_S
        if self._switch.is_stopping:
            await self._switch.restore(workload)
        elif dig(workload.obj, ("spec", "queueName")) != queue and not workload.has_quota:
            await office.write_workload(workload.obj, {"spec": {"queueName": queue}})
        elif office.priorities.is_newly_named(self._job, workload.obj):
            await self._rank(workload)
        elif workload.has_quota:
            say_checks(office, self._job, workload)
        elif workload.fault is not None:
            office.warn(self._job, *workload.fault)
        return None

    async def _rank(self, workload: Workload) -> None:
        office = self._office
        priority = office.priorities.fields(self._job, self._parts, self._row.priority_class)
        await office.write_workload(workload.obj, {"spec": priority})
        office.say(self._job, "UpdatedWorkload", f"Updated Workload priority: {workload.key}")
