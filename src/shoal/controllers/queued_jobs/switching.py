"""Starting and stopping a job: one write each where its kind allows it, and from any point of the way on where not.

What is done next is always read from the job itself, so that whoever comes after a crash goes on where it ended.
"""

from __future__ import annotations

from copy import deepcopy

from shoal.controllers.owned_pods.ownership import controller_reference
from shoal.controllers.queued_jobs.courses import SUSPENDED_BY_VOLCANO, VOLCANO_PHASE
from shoal.controllers.queued_jobs.dressing import is_undressed
from shoal.controllers.queued_jobs.elastic import held_back, is_elastic
from shoal.controllers.queued_jobs.job_kinds import COMMANDS
from shoal.controllers.queued_jobs.office import Office
from shoal.controllers.queued_jobs.row import Course
from shoal.controllers.queued_jobs.workloads import Workload
from shoal.controllers.queued_work.fields import put, string_map
from shoal.controllers.queued_work.kueue_names import PREBUILT, STOPPING
from shoal.controllers.queued_work.pod_set_info import pod_set_infos, restored_template
from shoal.store.live.item import Obj
from shoal.store.live.refusals import AlreadyExistsError
from shoal.store.queues.job_parts import PodPart, dig


class Switch:
    """Of one job, as it was when it was looked at."""

    def __init__(self, office: Office, job: Obj, parts: tuple[PodPart, ...]) -> None:
        self._office = office
        self._row = office.row
        self._job = job
        self._parts = parts

    @property
    def is_suspended(self) -> bool:
        if self._row.switch == "command":
            return dig(self._job, VOLCANO_PHASE) in SUSPENDED_BY_VOLCANO
        return dig(self._job, self._row.shape.suspend) is True

    @property
    def is_stopping(self) -> bool:
        return STOPPING in (self._job["metadata"].get("annotations") or {})

    # -- stopping ---------------------------------------------------------------------------------------------------

    async def stop(self, workload: Workload | None, message: str, course: Course | None = None) -> bool:
        """Whether it is suspended and as its owner wrote it; if not, one step was taken towards that, or somebody
        else's is waited for. Without a workload nobody knows how its owner wrote it."""
        if not self.is_suspended:
            if await self._suspend(workload):
                self._office.say(self._job, "Stopped", message)
            return False
        if self._row.switch == "command":
            return True
        return await self.restore(workload, course)

    async def restore(self, workload: Workload | None, course: Course | None = None) -> bool:
        """Of a job that is suspended."""
        if workload is None and not self.is_stopping:
            return True
        pod_sets = self._originals(workload)
        if not self.is_stopping and is_undressed(self._row.dressing, self._job, self._parts, pod_sets):
            return True
        if self._row.restores_when == "idle" and course is not None and course.is_active:
            return False
        if not await self._is_placeable():
            return False
        job = deepcopy(self._job)
        self._row.dressing.take_off(job, self._parts, pod_sets)
        _drop_mark(job)
        await self._office.write_job(job)
        return False

    async def _suspend(self, workload: Workload | None) -> bool:
        """Whether that is news."""
        if self._row.switch == "command":
            return await self._command("AbortJob")
        job = deepcopy(self._job)
        put(job, self._row.shape.suspend, True)
        if workload is not None:
            if self._row.restores_when == "at once":
                self._row.dressing.take_off(job, self._parts, self._originals(workload))
            elif self._row.restores_when == "stopped":
                put(job, ("metadata", "annotations", STOPPING), "true")
        await self._office.write_job(job)
        return True

    def _originals(self, workload: Workload | None) -> dict[str, Obj]:
        """What the job's owner wrote, as pod sets: a Workload made of the job has kept it."""
        if workload is None:
            return {}
        if PREBUILT not in string_map(self._job, "metadata", "labels"):
            return workload.pod_sets
        worn = pod_set_infos(workload.obj, self._office.flavor, frozenset()) or []
        by_name, written = {one.name: one for one in worn}, workload.pod_sets
        return {
            part.name: {
                **written[part.name],
                "template": restored_template(
                    part.template, by_name[part.name], written[part.name].get("template") or {}
                ),
            }
            for part in self._parts
            if part.name in by_name
        }

    # -- starting ---------------------------------------------------------------------------------------------------

    async def start(self, workload: Workload, schedulers: frozenset[str]) -> bool:
        """Whether it could be begun; raises PodSetConflictError where it never can."""
        infos = pod_set_infos(workload.obj, self._office.flavor, schedulers)
        if infos is None:
            return False
        if is_elastic(self._row, self._job):
            infos = held_back(infos, workload)
        if self._row.switch == "command":
            if not await self._command("ResumeJob"):
                return True
        elif await self._is_placeable():
            job = deepcopy(self._job)
            self._row.dressing.take_off(job, self._parts, self._originals(workload))
            self._row.dressing.put_on(job, self._parts, {one.name: one for one in infos})
            _drop_mark(job)
            if self._row.is_dressed_first and job != self._job:
                await self._office.write_job(job)
                return True
            put(job, self._row.shape.suspend, False)
            await self._office.write_job(job)
        else:
            return True
        queue = dig(workload.obj, ("status", "admission", "clusterQueue"))
        self._office.say(self._job, "Started", f"Admitted by clusterQueue {queue}")
        return True

    async def _is_placeable(self) -> bool:
        """Of a batch Job: the server lets templates change only while none of its pods counts and it has not started.
        Up to Kubernetes 1.35 a job that stops keeps the time of its start, which then has to be taken away."""
        status = self._job.get("status") or {}
        if self._row.restores_when != "stopped":
            return True
        if status.get("active"):
            # The next count brings it back here.
            return False
        if "startTime" not in status:
            return True
        await self._office.write_job_status(self._job, {"startTime": None})
        return False

    async def _command(self, action: str) -> bool:
        """One at a time: its name is the job's and the action's."""
        meta = self._job["metadata"]
        name = f"{meta['name'][:230]}-{action.lower()}-{meta['uid'][:5]}"
        target = controller_reference(self._office.kind, meta)
        command = {
            "metadata": {"name": name, "namespace": meta["namespace"], "ownerReferences": [target]},
            "action": action,
            "target": target,
        }
        try:
            await self._office.context.api.create(COMMANDS, command)
        except AlreadyExistsError:
            # Volcano takes it away when it has followed it.
            return False
        return True


def _drop_mark(job: Obj) -> None:
    annotations = job["metadata"].get("annotations") or {}
    if annotations.pop(STOPPING, None) is not None and not annotations:
        job["metadata"].pop("annotations", None)
