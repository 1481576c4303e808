"""Starts and stops a job: with one write if its kind allows that, otherwise step by step.

The next step is always read from the job itself, so that it is continued after a crash.
"""

from __future__ import annotations

from copy import deepcopy

from shoal.client.item import Obj
from shoal.client.owned_pods.ownership import controller_reference
from shoal.client.refusals import AlreadyExistsError
from shoal.controllers.queued_jobs.elastic_jobs import is_elastic, with_elastic_gate
from shoal.controllers.queued_jobs.job_context import QueuedJobContext
from shoal.controllers.queued_jobs.job_kind import JobProgress
from shoal.controllers.queued_jobs.job_kinds import COMMANDS
from shoal.controllers.queued_jobs.job_progress import SUSPENDED_BY_VOLCANO, VOLCANO_PHASE
from shoal.controllers.queued_jobs.pod_set_injection import is_restored
from shoal.controllers.queued_jobs.workloads import OwnedWorkload
from shoal.controllers.queued_work.fields import put, string_map
from shoal.controllers.queued_work.kueue_names import PREBUILT, STOPPING
from shoal.controllers.queued_work.pod_set_info import pod_set_infos, restored_template
from shoal.store.queues.job_parts import PodPart, dig


class JobSuspension:
    """The suspension of one version of a job."""

    def __init__(self, context: QueuedJobContext, job: Obj, parts: tuple[PodPart, ...]) -> None:
        self._context = context
        self._job_kind = context.job_kind
        self._job = job
        self._parts = parts

    @property
    def is_suspended(self) -> bool:
        if self._job_kind.suspended_by == "command":
            return dig(self._job, VOLCANO_PHASE) in SUSPENDED_BY_VOLCANO
        return dig(self._job, self._job_kind.shape.suspend) is True

    @property
    def is_stopping(self) -> bool:
        return STOPPING in (self._job["metadata"].get("annotations") or {})

    # -- stopping ---------------------------------------------------------------------------------------------------

    async def stop(self, workload: OwnedWorkload | None, message: str, progress: JobProgress | None = None) -> bool:
        """Returns whether the job is suspended and its templates are restored; if not, one step towards that was taken
        or another controller has to act first. Without a Workload the original templates are unknown."""
        if not self.is_suspended:
            if await self._suspend(workload):
                self._context.record(self._job, "Stopped", message)
            return False
        if self._job_kind.suspended_by == "command":
            return True
        return await self.restore(workload, progress)

    async def restore(self, workload: OwnedWorkload | None, progress: JobProgress | None = None) -> bool:
        """Restore the templates of a suspended job; returns whether they were restored already."""
        if workload is None and not self.is_stopping:
            return True
        pod_sets = self._original_pod_sets(workload)
        if not self.is_stopping and is_restored(self._job_kind.injector, self._job, self._parts, pod_sets):
            return True
        if self._job_kind.restores_when == "idle" and progress is not None and progress.is_active:
            return False
        if not await self._can_change_templates():
            return False
        job = deepcopy(self._job)
        self._job_kind.injector.restore(job, self._parts, pod_sets)
        _drop_stopping_annotation(job)
        await self._context.write_job(job)
        return False

    async def _suspend(self, workload: OwnedWorkload | None) -> bool:
        """Returns whether the job was not being suspended already."""
        if self._job_kind.suspended_by == "command":
            return await self._send_command("AbortJob")
        job = deepcopy(self._job)
        put(job, self._job_kind.shape.suspend, True)
        if workload is not None:
            if self._job_kind.restores_when == "at once":
                self._job_kind.injector.restore(job, self._parts, self._original_pod_sets(workload))
            elif self._job_kind.restores_when == "stopped":
                put(job, ("metadata", "annotations", STOPPING), "true")
        await self._context.write_job(job)
        return True

    def _original_pod_sets(self, workload: OwnedWorkload | None) -> dict[str, Obj]:
        """The original templates as pod sets: a Workload that was made from the job contains them."""
        if workload is None:
            return {}
        if PREBUILT not in string_map(self._job, "metadata", "labels"):
            return workload.pod_sets
        injected = pod_set_infos(workload.obj, self._context.flavor, frozenset()) or []
        by_name, written = {one.name: one for one in injected}, workload.pod_sets
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

    async def start(self, workload: OwnedWorkload, schedulers: frozenset[str]) -> bool:
        """Returns whether the start could begin; raises PodSetConflictError if it never can."""
        infos = pod_set_infos(workload.obj, self._context.flavor, schedulers)
        if infos is None:
            return False
        if is_elastic(self._job_kind, self._job):
            infos = with_elastic_gate(infos, workload)
        if self._job_kind.suspended_by == "command":
            if not await self._send_command("ResumeJob"):
                return True
        elif await self._can_change_templates():
            job = deepcopy(self._job)
            self._job_kind.injector.restore(job, self._parts, self._original_pod_sets(workload))
            self._job_kind.injector.inject(job, self._parts, {one.name: one for one in infos})
            _drop_stopping_annotation(job)
            if self._job_kind.needs_suspended_injection and job != self._job:
                await self._context.write_job(job)
                return True
            put(job, self._job_kind.shape.suspend, False)
            await self._context.write_job(job)
        else:
            return True
        queue = dig(workload.obj, ("status", "admission", "clusterQueue"))
        self._context.record(self._job, "Started", f"Admitted by clusterQueue {queue}")
        return True

    async def _can_change_templates(self) -> bool:
        """The API server accepts other templates of a batch Job only while it has no active pods and no start time. Up
        to Kubernetes 1.35 a suspended Job keeps its start time, which then has to be removed."""
        status = self._job.get("status") or {}
        if self._job_kind.restores_when != "stopped":
            return True
        if status.get("active"):
            # The next change of the count triggers a reconciliation.
            return False
        if "startTime" not in status:
            return True
        await self._context.write_job_status(self._job, {"startTime": None})
        return False

    async def _send_command(self, action: str) -> bool:
        """Create a Command; there is one at a time, because its name consists of the job's and the action's."""
        meta = self._job["metadata"]
        name = f"{meta['name'][:230]}-{action.lower()}-{meta['uid'][:5]}"
        target = controller_reference(self._context.kind, meta)
        command = {
            "metadata": {"name": name, "namespace": meta["namespace"], "ownerReferences": [target]},
            "action": action,
            "target": target,
        }
        try:
            await self._context.live.api.create(COMMANDS, command)
        except AlreadyExistsError:
            # Volcano deletes a Command once it has executed it.
            return False
        return True


def _drop_stopping_annotation(job: Obj) -> None:
    annotations = job["metadata"].get("annotations") or {}
    if annotations.pop(STOPPING, None) is not None and not annotations:
        job["metadata"].pop("annotations", None)
