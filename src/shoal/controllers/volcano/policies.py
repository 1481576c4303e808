"""What has happened to a job that its policies may answer, and which action they answer it with.

Events are read from how things stand, not from how they changed: a pod of the job's present version that has failed is
PodFailed for as long as it is there. So nothing is lost when the controller dies, and nothing is answered twice,
because every action takes away what it answers. A pod that vanished is told by the cache, or, while nobody looked, is
missing from what the status says of its task.

A policy of a task goes before those of the job; the first that fits is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from shoal.controllers.volcano.job import Policy, Task, VolcanoJob
from shoal.controllers.volcano.job_pods import JobPod
from shoal.units.durations import DurationError, nanoseconds

ABORT, RESTART, RESTART_TASK, RESTART_POD = "AbortJob", "RestartJob", "RestartTask", "RestartPod"
TERMINATE, COMPLETE, RESUME = "TerminateJob", "CompleteJob", "ResumeJob"
ACTIONS = frozenset({ABORT, RESTART, RESTART_TASK, RESTART_POD, TERMINATE, COMPLETE, RESUME})
_ANY = "*"
_ONLY_BY_NAME = frozenset({"PodPending", "PodRunning"})


class Fact(msgspec.Struct, frozen=True):
    event: str
    task: str = ""
    pod: str = ""
    exit_code: int = 0
    since_s: float = 0.0


class Choice(msgspec.Struct, frozen=True):
    action: str
    task: str = ""
    pod: str = ""


def facts_of(
    job: VolcanoJob, pods: Sequence[JobPod], *, lost: Sequence[JobPod] = (), is_broken: bool = False
) -> Iterator[Fact]:
    """`lost`: pods that were seen to vanish. `is_broken`: some of its pods run, and the gang is not whole any more."""
    present = [pod for pod in pods if pod.version == job.status.version and not pod.is_given_up]
    for pod in sorted(present, key=lambda one: one.name):
        if pod.phase == "Failed":
            yield Fact("PodFailed", pod.task, pod.name, pod.exit_code, pod.ended_s)
        elif pod.is_leaving and not pod.has_ended:
            left = pod.metadata.deletion_timestamp
            yield Fact("PodEvicted", pod.task, pod.name, 0, left.timestamp() if left is not None else 0.0)
        elif pod.phase == "Pending":
            yield Fact("PodPending", pod.task, pod.name, 0, pod.metadata.created_s)
        elif pod.phase == "Running":
            yield Fact("PodRunning", pod.task, pod.name)
    for pod in lost:
        if pod.version == job.status.version and not pod.is_given_up and not pod.has_ended:
            yield Fact("PodEvicted", pod.task, pod.name)
    for task in job.tasks():
        yield from _facts_of_task(job, task, [pod for pod in pods if pod.task == task.name])
    if is_broken:
        yield Fact("Unknown")


def _facts_of_task(job: VolcanoJob, task: Task, pods: Sequence[JobPod]) -> Iterator[Fact]:
    told = job.status.task_status_count.get(task.name)
    expected = min(sum(told.phase.values()), task.replicas) if told is not None else 0
    if len([pod for pod in pods if pod.index < task.replicas]) < expected:
        yield Fact("PodEvicted", task.name)
    present = [pod for pod in pods if pod.version == job.status.version and not pod.is_given_up]
    if task.replicas and sum(pod.phase == "Succeeded" for pod in present) >= task.replicas:
        yield Fact("TaskCompleted", task.name)
    alive = [pod for pod in present if pod.phase in ("Pending", "Running") and not pod.is_leaving]
    if task.most_restarts > 0 and sum(pod.restarts for pod in alive) >= task.most_restarts:
        yield Fact("TaskFailed", task.name)


def choose(job: VolcanoJob, facts: Iterable[Fact], now_s: float) -> tuple[Choice | None, float | None]:
    """The action that is due now, and in how many seconds one will be."""
    tasks = {task.name: task for task in job.tasks()}
    next_s: float | None = None
    for fact in facts:
        task = tasks.get(fact.task)
        policies = (*(task.policies if task is not None else ()), *job.spec.policies)
        policy = next((one for one in policies if _fits(one, fact)), None)
        if policy is None or policy.action not in ACTIONS:
            continue
        wait_s = fact.since_s + seconds(policy.timeout) - now_s if policy.timeout else 0.0
        if wait_s <= 0:
            return Choice(policy.action, fact.task, fact.pod), None
        next_s = wait_s if next_s is None else min(next_s, wait_s)
    return None, next_s


def _fits(policy: Policy, fact: Fact) -> bool:
    names = policy.names()
    if fact.event in names or (_ANY in names and fact.event not in _ONLY_BY_NAME):
        return True
    return policy.exit_code is not None and fact.event == "PodFailed" and policy.exit_code == fact.exit_code


def seconds(text: str) -> float:
    """Of a duration as Go writes it, `1h30m`; zero for what is none."""
    try:
        return nanoseconds(text) / 10**9
    except DurationError:
        return 0.0
