"""Volcano's objects as these controllers read them, without a server."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from shoal.api.wire import dec_hook
from shoal.client.item import Obj
from shoal.controllers.volcano.job import VolcanoJob
from shoal.controllers.volcano.job_pods import JobPod
from shoal.engine.queues.disciplines.volcano.objects import GroupPod, Queue, QueuedPodGroup

GPUS = "nvidia.com/gpu"
T = TypeVar("T")


def queue(name: str, gpus: int | None = None, parent: str = "root", state: str = "Open", **spec: str) -> Queue:
    limit = {} if gpus is None else {"capability": {GPUS: gpus}}
    return read(
        Queue, {"metadata": {"name": name}, "spec": {"parent": parent, **limit, **spec}, "status": {"state": state}}
    )


def group(
    name: str, gpus: int = 0, *, queue: str = "q", phase: str = "Pending", least: int = 1, **spec: object
) -> QueuedPodGroup:
    wanted = {"minResources": {GPUS: gpus}} if gpus else {}
    whole = {"minMember": least, "queue": queue, **wanted, **spec}
    return read(
        QueuedPodGroup, {"metadata": {"name": name, "namespace": "t"}, "spec": whole, "status": {"phase": phase}}
    )


def pod(name: str, gpus: int = 1, role: str = "", *, node: str = "", phase: str = "Pending") -> GroupPod:
    container = {"name": "main", "image": "x", "resources": {"limits": {GPUS: gpus}}}
    meta = {"name": name, "namespace": "t", "annotations": {"volcano.sh/task-spec": role}}
    return read(
        GroupPod, {"metadata": meta, "spec": {"containers": [container], "nodeName": node}, "status": {"phase": phase}}
    )


def job(
    *, phase: str = "Running", retries: int = 0, version: int = 0, told: Obj | None = None, **spec: object
) -> VolcanoJob:
    tasks = spec.pop("tasks", [{"name": "worker", "replicas": 2}])
    status = {"state": {"phase": phase}, "retryCount": retries, "version": version, "taskStatusCount": told or {}}
    return read(VolcanoJob, {"metadata": {"name": "j", "uid": "u"}, "spec": {"tasks": tasks, **spec}, "status": status})


def job_pod(name: str = "j-worker-0", phase: str = "Running", *, version: int = 0, exit_code: int = 0) -> JobPod:
    notes = {"volcano.sh/task-spec": name.split("-")[1], "volcano.sh/job-version": str(version)}
    ended = [{"state": {"terminated": {"exitCode": exit_code}}}] if phase == "Failed" else []
    ready = [{"type": "Ready", "status": "True" if phase == "Running" else "False"}]
    status = {"phase": phase, "containerStatuses": ended, "conditions": ready}
    return read(JobPod, {"metadata": {"name": name, "annotations": notes}, "status": status})


def read(what: type[T], obj: Obj) -> T:
    return msgspec.convert(obj, what, dec_hook=dec_hook)
