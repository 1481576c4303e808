"""Finds the Workload of a job among those it owns, and updates or deletes Workloads that do not match the job."""

from __future__ import annotations

from shoal.client.item import Obj
from shoal.client.owned_pods.ownership import controller_reference
from shoal.client.port import Deletion
from shoal.client.refusals import NotFoundError
from shoal.controllers.queued_jobs.job_context import QueuedJobContext
from shoal.controllers.queued_jobs.suspension import JobSuspension
from shoal.controllers.queued_jobs.workload_conditions import finished_patch
from shoal.controllers.queued_jobs.workload_matching import is_equivalent
from shoal.controllers.queued_jobs.workloads import OwnedWorkload, controller_of, owner_value, workload_spec
from shoal.controllers.queued_work.fields import string_map
from shoal.controllers.queued_work.kueue_names import IN_USE, JOB_UID, PREBUILT
from shoal.store.queues.job_parts import PodPart

_OUT_OF_SYNC = "The prebuilt workload is out of sync with its user job"
_NO_WORKLOAD = "Missing Workload; unable to restore pod templates"
_OTHER_WORKLOAD = "No matching Workload; restoring pod templates according to existent Workload"


class WorkloadSearch:
    """`is_busy` is set if an object was written: its change triggers the next reconciliation of the job."""

    def __init__(
        self, context: QueuedJobContext, job: Obj, parts: tuple[PodPart, ...], suspension: JobSuspension
    ) -> None:
        self._context = context
        self._job = job
        self._parts = parts
        self._suspension = suspension
        self.is_busy = False

    @property
    def prebuilt(self) -> str:
        return string_map(self._job, "metadata", "labels").get(PREBUILT, "")

    async def find(self, queue: str, *, has_ended: bool) -> OwnedWorkload | None:
        """`has_ended`: the job has ended, and its Workload is not compared with it any more."""
        if self.prebuilt:
            return await self._prebuilt(has_ended=has_ended)
        workloads = self._workloads()
        match = next((one for one in workloads if has_ended or self._matches(one)), None)
        rest = [one for one in workloads if one is not match]
        if match is None and rest and self._suspension.is_suspended and _is_unreserved(rest[0]):
            await self._update_workload(rest[0], queue)
            return None
        if match is None and not self._suspension.is_suspended and not has_ended:
            known = rest[0] if len(rest) == 1 else None
            self.is_busy = True
            await self._suspension.stop(known, _NO_WORKLOAD if known is None else _OTHER_WORKLOAD)
            return None
        if match is None and self._suspension.is_stopping and len(rest) == 1:
            # The job's templates still have to be restored from this Workload.
            self.is_busy = True
            await self._suspension.restore(rest[0])
            return None
        for one in rest:
            await self._remove(one)
        return match

    def _workloads(self) -> list[OwnedWorkload]:
        """The Workloads of the job, oldest first. Those of an earlier job with this name are deleted with that job."""
        owned = [one for one in self._context.workloads_of(self._job) if not one.is_replaced]
        return sorted(owned, key=lambda one: (one.obj["metadata"].get("creationTimestamp") or "", one.item.name))

    def _matches(self, workload: OwnedWorkload) -> bool:
        return is_equivalent(
            workload,
            self._parts,
            is_suspended=self._suspension.is_suspended,
            is_stopping=self._suspension.is_stopping,
            is_prebuilt=bool(self.prebuilt),
        )

    async def _update_workload(self, workload: OwnedWorkload, queue: str) -> None:
        """The owner changed a suspended job: change its Workload likewise."""
        context = self._context
        self.is_busy = True
        priority = context.priorities.fields(self._job, self._parts, context.job_kind.priority_class)
        spec = workload_spec(self._job, self._parts, queue, priority)
        spec["active"] = workload.obj["spec"].get("active", True)
        await context.live.api.update(context.workload_kind, _with_type({**workload.obj, "spec": spec}, context))
        context.record(self._job, "UpdatedWorkload", f"Updated not matching Workload for suspended job: {workload.key}")

    async def _remove(self, workload: OwnedWorkload) -> None:
        self.is_busy = True
        if not await self._context.is_present(self._job):
            return
        await release(self._context, workload)
        if workload.is_deleting:
            return
        await delete(self._context, workload)
        self._context.record(self._job, "DeletedWorkload", f"Deleted not matching Workload: {workload.key}")

    async def _prebuilt(self, *, has_ended: bool) -> OwnedWorkload | None:
        context, meta = self._context, self._job["metadata"]
        item = context.workloads.get(meta["namespace"], self.prebuilt)
        if item is None:
            return None
        workload = OwnedWorkload(item)
        if not workload.is_controlled_by(meta["uid"]):
            if controller_of(item) is None and not workload.is_deleting:
                self.is_busy = True
                await self._adopt(workload)
            return None
        if workload.is_finished or has_ended or self._matches(workload):
            return workload
        self.is_busy = True
        await context.write_workload_status(
            workload.obj, finished_patch(workload, context.live.clock, "OutOfSync", _OUT_OF_SYNC)
        )
        return None

    async def _adopt(self, workload: OwnedWorkload) -> None:
        meta = workload.obj["metadata"]
        owners = [*(meta.get("ownerReferences") or ()), controller_reference(self._context.kind, self._job["metadata"])]
        labels = {JOB_UID: self._job["metadata"]["uid"], **string_map(meta, "labels")}
        finalizers = [*(meta.get("finalizers") or ())]
        if IN_USE not in finalizers:
            finalizers.append(IN_USE)
        changed = {"ownerReferences": owners, "labels": labels, "finalizers": finalizers}
        await self._context.write_workload(workload.obj, {"metadata": changed})


async def release(context: QueuedJobContext, workload: OwnedWorkload) -> bool:
    """Remove the finalizer of a Workload whose quota is not needed any more; returns whether it was there."""
    if not workload.has_finalizer:
        return False
    left = [one for one in workload.obj["metadata"]["finalizers"] if one != IN_USE]
    try:
        await context.write_workload(workload.obj, {"metadata": {"finalizers": left}})
    except NotFoundError:
        return False
    return True


async def delete(context: QueuedJobContext, workload: OwnedWorkload) -> None:
    item = workload.item
    try:
        await context.live.api.delete(context.workload_kind, item.namespace, item.name, Deletion(uid=item.uid))
    except NotFoundError:
        return


def _is_unreserved(workload: OwnedWorkload) -> bool:
    return not (workload.has_quota or workload.is_finished or workload.is_deleting)


def _with_type(obj: Obj, context: QueuedJobContext) -> Obj:
    return {**obj, "kind": "Workload", "apiVersion": context.workload_kind.api_version}


async def release_all(context: QueuedJobContext, key: tuple[str, str], but: str = "") -> None:
    """Release the Workloads of deleted jobs of this name. `but`: the uid of the job that exists."""
    for item in context.by_owner[owner_value(context.kind.group, context.kind.name, key)]:
        owner = controller_of(item)
        if owner is not None and owner.uid != but:
            workload = OwnedWorkload(item)
            if not await release(context, workload) and but and not workload.is_deleting:
                await delete(context, workload)
