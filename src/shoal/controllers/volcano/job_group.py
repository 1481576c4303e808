"""The pod group of a job: made before its pods, kept in step with what the job asks for.

Tasks that wait for others cannot count towards what must start together, or nothing would ever start: the group grows
as they may start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from shoal.api.pod import PodSpec
from shoal.api.wire import dec_hook
from shoal.controllers.volcano.amounts import add, requests_of, times, to_api
from shoal.controllers.volcano.job import Task, VolcanoJob
from shoal.controllers.volcano.job_pods import JobPod
from shoal.store.live.item import Obj

GROUP_FIELDS = ("minMember", "minTaskMember", "queue", "minResources", "priorityClassName")
"""What follows from the job for as long as it is there."""


def startable(job: VolcanoJob, pods: Sequence[JobPod]) -> tuple[Task, ...]:
    """Tasks that wait for no other, or whose wait is over."""
    ready: dict[str, int] = {}
    begun: set[str] = set()
    for pod in pods:
        if pod.version == job.status.version:
            begun.add(pod.task)
            ready[pod.task] = ready.get(pod.task, 0) + pod.is_ready
    tasks = job.tasks()
    least = {task.name: task.least for task in tasks}

    def may_start(task: Task) -> bool:
        wait = task.depends_on
        if wait is None or not wait.name or task.name in begun:
            return True
        met = [ready.get(name, 0) >= least.get(name, 0) for name in wait.name]
        return any(met) if wait.iteration == "any" else all(met)

    return tuple(task for task in tasks if may_start(task))


def group_spec(job: VolcanoJob, tasks: Sequence[Task], priorities: Mapping[str, int]) -> Obj:
    """`tasks`: those that may start by now."""
    least = min(job.least, sum(task.replicas for task in tasks))
    spec: Obj = {"minMember": least, "queue": job.queue, "minResources": to_api(_resources(tasks, least, priorities))}
    by_role = {task.name: task.least for task in tasks}
    if sum(by_role.values()) <= least:
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


def _resources(tasks: Sequence[Task], least: int, priorities: Mapping[str, int]) -> dict[str, int]:
    """Of the pods that count first: those of tasks with the highest priority."""
    total: dict[str, int] = {}
    order = sorted(tasks, key=lambda task: -priorities.get(task.pod_spec.get("priorityClassName") or "", 0))
    for task in order:
        count = min(task.replicas, least)
        least -= count
        add(total, times(requests_of(_pod_spec(task)), count))
    return {name: amount for name, amount in total.items() if amount}


def _pod_spec(task: Task) -> PodSpec:
    try:
        return msgspec.convert(task.pod_spec, PodSpec, dec_hook=dec_hook)
    except (msgspec.ValidationError, ValueError):
        # The server will say what is wrong with it when a pod is to be made of it.
        return PodSpec()
