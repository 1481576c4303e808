"""Reads Ray clusters and jobs: a head, groups of workers, and the job that submits."""

from __future__ import annotations

from typing import Any

from msgspec import field

from shoal.api.decode import convert
from shoal.api.wire import ApiStruct
from shoal.store.queues.job_parts.part import Obj, ObjectLookup, PodPart, Reader, Replicas, Steps, dig
from shoal.units.errors import Where

HEAD, SUBMITTER = "head", "submitter"


class _RayHeadGroup(ApiStruct, frozen=True):
    template: dict[str, Any] = field(default_factory=dict)


class _Workers(ApiStruct, frozen=True):
    group_name: str
    replicas: Replicas = 1
    num_of_hosts: Replicas = 1
    template: dict[str, Any] = field(default_factory=dict)


def ray_cluster(root: Steps) -> Reader:
    """The parts of the cluster spec at `root`."""

    def read(job: Obj, where: Where, _look: ObjectLookup) -> tuple[PodPart, ...]:
        spec = dig(job, root) or {}
        for step in root:
            where = where.below(str(step))
        head = convert(spec.get("headGroupSpec") or {}, _RayHeadGroup, where.below("headGroupSpec"))
        groups = convert(spec.get("workerGroupSpecs") or [], tuple[_Workers, ...], where.below("workerGroupSpecs"))
        parts = [PodPart(HEAD, 1, head.template, (*root, "headGroupSpec", "template"))]
        parts += [
            PodPart(
                each.group_name.lower(),
                each.replicas * max(each.num_of_hosts, 1),
                each.template,
                (*root, "workerGroupSpecs", index, "template"),
            )
            for index, each in enumerate(groups)
        ]
        return tuple(parts)

    return read


_CLUSTER_OF_JOB = ray_cluster(("spec", "rayClusterSpec"))


def ray_job(job: Obj, where: Where, look: ObjectLookup) -> tuple[PodPart, ...]:
    parts = _CLUSTER_OF_JOB(job, where, look)
    spec = job.get("spec") or {}
    if spec.get("submissionMode", "K8sJobMode") != "K8sJobMode":
        return parts
    at: Steps = ("spec", "submitterPodTemplate")
    written = spec.get("submitterPodTemplate")
    if isinstance(written, dict):
        return (*parts, PodPart(SUBMITTER, 1, written, at))
    return (*parts, PodPart(SUBMITTER, 1, made_submitter(parts[0].template), at, is_made=True))


def uses_a_cluster_that_is_there(job: Obj) -> bool:
    """Whether the job uses an existing cluster: it creates the submitter pod only."""
    return bool(dig(job, ("spec", "clusterSelector")))


def made_submitter(head: Obj) -> Obj:
    """The template that KubeRay uses if none is given."""
    container = {
        "name": "ray-job-submitter",
        "image": dig(head, ("spec", "containers", 0, "image")) or "",
        "resources": {
            "limits": {"cpu": "1", "memory": "1Gi"},
            "requests": {"cpu": "500m", "memory": "200Mi"},
        },
    }
    return {"spec": {"containers": [container], "restartPolicy": "Never"}}
