"""Jobs whose operators make pods in roles and groups: Kubeflow's, Ray's, leader-worker sets and sets of jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from shoal.controllers.kai.owned import Owned, at, whole
from shoal.controllers.kai.shape import MINIMUM_KEY, Look, Part, Shape, closeness, count_of, in_parts, without
from shoal.units.errors import UserError, Where

_REPLICA_TYPE = "training.kubeflow.org/replica-type"
_RAY_PART, _RAY_HEAD = "ray.io/group", "headgroup"
_LWS = "leaderworkerset.sigs.k8s.io/"
_JOB_SET = "jobset.sigs.k8s.io/"
_MOST = 100_000


# -- Kubeflow's --------------------------------------------------------------------------------------------------------


def kubeflow(field: str, *needs: str) -> Callable[[Look], Shape]:
    return lambda look: Shape(_replicas(look.owner, field, needs))


def _replicas(owner: Owned, field: str, needs: tuple[str, ...] = ()) -> int:
    """All that there are to be, unless the owner says a number."""
    said = owner.number("spec", "runPolicy", "schedulingPolicy", "minAvailable")
    if said is not None:
        return max(said, 1)
    specs = owner.mapping("spec", field)
    for name in needs:
        if name not in specs:
            raise without(owner, f"spec.{field}.{name}")
    counts = [_replicas_of(one) for one in specs.values()]
    if not sum(counts):
        raise without(owner, f"spec.{field}")
    return sum(counts)


def _replicas_of(spec: Any) -> int:
    """The operator makes one where nothing is said."""
    count = whole(at(spec, "replicas"))
    return 1 if count is None else count


def pytorch(look: Look) -> Shape:
    owner = look.owner
    minimum = _replicas(owner, "pytorchReplicaSpecs")
    specs = owner.mapping("spec", "pytorchReplicaSpecs")
    if owner.number("spec", "runPolicy", "schedulingPolicy", "minAvailable") is None:
        minimum = owner.number("spec", "elasticPolicy", "minReplicas") or minimum
    masters = _replicas_of(specs["Master"]) if "Master" in specs else 0
    counts = {"master": masters, "worker": minimum - masters if "Worker" in specs else 0}
    return in_parts(minimum, counts, look.pod.labels.get(_REPLICA_TYPE, ""))


def mpi(look: Look) -> Shape:
    minimum = _replicas(look.owner, "mpiReplicaSpecs", ("Launcher", "Worker"))
    waits = look.owner.text("spec", "launcherCreationPolicy") == "WaitForWorkersReady"
    if waits and look.pod.labels.get("training.kubeflow.org/job-role") != "launcher":
        # The launcher is made only when the workers are ready: they cannot wait for it.
        launchers = _replicas_of(look.owner.mapping("spec", "mpiReplicaSpecs").get("Launcher"))
        minimum = max(minimum - launchers, 1)
    return Shape(minimum)


# -- Ray's and sets --------------------------------------------------------------------------------------------------


def ray(look: Look) -> Shape:
    cluster = look.cluster
    if cluster is None:
        where = Where(obj=f"{look.owner.kind} {look.owner.namespace}/{look.owner.name}")
        raise UserError("it has no RayCluster yet", where=where, fix="is Ray's operator here?")
    grows = at(cluster.obj, "spec", "enableInTreeAutoscaling") is True
    counts = {_RAY_HEAD: 1}
    for index, group in enumerate(cluster.rows("spec", "workerGroupSpecs")):
        wanted = 0 if group.get("suspend") is True else whole(group.get("replicas")) or 0
        least = min(whole(group.get("minReplicas")) or 0, wanted)
        hosts = whole(group.get("numOfHosts"))
        needed = least if least or grows else wanted
        counts[str(group.get("groupName") or f"worker-group-{index}")] = needed * (1 if hosts is None else hosts)
    return in_parts(sum(counts.values()), counts, look.pod.labels.get(_RAY_PART, ""))


def leader_worker_set(look: Look) -> Shape:
    """A group for each replica: a leader and its workers."""
    owner, pod = look.owner, look.pod
    size = owner.number("spec", "leaderWorkerTemplate", "size") or 1
    is_leader = pod.labels.get(f"{_LWS}worker-index") == "0"
    if owner.text("spec", "startupPolicy") == "LeaderReady" and is_leader and not pod.text("spec", "nodeName"):
        # Its workers are made when it is ready.
        size = 1
    shape = in_parts(size, {"leader": 1, "workers": size - 1}, "leader" if is_leader else "workers")
    index = pod.labels.get(f"{_LWS}group-index", "")
    return msgspec.structs.replace(shape, suffix=f"-group-{index}" if index else "")


def job_set(look: Look) -> Shape:
    """All of its jobs together, each replica of a job a part; or, where they start one after the other, a group for
    each."""
    owner, pod = look.owner, look.pod
    name, index = pod.labels.get(f"{_JOB_SET}replicatedjob-name", ""), pod.labels.get(f"{_JOB_SET}job-index", "")
    jobs = owner.rows("spec", "replicatedJobs")
    in_order = owner.text("spec", "startupPolicy", "startupPolicyOrder") == "InOrder"
    if in_order:
        jobs = [job for job in jobs if job.get("name") == name]
    parts: list[Part] = []
    for job in jobs:
        parts += _parts_of_job(owner, job)
    minimum = sum(part.minimum for part in parts)
    if not minimum:
        raise without(owner, "spec.replicatedJobs")
    own = f"{name}-replica-{index}"
    found = own if any(part.name == own for part in parts) else ""
    return Shape(minimum, tuple(parts), found, suffix=f"-{name}" if in_order else "")


def _parts_of_job(owner: Owned, job: dict[str, Any]) -> list[Part]:
    name, replicas = str(job.get("name", "")), _replicas_of(job)
    at_once = whole(at(job, "template", "spec", "parallelism"))
    ends = whole(at(job, "template", "spec", "completions"))
    least = 1 if at_once is None else at_once
    least = least if ends is None else min(least, ends)
    notes = at(job, "template", "metadata", "annotations")
    notes = notes if isinstance(notes, dict) else {}
    if MINIMUM_KEY in notes:
        obj = f"{owner.kind} {owner.namespace}/{owner.name}, template of {name}"
        least = min(count_of(str(notes[MINIMUM_KEY]), obj, MINIMUM_KEY), least)
    if not (name and least and 0 < replicas <= _MOST):
        return []
    close = closeness(notes)
    return [Part(name), *(Part(f"{name}-replica-{index}", least, name, close) for index in range(replicas))]
