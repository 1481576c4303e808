"""Computes the gangs of jobs with several roles: Kubeflow jobs, Ray, LeaderWorkerSet and JobSet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from shoal.controllers.kai.grouping_types import (
    MINIMUM_KEY,
    GroupingInput,
    GroupingResult,
    SubGroup,
    no_replicas,
    positive_number,
    topology_constraint,
    with_sub_groups,
)
from shoal.controllers.kai.workload_object import WorkloadObject, at, whole
from shoal.units.errors import UserError, Where

_REPLICA_TYPE = "training.kubeflow.org/replica-type"
_RAY_PART, _RAY_HEAD = "ray.io/group", "headgroup"
_LWS = "leaderworkerset.sigs.k8s.io/"
_JOB_SET = "jobset.sigs.k8s.io/"
_MAX_REPLICAS = 100_000


# -- Kubeflow ----------------------------------------------------------------------------------------------------------


def kubeflow(field: str, *needs: str) -> Callable[[GroupingInput], GroupingResult]:
    return lambda given: GroupingResult(_replicas(given.owner, field, needs))


def _replicas(owner: WorkloadObject, field: str, needs: tuple[str, ...] = ()) -> int:
    """All replicas, unless the owner sets a minimum."""
    said = owner.number("spec", "runPolicy", "schedulingPolicy", "minAvailable")
    if said is not None:
        return max(said, 1)
    specs = owner.mapping("spec", field)
    for name in needs:
        if name not in specs:
            raise no_replicas(owner, f"spec.{field}.{name}")
    counts = [_replicas_of(one) for one in specs.values()]
    if not sum(counts):
        raise no_replicas(owner, f"spec.{field}")
    return sum(counts)


def _replicas_of(spec: Any) -> int:
    """The replicas, with the operator's default of one."""
    count = whole(at(spec, "replicas"))
    return 1 if count is None else count


def pytorch(given: GroupingInput) -> GroupingResult:
    owner = given.owner
    minimum = _replicas(owner, "pytorchReplicaSpecs")
    specs = owner.mapping("spec", "pytorchReplicaSpecs")
    if owner.number("spec", "runPolicy", "schedulingPolicy", "minAvailable") is None:
        minimum = owner.number("spec", "elasticPolicy", "minReplicas") or minimum
    masters = _replicas_of(specs["Master"]) if "Master" in specs else 0
    counts = {"master": masters, "worker": minimum - masters if "Worker" in specs else 0}
    return with_sub_groups(minimum, counts, given.pod.labels.get(_REPLICA_TYPE, ""))


def mpi(given: GroupingInput) -> GroupingResult:
    minimum = _replicas(given.owner, "mpiReplicaSpecs", ("Launcher", "Worker"))
    waits = given.owner.text("spec", "launcherCreationPolicy") == "WaitForWorkersReady"
    if waits and given.pod.labels.get("training.kubeflow.org/job-role") != "launcher":
        # The launcher is created only when the workers are ready: they cannot wait for it.
        launchers = _replicas_of(given.owner.mapping("spec", "mpiReplicaSpecs").get("Launcher"))
        minimum = max(minimum - launchers, 1)
    return GroupingResult(minimum)


# -- Ray, LeaderWorkerSet and JobSet -----------------------------------------------------------------------------------


def ray(given: GroupingInput) -> GroupingResult:
    cluster = given.cluster
    if cluster is None:
        where = Where(obj=f"{given.owner.kind} {given.owner.namespace}/{given.owner.name}")
        raise UserError("RayCluster not found", where=where, fix="install the Ray operator")
    grows = at(cluster.obj, "spec", "enableInTreeAutoscaling") is True
    counts = {_RAY_HEAD: 1}
    for index, group in enumerate(cluster.rows("spec", "workerGroupSpecs")):
        desired = 0 if group.get("suspend") is True else whole(group.get("replicas")) or 0
        minimum = min(whole(group.get("minReplicas")) or 0, desired)
        hosts = whole(group.get("numOfHosts"))
        needed = minimum if minimum or grows else desired
        counts[str(group.get("groupName") or f"worker-group-{index}")] = needed * (1 if hosts is None else hosts)
    return with_sub_groups(sum(counts.values()), counts, given.pod.labels.get(_RAY_PART, ""))


def leader_worker_set(given: GroupingInput) -> GroupingResult:
    """A group for each replica: a leader and its workers."""
    owner, pod = given.owner, given.pod
    size = owner.number("spec", "leaderWorkerTemplate", "size") or 1
    is_leader = pod.labels.get(f"{_LWS}worker-index") == "0"
    if owner.text("spec", "startupPolicy") == "LeaderReady" and is_leader and not pod.text("spec", "nodeName"):
        # The workers are created when the leader is ready.
        size = 1
    shape = with_sub_groups(size, {"leader": 1, "workers": size - 1}, "leader" if is_leader else "workers")
    index = pod.labels.get(f"{_LWS}group-index", "")
    return msgspec.structs.replace(shape, suffix=f"-group-{index}" if index else "")


def job_set(given: GroupingInput) -> GroupingResult:
    """One group of all jobs with a subgroup per job replica; one group per job if the jobs start in order."""
    owner, pod = given.owner, given.pod
    name, index = pod.labels.get(f"{_JOB_SET}replicatedjob-name", ""), pod.labels.get(f"{_JOB_SET}job-index", "")
    jobs = owner.rows("spec", "replicatedJobs")
    in_order = owner.text("spec", "startupPolicy", "startupPolicyOrder") == "InOrder"
    if in_order:
        jobs = [job for job in jobs if job.get("name") == name]
    sub_groups: list[SubGroup] = []
    for job in jobs:
        sub_groups += _sub_groups_of_job(owner, job)
    minimum = sum(sub_group.minimum for sub_group in sub_groups)
    if not minimum:
        raise no_replicas(owner, "spec.replicatedJobs")
    own = f"{name}-replica-{index}"
    found = own if any(sub_group.name == own for sub_group in sub_groups) else ""
    return GroupingResult(minimum, tuple(sub_groups), found, suffix=f"-{name}" if in_order else "")


def _sub_groups_of_job(owner: WorkloadObject, job: dict[str, Any]) -> list[SubGroup]:
    name, replicas = str(job.get("name", "")), _replicas_of(job)
    at_once = whole(at(job, "template", "spec", "parallelism"))
    ends = whole(at(job, "template", "spec", "completions"))
    minimum = 1 if at_once is None else at_once
    minimum = minimum if ends is None else min(minimum, ends)
    annotations = at(job, "template", "metadata", "annotations")
    annotations = annotations if isinstance(annotations, dict) else {}
    if MINIMUM_KEY in annotations:
        obj = f"{owner.kind} {owner.namespace}/{owner.name}, template of {name}"
        minimum = min(positive_number(str(annotations[MINIMUM_KEY]), obj, MINIMUM_KEY), minimum)
    if not (name and minimum and 0 < replicas <= _MAX_REPLICAS):
        return []
    constraint = topology_constraint(annotations)
    return [
        SubGroup(name),
        *(SubGroup(f"{name}-replica-{index}", minimum, name, constraint) for index in range(replicas)),
    ]
