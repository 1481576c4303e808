"""Builds the pod group of a job from the job's spec.

The controller creates the group before the pods, and updates it when the job changes. A task that waits for another
task does not count towards the minimum until it may start; otherwise no pod would ever start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from shoal.api.pod import PodSpec
from shoal.api.wire import dec_hook
from shoal.client.item import Obj
from shoal.controllers.volcano.job import Task, VolcanoJob
from shoal.controllers.volcano.job_pods import JobPod
from shoal.engine.queues.disciplines.volcano.amounts import add, multiplied, requests_of, to_api

GROUP_FIELDS = ("minMember", "minTaskMember", "queue", "minResources", "priorityClassName")
"""The fields of the group that the controller keeps equal to the job."""


def startable(job: VolcanoJob, pods: Sequence[JobPod]) -> tuple[Task, ...]:
    """The tasks whose dependencies are met."""
    ready: dict[str, int] = {}
    begun: set[str] = set()
    for pod in pods:
        if pod.version == job.status.version:
            begun.add(pod.task)
            ready[pod.task] = ready.get(pod.task, 0) + pod.is_ready
    tasks = job.tasks()
    minimum = {task.name: task.minimum for task in tasks}

    def may_start(task: Task) -> bool:
        wait = task.depends_on
        if wait is None or not wait.name or task.name in begun:
            return True
        met = [ready.get(name, 0) >= minimum.get(name, 0) for name in wait.name]
        return any(met) if wait.iteration == "any" else all(met)

    return tuple(task for task in tasks if may_start(task))


def group_spec(job: VolcanoJob, tasks: Sequence[Task], priorities: Mapping[str, int]) -> Obj:
    """`tasks`: the tasks that may start now."""
    minimum = min(job.minimum, sum(task.replicas for task in tasks))
    spec: Obj = {
        "minMember": minimum,
        "queue": job.queue,
        "minResources": to_api(_resources(tasks, minimum, priorities)),
    }
    by_role = {task.name: task.minimum for task in tasks}
    if sum(by_role.values()) <= minimum:
        spec["minTaskMember"] = by_role
    if job.spec.priority_class_name:
        spec["priorityClassName"] = job.spec.priority_class_name
    if job.spec.network_topology:
        spec["networkTopology"] = job.spec.network_topology
    return spec


def group_of_job(job: VolcanoJob, spec: Obj) -> Obj:
    metadata = {
        "namespace": job.metadata.namespace,
        "name": job.group_name,
        "labels": job.metadata.labels,
        "annotations": job.metadata.annotations,
        "ownerReferences": [job.owner_reference()],
    }
    return {"metadata": metadata, "spec": spec}


def _resources(tasks: Sequence[Task], minimum: int, priorities: Mapping[str, int]) -> dict[str, int]:
    """The requests of the minimum number of pods, tasks with higher priority first."""
    total: dict[str, int] = {}
    order = sorted(tasks, key=lambda task: -priorities.get(task.pod_spec.get("priorityClassName") or "", 0))
    for task in order:
        count = min(task.replicas, minimum)
        minimum -= count
        add(total, multiplied(requests_of(_pod_spec(task)), count))
    return {name: amount for name, amount in total.items() if amount}


def _pod_spec(task: Task) -> PodSpec:
    try:
        return msgspec.convert(task.pod_spec, PodSpec, dec_hook=dec_hook)
    except (msgspec.ValidationError, ValueError):
        # The API server reports the error when the pod is created.
        return PodSpec()
