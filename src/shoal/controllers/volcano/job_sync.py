"""Syncs one job: counts its pods, applies its policies, creates and deletes pods, and writes its status.

Before the first pod is deleted, the job's status records the phase that deletes pods. So a controller that finds the
job after a crash continues the deletion, and no pod that is deleted this way is taken for a failure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from msgspec import structs

from shoal.client.ecosystem_kinds import VOLCANO_JOBS
from shoal.client.item import Item
from shoal.client.port import Deletion
from shoal.controllers.volcano.job import (
    FAILED,
    FINISHED,
    PENDING,
    RESTARTING,
    JobState,
    TaskCount,
    VolcanoJob,
    VolcanoJobStatus,
)
from shoal.controllers.volcano.job_context import JobContext
from shoal.controllers.volcano.job_phases import JobPodCounts, after_action, is_active, keeps_finished_pods, next_phase
from shoal.controllers.volcano.job_pod_group import group_spec, startable
from shoal.controllers.volcano.job_pods import JobPod, new_pod
from shoal.controllers.volcano.plugins.pod_edits import PluginTarget
from shoal.controllers.volcano.plugins.table import apply_plugins, unknown_plugins
from shoal.controllers.volcano.policies import RESTART_POD, RESTART_TASK, PolicyAction, due_action, job_events
from shoal.engine.queues.disciplines.volcano.objects import QueuedPodGroup

_UNSCHEDULABLE = "Unschedulable"
INVALID_JOB = "InvalidJob"
"""The state reason of a job whose spec contradicts itself."""


class JobSync:
    def __init__(self, context: JobContext, item: Item, job: VolcanoJob) -> None:
        self._context = context
        self._clock = context.runtime.clock
        self._item = item
        self._job = job

    async def run(self) -> float | None:
        """Returns the seconds until the next sync is needed."""
        job = self._job
        if job.metadata.deletion_timestamp is not None:
            return None
        if not job.phase:
            status = structs.replace(job.status, min_available=job.minimum)
            await self._context.write(self._item, self._in_phase(status, PENDING))
            return None
        return await (self._sync() if is_active(job.phase) else self._kill())

    async def reject(self, fault: str) -> None:
        """Reports an invalid spec; the pods that run already are kept."""
        status = self._job.status
        state = structs.replace(status.state, reason=INVALID_JOB, message=fault)
        status = structs.replace(status, state=state)
        if not state.phase:
            status = structs.replace(self._in_phase(status, PENDING), min_available=self._job.minimum)
            status = structs.replace(status, state=structs.replace(status.state, reason=INVALID_JOB, message=fault))
        if status != self._job.status:
            await self._context.write(self._item, status)

    async def apply_action(self, action: str) -> bool:
        """Applies the action of a command; returns whether it changed the phase."""
        phase = after_action(self._job.phase or PENDING, action)
        if phase == self._job.phase or self._job.metadata.deletion_timestamp is not None:
            return False
        await self._begin_kill(action, phase)
        return True

    # -- active phases ----------------------------------------------------------------------------------------------

    async def _sync(self) -> float | None:
        job, context = self._job, self._context
        pods, group = context.pods(job), context.group(job)
        is_broken = group is not None and group.status.phase == "Unknown"
        lost = tuple(context.lost.get(job.metadata.uid, ()))
        events = job_events(job, pods, lost=lost, is_broken=is_broken)
        due, next_s = due_action(job, events, self._clock.seconds())
        if due is not None and await self._apply_policy(due, pods):
            self._forget_lost(lost)
            return None
        for name in unknown_plugins(job):
            context.warn(job, "PluginError", f"unknown plugin {name!r}: the job runs without it")
        known = await context.create_objects(job)
        tasks = startable(job, pods)
        group = await context.sync_group(job, group_spec(job, tasks, context.priorities()))
        if group is not None:
            self._warn_unschedulable(group)
            if not group.is_waiting:
                await self._sync_pods(pods, {task.name for task in tasks})
        await self._write_status(known)
        self._forget_lost(lost)
        return next_s

    def _forget_lost(self, lost: Sequence[JobPod]) -> None:
        """Drops the deleted pods that this sync has handled; later ones are left for the next sync."""
        known = self._context.lost.pop(self._job.metadata.uid, [])
        if len(known) > len(lost):
            self._context.lost[self._job.metadata.uid] = known[len(lost) :]

    def _warn_unschedulable(self, group: QueuedPodGroup) -> None:
        for one in group.status.conditions:
            if one.type == _UNSCHEDULABLE and one.status == "True":
                about = f"PodGroup {group.metadata.namespace}:{group.metadata.name}"
                self._context.warn(self._job, "PodGroupPending", f"{about} unschedule,reason: {one.message}")

    async def _sync_pods(self, pods: Sequence[JobPod], may_start: set[str]) -> None:
        """Creates missing pods and deletes surplus pods."""
        job, context = self._job, self._context
        existing = {pod.name for pod in pods}
        wanted = {job.pod_name(task, at): (task, at) for task in job.tasks() for at in range(task.replicas)}
        made = []
        for name, (task, at) in wanted.items():
            if name not in existing and task.name in may_start:
                pod = new_pod(job, task, at)
                apply_plugins(PluginTarget(job, task, at), pod)
                made.append(pod)
        await context.create(job, made)
        surplus = [
            pod
            for pod in pods
            if not pod.is_terminating
            and (pod.name not in wanted or pod.is_out_of_sync or pod.version < job.status.version)
        ]
        await context.mark_out_of_sync(surplus)
        await context.delete(job, surplus)

    # -- policies ---------------------------------------------------------------------------------------------------

    async def _apply_policy(self, due: PolicyAction, pods: Sequence[JobPod]) -> bool:
        """Returns whether the action changed anything."""
        if due.action not in (RESTART_TASK, RESTART_POD):
            phase = after_action(self._job.phase, due.action)
            if phase == self._job.phase:
                return False
            await self._begin_kill(due.action, phase)
            return True
        targets = [
            pod
            for pod in pods
            if (pod.name == due.pod if due.action == RESTART_POD else pod.task == due.task) and not pod.is_out_of_sync
        ]
        if not targets:
            return False
        self._record_action(due.action)
        await self._context.mark_out_of_sync(targets)
        status = self._with_counts(structs.replace(self._job.status, retry_count=self._job.status.retry_count + 1))
        is_last = status.retry_count >= self._job.spec.max_retry
        await self._context.write(self._item, self._in_phase(status, FAILED) if is_last else status)
        await self._context.delete(self._job, [] if is_last else targets)
        return True

    async def _begin_kill(self, action: str, phase: str) -> None:
        """Enters a phase that deletes pods; the existing pods belong to an older job version from then on."""
        self._record_action(action)
        status = self._job.status
        retries = status.retry_count + (phase == RESTARTING)
        status = structs.replace(
            status, version=status.version + 1, retry_count=retries, min_available=self._job.minimum
        )
        await self._context.write(self._item, self._in_phase(status, phase))

    def _record_action(self, action: str) -> None:
        self._context.record(self._job, "ExecuteAction", f"Start to execute action {action} ")

    # -- phases that delete pods ------------------------------------------------------------------------------------

    async def _kill(self) -> float | None:
        job, context = self._job, self._context
        context.lost.pop(job.metadata.uid, None)
        keeps = keeps_finished_pods(job)
        await context.delete(job, [pod for pod in context.pods(job) if not (pod.is_finished and keeps)])
        counts = self._counts()
        following = next_phase(job, counts)
        if following != RESTARTING and (job.phase == RESTARTING or not counts.alive):
            await context.delete_group(job)
        await self._write_status(job.status.controlled_resources)
        return await self._expire() if job.phase in FINISHED else None

    async def _expire(self) -> float | None:
        job = self._job
        lasts_s = job.spec.ttl_seconds_after_finished
        if lasts_s is None:
            return None
        left_s = _timestamp_s(job.status.state.last_transition_time or "") + lasts_s - self._clock.seconds()
        if left_s > 0:
            return left_s
        how = Deletion(policy="Foreground", uid=job.metadata.uid)
        await self._context.runtime.api.delete(VOLCANO_JOBS, *job.key, how)
        return None

    # -- status -----------------------------------------------------------------------------------------------------

    async def _write_status(self, resources: dict[str, str]) -> None:
        status = self._with_counts(structs.replace(self._job.status, controlled_resources=resources))
        phase = next_phase(self._job, self._counts())
        if phase != self._job.phase:
            status = self._in_phase(status, phase)
        elif status.state.reason == INVALID_JOB:
            status = structs.replace(status, state=structs.replace(status.state, reason="", message=""))
        if status != self._job.status:
            await self._context.write(self._item, status)

    def _in_phase(self, status: VolcanoJobStatus, phase: str) -> VolcanoJobStatus:
        now = self._clock.text()
        lasted_s = _timestamp_s(now) - self._job.metadata.created_s
        return structs.replace(
            status,
            state=JobState(phase, last_transition_time=now),
            conditions=(*status.conditions, {"status": phase, "lastTransitionTime": now}),
            running_duration=_go_duration(lasted_s) if not is_active(phase) else status.running_duration,
        )

    def _counts(self) -> JobPodCounts:
        pods = self._context.pods(self._job)
        whole: Counter[str] = Counter()
        by_task: dict[str, dict[str, int]] = {}
        for pod in pods:
            if pod.is_terminating:
                whole["terminating"] += 1
                continue
            phase = pod.phase if pod.phase in ("Pending", "Running", "Succeeded", "Failed") else "Unknown"
            whole[phase.lower()] += 1
            task = by_task.setdefault(pod.task, {})
            task[phase] = task.get(phase, 0) + 1
        return JobPodCounts(**whole, by_task=by_task)

    def _with_counts(self, status: VolcanoJobStatus) -> VolcanoJobStatus:
        counts = self._counts()
        return structs.replace(
            status,
            pending=counts.pending,
            running=counts.running,
            succeeded=counts.succeeded,
            failed=counts.failed,
            terminating=counts.terminating,
            unknown=counts.unknown,
            task_status_count={name: TaskCount(phases) for name, phases in sorted(counts.by_task.items())},
            min_available=self._job.minimum,
        )


def _timestamp_s(text: str) -> float:
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def _go_duration(seconds: float) -> str:
    """A duration in Go's format."""
    whole = max(round(seconds), 0)
    hours, minutes, rest = whole // 3600, whole % 3600 // 60, whole % 60
    prefix = f"{hours}h" if hours else ""
    return f"{prefix}{minutes}m{rest}s" if hours or minutes else f"{rest}s"
