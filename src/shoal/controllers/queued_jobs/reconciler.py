"""Reconciles one queued job with its Workload: decides the next step and carries it out.

Each reconciliation does one step; the change that it causes triggers the next one. The order of the checks matters: the
end of a job is recorded first, a deleted Workload stops its job before its finalizer is removed, an eviction comes
before a start, and a job runs only while its Workload is admitted.

The label of the job gives the queue name. Kueue ignores the name as an annotation, or on the pod templates. Shoal uses
it there too and records an Event, because a job that bypasses all quota is the last thing its user intended.

Rejected: using a label of a template as well. It queues each pod by itself, in any cluster.
"""

from __future__ import annotations

from shoal.api.decode import Unknown
from shoal.api.kueue.probable_mistakes import QUEUE_NAME, misplaced_queue
from shoal.api.meta import ObjectMeta
from shoal.client.item import Item, Obj
from shoal.client.refusals import AlreadyExistsError
from shoal.controllers.queued_jobs.child_jobs import managed_ancestor, suspend_child
from shoal.controllers.queued_jobs.elastic_jobs import (
    has_elastic_gates,
    is_elastic,
    make_slice,
    with_admitted_counts,
    with_original_templates,
)
from shoal.controllers.queued_jobs.job_context import QueuedJobContext
from shoal.controllers.queued_jobs.job_kind import JobProgress
from shoal.controllers.queued_jobs.priorities import ClassNotFoundError
from shoal.controllers.queued_jobs.suspension import JobSuspension
from shoal.controllers.queued_jobs.workload_conditions import (
    finished_patch,
    pending_checks,
    pods_ready_patch,
    quota_released_patch,
    reclaimable_patch,
)
from shoal.controllers.queued_jobs.workload_search import WorkloadSearch, release, release_all
from shoal.controllers.queued_jobs.workload_slices import WorkloadSlices
from shoal.controllers.queued_jobs.workloads import OwnedWorkload, controller_of, new_workload, owner_value
from shoal.controllers.queued_work.fields import string_map
from shoal.controllers.queued_work.kueue_names import EVICTED, FINISHED
from shoal.controllers.queued_work.pod_set_info import PodSetConflictError
from shoal.controllers.queued_work.rules import JobRules
from shoal.store.queues.job_parts import PodPart, dig
from shoal.units.errors import UserError, Where

_SOON_S = 1.0
"""Something is missing whose appearance does not trigger a reconciliation."""
_LATER_S = 30.0
_NEVER_STARTED = frozenset({"FailedToStart", "OutOfSync"})
_KUEUE_PREFIX = b"kueue.x-k8s.io/"


def may_be_queued(item: Item, rules: JobRules) -> bool:
    """Whether the job has to be decoded at all: most jobs of a cluster may not be queued."""
    return rules.queues_everything or _KUEUE_PREFIX in item.data or controller_of(item) is not None


