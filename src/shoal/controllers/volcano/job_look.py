"""One look at a job: what its pods have come to, what its policies say to that, and the next step of its course.

A step that ends pods is written into the job before the first pod is ended: whoever finds the job after a crash goes on
ending them, and no pod that ends so is taken for an accident.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from msgspec import structs

from shoal.controllers.volcano.course import Counts, after_action, is_active, keeps_ended, next_phase
from shoal.controllers.volcano.job import FAILED, FINISHED, PENDING, RESTARTING, JobStatus, State, TaskCount, VolcanoJob
from shoal.controllers.volcano.job_group import group_spec, startable
from shoal.controllers.volcano.job_office import JobOffice
from shoal.controllers.volcano.job_pods import JobPod, new_pod
from shoal.controllers.volcano.plugins.dressing import Place
from shoal.controllers.volcano.plugins.table import dress, unknown_plugins
from shoal.controllers.volcano.policies import RESTART_POD, RESTART_TASK, Choice, choose, facts_of
from shoal.controllers.volcano.sights import PodGroup
from shoal.store.live.ecosystem_kinds import VOLCANO_JOBS
from shoal.store.live.item import Item
from shoal.store.live.port import Deletion

_UNSCHEDULABLE = "Unschedulable"
FAULTY = "InvalidJob"
"""Why it stands still: what it asks for contradicts itself."""


class Look:
    def __init__(self, office: JobOffice, item: Item, job: VolcanoJob) -> None:
        self._office = office
        self._clock = office.context.clock
        self._item = item
        self._job = job

    async def go(self) -> float | None:
        """In how many seconds to look again."""
        job = self._job
        if job.metadata.deletion_timestamp is not None:
            return None
        if not job.phase:
            status = structs.replace(job.status, min_available=job.least)
            await self._office.write(self._item, self._in_phase(status, PENDING))
            return None
        return await (self._keep() if is_active(job.phase) else self._end())

    async def refuse(self, fault: str) -> None:
        """Nothing can be made of the job as it is; what runs of it goes on."""
        status = self._job.status
        state = structs.replace(status.state, reason=FAULTY, message=fault)
        status = structs.replace(status, state=state)
        if not state.phase:
            status = structs.replace(self._in_phase(status, PENDING), min_available=self._job.least)
            status = structs.replace(status, state=structs.replace(status.state, reason=FAULTY, message=fault))
        if status != self._job.status:
            await self._office.write(self._item, status)

    async def act(self, action: str) -> bool:
        """What a command says; whether it meant anything."""
        phase = after_action(self._job.phase or PENDING, action)
        if phase == self._job.phase or self._job.metadata.deletion_timestamp is not None:
            return False
        await self._turn(action, phase)
        return True

    # -- while it is to run -----------------------------------------------------------------------------------------

    async def _keep(self) -> float | None:
        job, office = self._job, self._office
        pods, group = office.pods(job), office.group(job)
        is_broken = group is not None and group.status.phase == "Unknown"
        lost = tuple(office.lost.get(job.metadata.uid, ()))
        facts = facts_of(job, pods, lost=lost, is_broken=is_broken)
        choice, next_s = choose(job, facts, self._clock.seconds())
        if choice is not None and await self._answer(choice, pods):
            self._have_heard(lost)
            return None
        for name in unknown_plugins(job):
            office.warn(job, "PluginError", f"plugin {name} is not known here, the job runs without it")
        known = await office.furnish(job)
        tasks = startable(job, pods)
        group = await office.keep_group(job, group_spec(job, tasks, office.priorities()))
        if group is not None:
            self._tell_group(group)
            if not group.is_waiting:
                await self._adjust(pods, {task.name for task in tasks})
        await self._conclude(known)
        self._have_heard(lost)
        return next_s

    def _have_heard(self, lost: Sequence[JobPod]) -> None:
        """What vanished before this look is answered; what vanished meanwhile is for the next."""
        known = self._office.lost.pop(self._job.metadata.uid, [])
        if len(known) > len(lost):
            self._office.lost[self._job.metadata.uid] = known[len(lost) :]

    def _tell_group(self, group: PodGroup) -> None:
        for one in group.status.conditions:
            if one.type == _UNSCHEDULABLE and one.status == "True":
                about = f"PodGroup {group.metadata.namespace}:{group.metadata.name}"
                self._office.warn(self._job, "PodGroupPending", f"{about} unschedule,reason: {one.message}")

    async def _adjust(self, pods: Sequence[JobPod], may_start: set[str]) -> None:
        """Make the pods that lack, end those that are too many."""
        job, office = self._job, self._office
        there = {pod.name for pod in pods}
        wanted = {job.pod_name(task, at): (task, at) for task in job.tasks() for at in range(task.replicas)}
        made = []
        for name, (task, at) in wanted.items():
            if name not in there and task.name in may_start:
                pod = new_pod(job, task, at)
                dress(Place(job, task, at), pod)
                made.append(pod)
        await office.create(job, made)
        surplus = [
            pod
            for pod in pods
            if not pod.is_leaving and (pod.name not in wanted or pod.is_given_up or pod.version < job.status.version)
        ]
        await office.give_up(surplus)
        await office.delete(job, surplus)

    # -- what policies say ------------------------------------------------------------------------------------------

    async def _answer(self, choice: Choice, pods: Sequence[JobPod]) -> bool:
        """Whether anything was begun by it."""
        if choice.action not in (RESTART_TASK, RESTART_POD):
            phase = after_action(self._job.phase, choice.action)
            if phase == self._job.phase:
                return False
            await self._turn(choice.action, phase)
            return True
        targets = [
            pod
            for pod in pods
            if (pod.name == choice.pod if choice.action == RESTART_POD else pod.task == choice.task)
            and not pod.is_given_up
        ]
        if not targets:
            return False
        self._say(choice.action)
        await self._office.give_up(targets)
        status = self._counted(structs.replace(self._job.status, retry_count=self._job.status.retry_count + 1))
        is_last = status.retry_count >= self._job.spec.max_retry
        await self._office.write(self._item, self._in_phase(status, FAILED) if is_last else status)
        await self._office.delete(self._job, [] if is_last else targets)
        return True

    async def _turn(self, action: str, phase: str) -> None:
        """Into a phase in which pods are ended: those there are now are of an older version from then on."""
        self._say(action)
        status = self._job.status
        retries = status.retry_count + (phase == RESTARTING)
        status = structs.replace(status, version=status.version + 1, retry_count=retries, min_available=self._job.least)
        await self._office.write(self._item, self._in_phase(status, phase))

    def _say(self, action: str) -> None:
        self._office.say(self._job, "ExecuteAction", f"Start to execute action {action} ")

    # -- while it ends, and afterwards ------------------------------------------------------------------------------

    async def _end(self) -> float | None:
        job, office = self._job, self._office
        office.lost.pop(job.metadata.uid, None)
        keeps = keeps_ended(job)
        await office.delete(job, [pod for pod in office.pods(job) if not (pod.has_ended and keeps)])
        counts = self._counts()
        following = next_phase(job, counts)
        if following != RESTARTING and (job.phase == RESTARTING or not counts.alive):
            await office.drop_group(job)
        await self._conclude(job.status.controlled_resources)
        return await self._expire() if job.phase in FINISHED else None

    async def _expire(self) -> float | None:
        job = self._job
        lasts_s = job.spec.ttl_seconds_after_finished
        if lasts_s is None:
            return None
        left_s = _seconds_of(job.status.state.last_transition_time or "") + lasts_s - self._clock.seconds()
        if left_s > 0:
            return left_s
        how = Deletion(policy="Foreground", uid=job.metadata.uid)
        await self._office.context.api.delete(VOLCANO_JOBS, *job.key, how)
        return None

    # -- its status -------------------------------------------------------------------------------------------------

    async def _conclude(self, resources: dict[str, str]) -> None:
        status = self._counted(structs.replace(self._job.status, controlled_resources=resources))
        phase = next_phase(self._job, self._counts())
        if phase != self._job.phase:
            status = self._in_phase(status, phase)
        elif status.state.reason == FAULTY:
            status = structs.replace(status, state=structs.replace(status.state, reason="", message=""))
        if status != self._job.status:
            await self._office.write(self._item, status)

    def _in_phase(self, status: JobStatus, phase: str) -> JobStatus:
        now = self._clock.text()
        lasted_s = _seconds_of(now) - self._job.metadata.created_s
        return structs.replace(
            status,
            state=State(phase, last_transition_time=now),
            conditions=(*status.conditions, {"status": phase, "lastTransitionTime": now}),
            running_duration=_duration(lasted_s) if not is_active(phase) else status.running_duration,
        )

    def _counts(self) -> Counts:
        pods = self._office.pods(self._job)
        whole: Counter[str] = Counter()
        by_task: dict[str, dict[str, int]] = {}
        for pod in pods:
            if pod.is_leaving:
                whole["terminating"] += 1
                continue
            phase = pod.phase if pod.phase in ("Pending", "Running", "Succeeded", "Failed") else "Unknown"
            whole[phase.lower()] += 1
            task = by_task.setdefault(pod.task, {})
            task[phase] = task.get(phase, 0) + 1
        return Counts(**whole, by_task=by_task)

    def _counted(self, status: JobStatus) -> JobStatus:
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
            min_available=self._job.least,
        )


def _seconds_of(text: str) -> float:
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def _duration(seconds: float) -> str:
    """As Go writes durations."""
    whole = max(round(seconds), 0)
    hours, minutes, rest = whole // 3600, whole % 3600 // 60, whole % 60
    told = f"{hours}h" if hours else ""
    return f"{told}{minutes}m{rest}s" if hours or minutes else f"{rest}s"
