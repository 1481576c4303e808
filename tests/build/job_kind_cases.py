"""A job of every kind that is queued by suspending it, with the statuses that its operator would write."""

from __future__ import annotations

from typing import Any

import msgspec

from build.fake_admission import QUEUE
from shoal.client.item import Obj
from shoal.client.kind import Kind
from shoal.controllers.queued_jobs.job_kinds import BY_KIND

Way = tuple[str | int, ...]


class JobKindCase(msgspec.Struct, frozen=True):
    kind: Kind
    spec: Obj
    counts: dict[str, int]
    """Its pod sets, in order."""
    runs: Obj
    """The status while pods run."""
    idle: Obj
    """The status once it is suspended."""
    ended: Obj | None
    is_success: bool = True
    injected_at: tuple[Way, ...] = ()
    """Where in the object the flavor's node selectors are to be found, by pod set."""

    @property
    def name(self) -> str:
        return self.kind.name.lower()

    @property
    def group(self) -> str:
        return self.kind.group

    def made(self, *, suspended: bool = True) -> Obj:
        spec = msgspec.json.decode(msgspec.json.encode(self.spec))
        way = BY_KIND[self.kind.group, self.kind.name].shape.suspend
        if way and suspended:
            here: Any = spec
            for step in way[1:-1]:
                here = here.setdefault(step, {})
            here[way[-1]] = True
        return {"metadata": {"name": self.name, "labels": dict(QUEUE)}, "spec": spec}


def template(**spec: Any) -> Obj:
    container = {"name": "main", "image": "trainer", "resources": {"requests": {"cpu": "1"}}}
    labels = {"app": "x"}
    return {"metadata": {"labels": labels}, "spec": {"containers": [container], "restartPolicy": "Never", **spec}}


def true(kind: str, message: str = "said so") -> Obj:
    return {
        "type": kind,
        "status": "True",
        "reason": "Told",
        "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


_SELECTOR = ("spec", "nodeSelector")


def _of(group: str, name: str) -> Kind:
    return BY_KIND[group, name].kind


def _training(name: str, specs: str, leader: str = "Master") -> JobKindCase:
    roles = {"Worker": {"replicas": 3, "template": template()}, leader: {"replicas": 1, "template": template()}}
    ways = tuple(("spec", specs, role, "template", *_SELECTOR) for role in (leader, "Worker"))
    return JobKindCase(
        _of("kubeflow.org", name),
        {specs: roles},
        {leader.lower(): 1, "worker": 3},
        {"replicaStatuses": {"Worker": {"active": 3}}, "conditions": [true("Running")]},
        {"replicaStatuses": {"Worker": {"active": 0}}, "conditions": [true("Suspended")]},
        {"conditions": [true("Succeeded")]},
        injected_at=ways,
    )


_RAY: Obj = {
    "headGroupSpec": {"rayStartParams": {}, "template": template()},
    "workerGroupSpecs": [
        {"groupName": "Small", "replicas": 2, "numOfHosts": 2, "rayStartParams": {}, "template": template()}
    ],
}
_SPARK: Obj = {
    "type": "Python",
    "sparkVersion": "4.0.0",
    "image": "spark",
    "mainApplicationFile": "local:///job.py",
    "driver": {"cores": 1, "memory": "1g", "labels": {"role": "driver"}},
    "executor": {"instances": 2, "cores": 2, "memory": "4g", "nodeSelector": {"disk": "fast"}},
}


def _ray_ways(*root: str) -> tuple[Way, ...]:
    return (
        (*root, "headGroupSpec", "template", *_SELECTOR),
        (*root, "workerGroupSpecs", 0, "template", *_SELECTOR),
    )


JOB_KIND_CASES: tuple[JobKindCase, ...] = (
    JobKindCase(
        _of("jobset.x-k8s.io", "JobSet"),
        {
            "replicatedJobs": [
                {"name": "lead", "replicas": 1, "template": {"spec": {"template": template()}}},
                {"name": "work", "replicas": 2, "template": {"spec": {"parallelism": 3, "template": template()}}},
            ]
        },
        {"lead": 1, "work": 6},
        {
            "replicatedJobsStatus": [
                {"name": "lead", "ready": 1, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0},
                {"name": "work", "ready": 2, "succeeded": 0, "failed": 0, "active": 2, "suspended": 0},
            ]
        },
        {
            "replicatedJobsStatus": [
                {"name": "lead", "ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 1},
                {"name": "work", "ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 2},
            ]
        },
        {"conditions": [true("Completed")]},
        injected_at=tuple(("spec", "replicatedJobs", at, "template", "spec", "template", *_SELECTOR) for at in (0, 1)),
    ),
    _training("PyTorchJob", "pytorchReplicaSpecs"),
    _training("TFJob", "tfReplicaSpecs", "Chief"),
    _training("XGBoostJob", "xgbReplicaSpecs"),
    _training("PaddleJob", "paddleReplicaSpecs"),
    _training("JAXJob", "jaxReplicaSpecs"),
    _training("MPIJob", "mpiReplicaSpecs", "Launcher"),
    JobKindCase(
        _of("ray.io", "RayJob"),
        {"entrypoint": "python x.py", "rayClusterSpec": _RAY},
        {"head": 1, "small": 4, "submitter": 1},
        {"jobDeploymentStatus": "Running", "rayClusterStatus": {"state": "ready"}},
        {"jobDeploymentStatus": "Suspended", "rayClusterStatus": {"state": "suspended"}},
        {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED", "message": "said so"},
        injected_at=(*_ray_ways("spec", "rayClusterSpec"), ("spec", "submitterPodTemplate", *_SELECTOR)),
    ),
    JobKindCase(
        _of("ray.io", "RayCluster"),
        _RAY,
        {"head": 1, "small": 4},
        {"state": "ready"},
        {"state": "suspended"},
        None,
        injected_at=_ray_ways("spec"),
    ),
    JobKindCase(
        _of("ray.io", "RayService"),
        {"rayClusterConfig": _RAY},
        {"head": 1, "small": 4},
        {"conditions": [true("Ready")]},
        {"conditions": [{**true("Ready"), "status": "False"}]},
        None,
        injected_at=_ray_ways("spec", "rayClusterConfig"),
    ),
    JobKindCase(
        _of("sparkoperator.k8s.io", "SparkApplication"),
        _SPARK,
        {"driver": 1, "executor": 2},
        {"applicationState": {"state": "RUNNING"}, "executorState": {"a": "RUNNING", "b": "RUNNING"}},
        {"applicationState": {"state": "SUSPENDED"}, "executorState": None},
        {"applicationState": {"state": "FAILED", "errorMessage": "said so"}},
        is_success=False,
        injected_at=(("spec", "driver", "nodeSelector"), ("spec", "executor", "nodeSelector")),
    ),
)
