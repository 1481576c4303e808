"""Defines the view of a Volcano job that its controller reads, with the defaults of Volcano's admission webhook."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import field

from shoal.api.wire import ApiStruct
from shoal.client.ecosystem_kinds import VOLCANO_JOBS
from shoal.client.item import Key, Obj
from shoal.client.owner_reference import controlled_by
from shoal.controllers.volcano.views import ViewReader
from shoal.engine.queues.disciplines.volcano.objects import DEFAULT_QUEUE, SCHEDULER, VolcanoMeta

Phases = dict[str, int]
PENDING, RUNNING, RESTARTING = "Pending", "Running", "Restarting"
COMPLETING, COMPLETED, FAILED = "Completing", "Completed", "Failed"
ABORTING, ABORTED = "Aborting", "Aborted"
TERMINATING, TERMINATED = "Terminating", "Terminated"
FINISHED = frozenset({COMPLETED, FAILED, TERMINATED})
_DEFAULT_MAX_RETRY = 3


class LifecyclePolicy(ApiStruct, frozen=True):
    action: str = ""
    event: str = ""
    events: tuple[str, ...] = ()
    exit_code: int | None = None
    timeout: str = ""

    def names(self) -> frozenset[str]:
        return frozenset((*self.events, self.event)) - {""}


class DependsOn(ApiStruct, frozen=True):
    name: tuple[str, ...] = ()
    iteration: str = ""


class Task(ApiStruct, frozen=True):
    name: str = ""
    replicas: int = 1
    min_available: int | None = None
    template: dict[str, Any] = field(default_factory=dict)
    policies: tuple[LifecyclePolicy, ...] = ()
    topology_policy: str = ""
    max_retry: int = 0
    depends_on: DependsOn | None = None

    @property
    def minimum(self) -> int:
        return self.replicas if self.min_available is None else self.min_available

    @property
    def max_restarts(self) -> int:
        return self.max_retry or _DEFAULT_MAX_RETRY

    @property
    def pod_spec(self) -> Obj:
        found: Obj = self.template.get("spec") or {}
        return found


class VolcanoJobSpec(ApiStruct, frozen=True):
    scheduler_name: str = SCHEDULER
    min_available: int | None = None
    volumes: tuple[dict[str, Any], ...] = ()
    tasks: tuple[Task, ...] = ()
    policies: tuple[LifecyclePolicy, ...] = ()
    plugins: dict[str, tuple[str, ...]] = field(default_factory=dict)
    queue: str = DEFAULT_QUEUE
    max_retry: int = _DEFAULT_MAX_RETRY
    min_success: int | None = None
    ttl_seconds_after_finished: int | None = None
    priority_class_name: str = ""
    network_topology: dict[str, Any] | None = None


class JobState(ApiStruct, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class TaskCount(ApiStruct, frozen=True):
    phase: Phases = field(default_factory=dict)


class VolcanoJobStatus(ApiStruct, frozen=True):
    state: JobState = JobState()
    min_available: int = 0
    task_status_count: dict[str, TaskCount] = field(default_factory=dict)
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    unknown: int = 0
    version: int = 0
    retry_count: int = 0
    running_duration: str = ""
    controlled_resources: dict[str, str] = field(default_factory=dict)
    conditions: tuple[dict[str, Any], ...] = ()


class VolcanoJob(ApiStruct, frozen=True):
    metadata: VolcanoMeta
    spec: VolcanoJobSpec = field(default_factory=VolcanoJobSpec)
    status: VolcanoJobStatus = field(default_factory=VolcanoJobStatus)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def key(self) -> Key:
        return self.metadata.key

    @property
    def phase(self) -> str:
        return self.status.state.phase

    @property
    def queue(self) -> str:
        return self.spec.queue or DEFAULT_QUEUE

    @property
    def group_name(self) -> str:
        """Contains the uid, so that a job that is created again under the same name gets its own group."""
        return f"{self.name}-{self.metadata.uid}"

    def tasks(self) -> tuple[Task, ...]:
        """The tasks, with the names that Volcano gives to tasks without a name."""
        return tuple(
            task if task.name else msgspec.structs.replace(task, name=f"default{at}")
            for at, task in enumerate(self.spec.tasks)
        )

    @property
    def replicas(self) -> int:
        return sum(task.replicas for task in self.spec.tasks)

    @property
    def minimum(self) -> int:
        """The number of pods that must be able to start together."""
        given = self.spec.min_available
        return given or sum(task.minimum for task in self.spec.tasks)

    def pod_name(self, task: Task, index: int) -> str:
        return f"{self.name}-{task.name}-{index}"

    def owner_reference(self) -> Obj:
        return controlled_by(VOLCANO_JOBS, self.name, self.metadata.uid)


job_of = ViewReader(VolcanoJob)
