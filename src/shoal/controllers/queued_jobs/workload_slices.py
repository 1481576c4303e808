"""Manages the Workloads of an elastic job, which changes its size while it runs. Kueue calls these Workloads slices.

When the job shrinks, its Workload is made smaller. When it grows, another Workload with the whole new size is created,
which names the Workload that it replaces. The job continues under the admitted Workload, and its new pods are held
until the other one is admitted. Then the older Workload is finished.

Guarantees: of several Workloads the newest admitted one counts, also for another process after a crash; a job is never
stopped because it has grown.

Rejected: finishing the older Workload before the newer one is admitted, as Kueue does. In between, running pods would
have no quota.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shoal.client.item import Obj
from shoal.controllers.queued_jobs.job_context import QueuedJobContext
from shoal.controllers.queued_jobs.suspension import JobSuspension
from shoal.controllers.queued_jobs.workload_conditions import finished_patch, quota_released_patch
from shoal.controllers.queued_jobs.workload_matching import has_same_requests
from shoal.controllers.queued_jobs.workload_search import delete, release
from shoal.controllers.queued_jobs.workloads import OwnedWorkload
from shoal.controllers.queued_work.fields import string_map
from shoal.controllers.queued_work.kueue_names import JOB_UID
from shoal.store.queues.job_parts import PodPart

_OUT_OF_SYNC = "The workload slice is out of sync with its parent job"
REPLACED = "WorkloadSliceReplaced"


class WorkloadSlices:
    """The Workloads of one job. `is_busy` is set if an object was written: its change triggers the next
    reconciliation."""

    def __init__(
        self, context: QueuedJobContext, job: Obj, parts: tuple[PodPart, ...], suspension: JobSuspension
    ) -> None:
        self._context = context
        self._job = job
        self._parts = parts
        self._suspension = suspension
        self.is_busy = False
        self.needs_larger_workload = False
        """The job has grown, and there is no Workload of the new size yet."""

    async def settle(self, *, has_ended: bool) -> OwnedWorkload | None:
        """The Workload under which the job runs. None if the job has one Workload at most: it is handled like that of
        any job."""
        owned = self._context.workloads_of(self._job)
        for one in owned:
            if one.is_replaced and await release(self._context, one):
                self.is_busy = True
                return None
        if has_ended:
            return next((one for one in owned if not one.is_finished or one.has_finalizer), next(iter(owned), None))
        workloads = _in_order(one for one in owned if not one.is_finished)
        admitted = next((one for one in reversed(workloads) if one.is_admitted), None)
        if admitted is None:
            return await self._finish_outdated(workloads)
        older, newer = workloads[: workloads.index(admitted)], workloads[workloads.index(admitted) + 1 :]
        if older:
            await self._finish_workload(older[0], REPLACED, _replaced(admitted))
            return None
        if admitted.is_evicted or admitted.is_deleting:
            return admitted
        if await self._release_evicted(newer):
            return None
        if self._suspension.is_suspended or not has_same_requests(list(admitted.pod_sets.values()), self._parts):
            await self._delete_workloads(newer)
            return None
        return await self._resize(admitted, newer)

    async def _finish_outdated(self, workloads: list[OwnedWorkload]) -> OwnedWorkload | None:
        if len(workloads) < 2:
            return None
        leaving = next((one for one in workloads if one.is_evicted and one.has_quota), None)
        if leaving is None:
            await self._finish_workload(workloads[0], "OutOfSync", _OUT_OF_SYNC)
        return leaving

    async def _resize(self, admitted: OwnedWorkload, newer: list[OwnedWorkload]) -> OwnedWorkload | None:
        wanted = {part.name: part.count for part in self._parts}
        given = {name: int(one.get("count", 1)) for name, one in admitted.pod_sets.items()}
        if all(wanted[name] <= count for name, count in given.items()):
            await self._delete_workloads(newer)
            if not self.is_busy and wanted != given:
                await self._set_counts(admitted)
        elif not newer:
            self.needs_larger_workload = True
        else:
            await self._delete_workloads(newer[:-1])
            asked = {name: int(one.get("count", 1)) for name, one in newer[-1].pod_sets.items()}
            if not self.is_busy and asked != wanted and not newer[-1].has_quota:
                await self._set_counts(newer[-1])
        return None if self.is_busy else admitted

    # -- writes -----------------------------------------------------------------------------------------------------

    async def _release_evicted(self, newer: list[OwnedWorkload]) -> bool:
        """Release the quota of a newer Workload that was evicted before the job ran under it; returns whether an object
        was written."""
        await self._delete_workloads([one for one in newer if one.is_deleting])
        leaving = next((one for one in newer if one.is_evicted and one.has_quota), None)
        if leaving is not None and not self.is_busy:
            self.is_busy = True
            await self._context.write_workload_status(
                leaving.obj, quota_released_patch(leaving, self._context.live.clock)
            )
        return self.is_busy

    async def _set_counts(self, workload: OwnedWorkload) -> None:
        self.is_busy = True
        counts = {part.name: part.count for part in self._parts}
        pod_sets = [{**one, "count": counts[name]} for name, one in workload.pod_sets.items()]
        await self._context.write_workload(workload.obj, {"spec": {"podSets": pod_sets}})
        self._context.record(self._job, "UpdatedWorkload", f"Updated Workload size: {workload.key}")

    async def _delete_workloads(self, workloads: Sequence[OwnedWorkload]) -> None:
        """Delete Workloads that are not needed any more."""
        for one in workloads:
            self.is_busy = True
            await release(self._context, one)
            if not one.is_deleting:
                await delete(self._context, one)
                self._context.record(self._job, "DeletedWorkload", f"Deleted not matching Workload: {one.key}")

    async def _finish_workload(self, workload: OwnedWorkload, reason: str, message: str) -> None:
        self.is_busy = True
        context = self._context
        await context.write_workload_status(workload.obj, finished_patch(workload, context.live.clock, reason, message))
        if reason == REPLACED:
            about = {**workload.obj, "kind": "Workload", "apiVersion": context.workload_kind.api_version}
            context.record(about, REPLACED, message)


def _replaced(by: OwnedWorkload) -> str:
    uids = f"(UID: {by.item.uid}, JobUID: {string_map(by.obj['metadata'], 'labels').get(JOB_UID, '')})"
    return f"Replaced to accommodate a workload {uids} due to workload slice aggregation"


def _in_order(workloads: Iterable[OwnedWorkload]) -> list[OwnedWorkload]:
    """The oldest first; several may have been created in one second."""
    by_key = {one.key: one for one in workloads}
    return sorted(
        by_key.values(), key=lambda one: (_depth(one, by_key), str(one.obj["metadata"].get("creationTimestamp")))
    )


def _depth(workload: OwnedWorkload, workloads: dict[str, OwnedWorkload]) -> int:
    """How many of these Workloads it replaces, directly or indirectly."""
    found, seen = 0, {workload.key}
    while (before := workloads.get(workload.replaces)) is not None and before.key not in seen:
        seen.add(before.key)
        workload, found = before, found + 1
    return found
