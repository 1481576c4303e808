"""The one Workload of a job: found among those it owns, mended or cleared away where it promises something else."""

from __future__ import annotations

from shoal.controllers.owned_pods.ownership import controller_reference
from shoal.controllers.queued_jobs.matching import fits
from shoal.controllers.queued_jobs.office import Office
from shoal.controllers.queued_jobs.standing import finished
from shoal.controllers.queued_jobs.switching import Switch
from shoal.controllers.queued_jobs.workloads import Workload, owned, owner_value, workload_spec
from shoal.controllers.queued_work.fields import string_map
from shoal.controllers.queued_work.kueue_names import IN_USE, JOB_UID, PREBUILT
from shoal.store.live.item import Obj
from shoal.store.live.port import Deletion
from shoal.store.live.refusals import NotFoundError
from shoal.store.queues.job_parts import PodPart

_OUT_OF_SYNC = "The prebuilt workload is out of sync with its user job"
_UNKNOWN = "Missing Workload; unable to restore pod templates"
_KNOWN = "No matching Workload; restoring pod templates according to existent Workload"


class Search:
    """`is_busy` after it: something was written, and its news brings the job back."""

    def __init__(self, office: Office, job: Obj, parts: tuple[PodPart, ...], switch: Switch) -> None:
        self._office = office
        self._job = job
        self._parts = parts
        self._switch = switch
        self.is_busy = False

    @property
    def prebuilt(self) -> str:
        return string_map(self._job, "metadata", "labels").get(PREBUILT, "")

    async def find(self, queue: str, *, is_over: bool) -> Workload | None:
        """`is_over`: the job has ended, and nothing about it is compared any more."""
        if self.prebuilt:
            return await self._prebuilt(is_over=is_over)
        there = self._owned()
        match = next((one for one in there if is_over or self._fits(one)), None)
        rest = [one for one in there if one is not match]
        if match is None and rest and self._switch.is_suspended and _is_free(rest[0]):
            await self._mend(rest[0], queue)
            return None
        if match is None and not self._switch.is_suspended and not is_over:
            known = rest[0] if len(rest) == 1 else None
            self.is_busy = True
            await self._switch.stop(known, _UNKNOWN if known is None else _KNOWN)
            return None
        if match is None and self._switch.is_stopping and len(rest) == 1:
            # It still has to be given back what this one knows.
            self.is_busy = True
            await self._switch.restore(rest[0])
            return None
        for one in rest:
            await self._clear(one)
        return match

    def _owned(self) -> list[Workload]:
        """The job's, oldest first. Those of an earlier job of this name go with that job."""
        meta, kind = self._job["metadata"], self._office.kind
        items = self._office.of_owner[owner_value(kind.group, kind.name, (meta["namespace"], meta["name"]))]
        mine = [Workload(item) for item in items if _is_of(item.uid, meta["uid"], owned(item).controller)]
        mine = [one for one in mine if not one.is_replaced]
        return sorted(mine, key=lambda one: (one.obj["metadata"].get("creationTimestamp") or "", one.item.name))

    def _fits(self, workload: Workload) -> bool:
        return fits(
            workload,
            self._parts,
            is_suspended=self._switch.is_suspended,
            is_unfinished=self._switch.is_stopping,
            is_prebuilt=bool(self.prebuilt),
        )

    async def _mend(self, workload: Workload, queue: str) -> None:
        """A job that waits was changed by its owner: so is what waits for it."""
        office = self._office
        self.is_busy = True
        priority = office.priorities.fields(self._job, self._parts, office.row.priority_class)
        spec = workload_spec(self._job, self._parts, queue, priority)
        spec["active"] = workload.obj["spec"].get("active", True)
        await office.context.api.update(office.workload_kind, _named({**workload.obj, "spec": spec}, office))
        office.say(self._job, "UpdatedWorkload", f"Updated not matching Workload for suspended job: {workload.key}")

    async def _clear(self, workload: Workload) -> None:
        self.is_busy = True
        if not await self._office.is_present(self._job):
            return
        await release(self._office, workload)
        if workload.is_deleting:
            return
        await delete(self._office, workload)
        self._office.say(self._job, "DeletedWorkload", f"Deleted not matching Workload: {workload.key}")

    async def _prebuilt(self, *, is_over: bool) -> Workload | None:
        office, meta = self._office, self._job["metadata"]
        item = office.workloads.get(meta["namespace"], self.prebuilt)
        if item is None:
            return None
        workload = Workload(item)
        if not workload.is_controlled_by(meta["uid"]):
            if owned(item).controller is None and not workload.is_deleting:
                self.is_busy = True
                await self._take(workload)
            return None
        if workload.is_finished or is_over or self._fits(workload):
            return workload
        self.is_busy = True
        await office.write_workload_status(
            workload.obj, finished(workload, office.context.clock, "OutOfSync", _OUT_OF_SYNC)
        )
        return None

    async def _take(self, workload: Workload) -> None:
        meta = workload.obj["metadata"]
        owners = [*(meta.get("ownerReferences") or ()), controller_reference(self._office.kind, self._job["metadata"])]
        labels = {JOB_UID: self._job["metadata"]["uid"], **string_map(meta, "labels")}
        finalizers = [*(meta.get("finalizers") or ())]
        if IN_USE not in finalizers:
            finalizers.append(IN_USE)
        changed = {"ownerReferences": owners, "labels": labels, "finalizers": finalizers}
        await self._office.write_workload(workload.obj, {"metadata": changed})


async def release(office: Office, workload: Workload) -> bool:
    """Nobody needs its quota any more; whether that was news."""
    if not workload.is_held:
        return False
    left = [one for one in workload.obj["metadata"]["finalizers"] if one != IN_USE]
    try:
        await office.write_workload(workload.obj, {"metadata": {"finalizers": left}})
    except NotFoundError:
        return False
    return True


async def delete(office: Office, workload: Workload) -> None:
    item = workload.item
    try:
        await office.context.api.delete(office.workload_kind, item.namespace, item.name, Deletion(uid=item.uid))
    except NotFoundError:
        return


def _is_free(workload: Workload) -> bool:
    return not (workload.has_quota or workload.is_finished or workload.is_deleting)


def _is_of(_workload: str, uid: str, owner: object) -> bool:
    return getattr(owner, "uid", "") == uid


def _named(obj: Obj, office: Office) -> Obj:
    return {**obj, "kind": "Workload", "apiVersion": office.workload_kind.api_version}


async def release_all(office: Office, key: tuple[str, str], but: str = "") -> None:
    """Workloads of jobs that are gone, or go: nothing keeps them. `but`: the uid of one that is there."""
    for item in office.of_owner[owner_value(office.kind.group, office.kind.name, key)]:
        owner = owned(item).controller
        if owner is not None and owner.uid != but:
            workload = Workload(item)
            if not await release(office, workload) and but and not workload.is_deleting:
                await delete(office, workload)
