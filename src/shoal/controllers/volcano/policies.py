"""Finds the lifecycle policy of a job that applies, and the action that it asks for.

The job events are derived from the current state, not from changes: a pod of the job's current version that has failed
is a PodFailed event for as long as the pod exists. So no event is lost when the controller restarts, and no event is
answered twice, because each action removes what it answers. The cache reports a pod that was deleted; when no process
watched the deletion, the pod is missing from the counts in the status of its task.

The policies of a task come before the policies of the job; the first policy that matches is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from shoal.controllers.volcano.job import LifecyclePolicy, Task, VolcanoJob
from shoal.controllers.volcano.job_pods import JobPod
from shoal.units.durations import DurationError, nanoseconds

ABORT, RESTART, RESTART_TASK, RESTART_POD = "AbortJob", "RestartJob", "RestartTask", "RestartPod"
TERMINATE, COMPLETE, RESUME = "TerminateJob", "CompleteJob", "ResumeJob"
ACTIONS = frozenset({ABORT, RESTART, RESTART_TASK, RESTART_POD, TERMINATE, COMPLETE, RESUME})
_ANY = "*"
_ONLY_BY_NAME = frozenset({"PodPending", "PodRunning"})


class JobEvent(msgspec.Struct, frozen=True):
    event: str
    task: str = ""
    pod: str = ""
    exit_code: int = 0
    since_s: float = 0.0


class PolicyAction(msgspec.Struct, frozen=True):
    action: str
    task: str = ""
    pod: str = ""


def job_events(
    job: VolcanoJob, pods: Sequence[JobPod], *, lost: Sequence[JobPod] = (), is_broken: bool = False
) -> Iterator[JobEvent]:
    """`lost`: pods whose deletion was observed. `is_broken`: some pods run, but fewer than the gang needs."""
    present = [pod for pod in pods if pod.version == job.status.version and not pod.is_out_of_sync]
    for pod in sorted(present, key=lambda one: one.name):
        if pod.phase == "Failed":
            yield JobEvent("PodFailed", pod.task, pod.name, pod.exit_code, pod.ended_s)
        elif pod.is_terminating and not pod.is_finished:
            left = pod.metadata.deletion_timestamp
            yield JobEvent("PodEvicted", pod.task, pod.name, 0, left.timestamp() if left is not None else 0.0)
        elif pod.phase == "Pending":
            yield JobEvent("PodPending", pod.task, pod.name, 0, pod.metadata.created_s)
        elif pod.phase == "Running":
            yield JobEvent("PodRunning", pod.task, pod.name)
    for pod in lost:
        if pod.version == job.status.version and not pod.is_out_of_sync and not pod.is_finished:
            yield JobEvent("PodEvicted", pod.task, pod.name)
    for task in job.tasks():
        yield from _task_events(job, task, [pod for pod in pods if pod.task == task.name])
    if is_broken:
        yield JobEvent("Unknown")


def _task_events(job: VolcanoJob, task: Task, pods: Sequence[JobPod]) -> Iterator[JobEvent]:
    counted = job.status.task_status_count.get(task.name)
    expected = min(sum(counted.phase.values()), task.replicas) if counted is not None else 0
    if len([pod for pod in pods if pod.index < task.replicas]) < expected:
        yield JobEvent("PodEvicted", task.name)
    present = [pod for pod in pods if pod.version == job.status.version and not pod.is_out_of_sync]
    if task.replicas and sum(pod.phase == "Succeeded" for pod in present) >= task.replicas:
        yield JobEvent("TaskCompleted", task.name)
    alive = [pod for pod in present if pod.phase in ("Pending", "Running") and not pod.is_terminating]
    if task.max_restarts > 0 and sum(pod.restarts for pod in alive) >= task.max_restarts:
        yield JobEvent("TaskFailed", task.name)


def due_action(job: VolcanoJob, events: Iterable[JobEvent], now_s: float) -> tuple[PolicyAction | None, float | None]:
    """The action that is due now, or the number of seconds until one is due."""
    tasks = {task.name: task for task in job.tasks()}
    next_s: float | None = None
    for event in events:
        task = tasks.get(event.task)
        policies = (*(task.policies if task is not None else ()), *job.spec.policies)
        policy = next((one for one in policies if _fits(one, event)), None)
        if policy is None or policy.action not in ACTIONS:
            continue
        wait_s = event.since_s + go_duration_s(policy.timeout) - now_s if policy.timeout else 0.0
        if wait_s <= 0:
            return PolicyAction(policy.action, event.task, event.pod), None
        next_s = wait_s if next_s is None else min(next_s, wait_s)
    return None, next_s


def _fits(policy: LifecyclePolicy, event: JobEvent) -> bool:
    names = policy.names()
    if event.event in names or (_ANY in names and event.event not in _ONLY_BY_NAME):
        return True
    return policy.exit_code is not None and event.event == "PodFailed" and policy.exit_code == event.exit_code


def go_duration_s(text: str) -> float:
    """The seconds of a duration in Go's format, such as `1h30m`; zero for invalid text."""
    try:
        return nanoseconds(text) / 10**9
    except DurationError:
        return 0.0