class JobReconciler:
    def __init__(self, context: QueuedJobContext, item: Item, rules: JobRules) -> None:
        self._context = context
        self._job_kind = context.job_kind
        self._item = item
        self._rules = rules
        self._job: Obj = context.with_type(item)
        self._parts: tuple[PodPart, ...] = ()
        self._suspension = JobSuspension(context, self._job, ())

    async def reconcile(self) -> float | None:
        if "deletionTimestamp" in self._job["metadata"]:
            await release_all(self._context, self._item.key)
            return None
        if self._job_kind.shape.is_left_alone(self._job):
            return None
        ancestor = managed_ancestor(self._context.live, self._context.find, self._item, self._rules)
        if ancestor is not None:
            if not self._suspension.is_suspended:
                await suspend_child(self._context, self._job, *ancestor)
            return None
        queue, misplaced = queue_of(self._item, self._job)
        if not queue and not self._rules.queues_everything:
            return None
        if not self._rules.manages(self._item.namespace, self._context.namespace_labels(self._item.namespace)):
            return None
        if misplaced:
            message = (
                f"queue name {queue!r} at {misplaced} is not a label of the job itself; it is used as its queue name"
            )
            self._context.record_once(self._job, "MisplacedQueueName", message)
        try:
            return await self._reconcile_queued(queue)
        except ClassNotFoundError as error:
            reason = "WorkloadPriorityClassNotFound" if error.kind == "WorkloadPriorityClass" else "ErrWorkloadCompose"
            fault = reason, error.what
        except UserError as error:
            fault = "ErrWorkloadCompose", str(error)
        self._context.record_once(self._job, *fault)
        # What the job needs is unknown: it must not run meanwhile, unless it was admitted before.
        if not await self._stop_unqueued():
            await self._context.write_condition(self._job, fault)
        return _LATER_S

    async def _stop_unqueued(self) -> bool:
        """Stop a running job without a Workload; returns whether that was necessary. The stop triggers the next
        reconciliation."""
        if self._suspension.is_suspended or self._job_kind.shape.ending(self._job) is not None or self._has_workload():
            return False
        await self._suspension.stop(None, "Not admitted by cluster queue")
        return True

    def _has_workload(self) -> bool:
        kind = self._context.kind
        return bool(self._context.by_owner[owner_value(kind.group, kind.name, self._item.key)])

    # -- jobs with a Workload of their own --------------------------------------------------------------------------

    async def _reconcile_queued(self, queue: str) -> float | None:
        context, ending = self._context, self._job_kind.shape.ending(self._job)
        self._parts = () if ending is not None else self._job_kind.shape.read(self._job, Where(), context.look_up)
        self._suspension = JobSuspension(context, self._job, self._parts)
        search = WorkloadSearch(context, self._job, self._parts, self._suspension)
        slices = self._slices(has_ended=ending is not None)
        workload = None if slices is None else await slices.settle(has_ended=ending is not None)
        if slices is not None and slices.is_busy:
            return None
        workload = workload or await search.find(queue, has_ended=ending is not None)
        if search.is_busy:
            return None
        if ending is not None:
            if workload is not None:
                await self._finish(workload, "Succeeded" if ending.is_success else "Failed", ending.message)
            return None
        if workload is None:
            return await self._without_workload(search, queue)
        if workload.is_finished:
            await self._handle_finished(workload)
            return None
        if workload.is_deleting:
            if not await self._suspension.stop(workload, "Workload is deleted"):
                return None
            return await self._release_deleted(workload)
        return await self._drive(workload, queue, slices)

    def _slices(self, *, has_ended: bool) -> WorkloadSlices | None:
        is_begun = not (has_ended or self._suspension.is_suspended)
        if not is_elastic(self._job_kind, self._job) or (is_begun and not has_elastic_gates(self._parts)):
            return None
        return WorkloadSlices(self._context, self._job, self._parts, self._suspension)

    async def _drive(self, workload: OwnedWorkload, queue: str, slices: WorkloadSlices | None) -> float | None:
        progress = self._job_kind.progress_of(
            self._job, self._parts if slices is None else with_admitted_counts(self._parts, workload)
        )
        if await self._report(workload, progress):
            return None
        if slices is not None and slices.needs_larger_workload:
            return await self._create_workload(queue, workload)
        if workload.is_evicted and not await self._has_stopped(workload, progress):
            return None
        if self._suspension.is_suspended:
            return await self._handle_suspended(workload, queue)
        elif not workload.is_admitted:
            await self._suspension.stop(workload, "Not admitted by cluster queue")
        elif self._context.priorities.has_new_class(self._job, workload.obj):
            await self._update_priority(workload)
        return None

    async def _finish(self, workload: OwnedWorkload, reason: str, message: str) -> None:
        context = self._context
        if not workload.is_finished:
            await context.write_workload_status(
                workload.obj, finished_patch(workload, context.live.clock, reason, message)
            )
            context.record(self._job, "FinishedWorkload", f"Workload '{workload.key}' is declared finished")
        else:
            await release(context, workload)

    async def _release_deleted(self, workload: OwnedWorkload) -> float | None:
        if not await self._context.is_present(self._job):
            return _SOON_S
        await release(self._context, workload)
        return None

    async def _handle_finished(self, workload: OwnedWorkload) -> None:
        """The Workload was finished by another controller than the job's own."""
        condition = workload.condition(FINISHED) or {}
        if condition.get("reason") in _NEVER_STARTED and self._suspension.is_suspended:
            await self._context.write_condition(
                self._job, (str(condition["reason"]), str(condition.get("message") or ""))
            )
        if not self._suspension.is_suspended:
            await self._suspension.stop(workload, "Not admitted by cluster queue")
        elif await release(self._context, workload):
            self._context.record(self._job, "FinishedWorkload", f"Workload '{workload.key}' is declared finished")

    async def _without_workload(self, search: WorkloadSearch, queue: str) -> float | None:
        if search.prebuilt:
            await self._suspension.stop(None, "missing workload")
            return _LATER_S
        if self._suspension.is_stopping:
            await self._suspension.restore(None)
            return None
        if self._job_kind.progress_of(self._job, self._parts).is_active:
            return None
        return await self._create_workload(queue, None)

    async def _create_workload(self, queue: str, replaced: OwnedWorkload | None) -> float | None:
        """`replaced`: the Workload that it is to replace, of an elastic job that has grown."""
        context, parts = (
            self._context,
            self._parts if replaced is None else with_original_templates(self._parts, replaced),
        )
        priority = context.priorities.fields(self._job, parts, self._job_kind.priority_class)
        made = new_workload(context.kind, self._job, parts, queue, priority, self._rules.labels_to_copy)
        if is_elastic(self._job_kind, self._job):
            made = make_slice(made, context.kind, self._job, replaced)
        name = made["metadata"]["name"]
        try:
            await context.live.api.create(context.workload_kind, made)
        except AlreadyExistsError:
            # The answer to an earlier request was lost, or the Workload of an earlier job is being deleted.
            return _SOON_S
        context.record(self._job, "CreatedWorkload", f"Created Workload: {self._item.namespace}/{name}")
        return None

    async def _report(self, workload: OwnedWorkload, progress: JobProgress) -> bool:
        """Write PodsReady and reclaimable pods to the Workload; returns whether they changed."""
        context = self._context
        status = reclaimable_patch(workload, progress.reclaimable)
        if status is None and self._rules.reports_pods_ready:
            status = pods_ready_patch(workload, context.live.clock, is_ready=progress.is_ready)
        if status is not None:
            await context.write_workload_status(workload.obj, status)
        return status is not None

    async def _has_stopped(self, workload: OwnedWorkload, progress: JobProgress) -> bool:
        """Stop the job of an evicted Workload; returns whether it has stopped and its quota is released."""
        message = str((workload.condition(EVICTED) or {}).get("message") or "")
        if not await self._suspension.stop(workload, message, progress):
            return False
        if not workload.has_quota:
            return True
        if not progress.is_active and await self._context.is_present(self._job):
            await self._context.write_workload_status(
                workload.obj, quota_released_patch(workload, self._context.live.clock)
            )
        return False

    async def _handle_suspended(self, workload: OwnedWorkload, queue: str) -> float | None:
        context = self._context
        if await context.write_condition(self._job, workload.fault):
            return None
        if workload.is_admitted and not self._suspension.is_stopping:
            try:
                is_started = await self._suspension.start(workload, self._rules.schedulers)
            except PodSetConflictError as error:
                await self._finish(workload, "FailedToStart", error.what)
                return None
            return None if is_started else _SOON_S
        if self._suspension.is_stopping:
            await self._suspension.restore(workload)
        elif dig(workload.obj, ("spec", "queueName")) != queue and not workload.has_quota:
            await context.write_workload(workload.obj, {"spec": {"queueName": queue}})
        elif context.priorities.has_new_class(self._job, workload.obj):
            await self._update_priority(workload)
        elif workload.has_quota:
            if message := pending_checks(workload):
                context.record_once(self._job, "UpdatedAdmissionCheck", message, "Normal")
        elif workload.fault is not None:
            context.record_once(self._job, *workload.fault)
        return None

    async def _update_priority(self, workload: OwnedWorkload) -> None:
        context = self._context
        priority = context.priorities.fields(self._job, self._parts, self._job_kind.priority_class)
        await context.write_workload(workload.obj, {"spec": priority})
        context.record(self._job, "UpdatedWorkload", f"Updated Workload priority: {workload.key}")


_QUEUE_NAME_BYTES = QUEUE_NAME.encode()


def queue_of(item: Item, job: Obj) -> tuple[str, str]:
    """The name, empty if there is none, and its path if that is the wrong place."""
    name = string_map(job, "metadata", "labels").get(QUEUE_NAME, "")
    if name or _QUEUE_NAME_BYTES not in item.data:
        return name, ""
    meta = ObjectMeta(name=item.name, namespace=item.namespace, annotations=string_map(job, "metadata", "annotations"))
    misplaced = misplaced_queue(Unknown(job["apiVersion"], job["kind"], meta, job))
    if misplaced is None or misplaced.is_label:
        return "", ""
    return misplaced.name, misplaced.path
