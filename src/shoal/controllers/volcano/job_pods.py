"""Reads the pods of jobs, and builds new ones from the template of a task."""

from __future__ import annotations

from copy import deepcopy

from msgspec import field

from shoal.api.partial import ContainerStatus
from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.api.wire import ApiStruct
from shoal.client.item import Obj
from shoal.controllers.volcano.job import Task, VolcanoJob
from shoal.controllers.volcano.names import (
    INHERITED_ANNOTATIONS,
    JOB_NAME,
    JOB_NAMESPACE,
    JOB_QUEUE,
    JOB_RETRIES,
    JOB_VERSION,
    NUMA_POLICY,
    OUT_OF_SYNC,
    TASK_INDEX,
    TEMPLATE,
)
from shoal.controllers.volcano.views import ViewReader
from shoal.engine.queues.disciplines.volcano.objects import GROUP, TASK, VolcanoCondition, VolcanoMeta
from shoal.units.numbers import whole_of


class _JobPodStatus(ApiStruct, frozen=True):
    phase: str = ""
    conditions: tuple[VolcanoCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class JobPod(ApiStruct, frozen=True):
    metadata: VolcanoMeta
    status: _JobPodStatus = field(default_factory=_JobPodStatus)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def task(self) -> str:
        return self.metadata.annotations.get(TASK, "")

    @property
    def version(self) -> int:
        return whole_of(self.metadata.annotations.get(JOB_VERSION, "")) or 0

    @property
    def index(self) -> int:
        end = self.name.rsplit("-", 1)[-1]
        index = whole_of(end)
        return -1 if index is None else index

    @property
    def phase(self) -> str:
        return self.status.phase

    @property
    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def is_out_of_sync(self) -> bool:
        """Whether its job deletes it or is about to."""
        return OUT_OF_SYNC in self.metadata.annotations

    @property
    def is_finished(self) -> bool:
        return self.phase in TERMINAL_PHASES

    @property
    def is_ready(self) -> bool:
        if self.phase == "Succeeded":
            return True
        is_ready = any(one.type == "Ready" and one.status == "True" for one in self.status.conditions)
        return self.phase == "Running" and is_ready and not self.is_terminating

    @property
    def exit_code(self) -> int:
        """The exit code of the first container; 0 if it has not terminated."""
        ended = self.status.container_statuses[0].state.terminated if self.status.container_statuses else None
        return 0 if ended is None else ended.exit_code

    @property
    def ended_s(self) -> float:
        states = [one.state.terminated for one in self.status.container_statuses]
        times = [one.finished_at.timestamp() for one in states if one is not None and one.finished_at is not None]
        return max(times, default=self.metadata.created_s)

    @property
    def restarts(self) -> int:
        return sum(one.restart_count for one in (*self.status.container_statuses, *self.status.init_container_statuses))


def new_pod(job: VolcanoJob, task: Task, index: int) -> Obj:
    """Builds the pod; the plugins are applied afterwards."""
    template_meta = task.template.get("metadata") or {}
    known = {TASK: task.name, TASK_INDEX: str(index), JOB_NAME: job.name, JOB_QUEUE: job.queue}
    inherited = {key: value for key, value in job.metadata.annotations.items() if key in INHERITED_ANNOTATIONS}
    annotations = {
        **(template_meta.get("annotations") or {}),
        **known,
        GROUP: job.group_name,
        JOB_VERSION: str(job.status.version),
        JOB_RETRIES: str(job.status.retry_count),
        TEMPLATE: f"{job.name}-{task.name}",
        **inherited,
    }
    if task.topology_policy:
        annotations[NUMA_POLICY] = task.topology_policy
    inherited_labels = {key: value for key, value in job.metadata.labels.items() if key == INHERITED_ANNOTATIONS[0]}
    metadata: Obj = {
        "namespace": job.metadata.namespace,
        "name": job.pod_name(task, index),
        "ownerReferences": [job.owner_reference()],
        "labels": {
            **(template_meta.get("labels") or {}),
            **known,
            JOB_NAMESPACE: job.metadata.namespace,
            **inherited_labels,
        },
        "annotations": annotations,
    }
    if template_meta.get("finalizers"):
        metadata["finalizers"] = list(template_meta["finalizers"])
    spec = deepcopy(task.pod_spec)
    spec["schedulerName"] = spec.get("schedulerName") or job.spec.scheduler_name
    _mount(job, spec)
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec}


def claim_name(job: VolcanoJob, at: int) -> str:
    """The name of the claim of a volume; a generated name uses the index, so that the claim is created once."""
    named: str = job.spec.volumes[at].get("volumeClaimName") or ""
    return named or f"{job.name}-volume-{at}"


def _mount(job: VolcanoJob, spec: Obj) -> None:
    names: dict[str, str] = {}
    for at, volume in enumerate(job.spec.volumes):
        claim = claim_name(job, at)
        if claim not in names:
            names[claim] = f"{job.name}-{at}"
            source = {"persistentVolumeClaim": {"claimName": claim}}
            spec.setdefault("volumes", []).append({"name": names[claim], **source})
        for container in spec.get("containers") or ():
            mount = {"name": names[claim], "mountPath": volume["mountPath"]}
            container.setdefault("volumeMounts", []).append(mount)


pod_of_job = ViewReader(JobPod)
