"""Defines Volcano's queues, pod groups and pods as the rules read them: few fields of each object."""

from __future__ import annotations

from datetime import datetime

from msgspec import field

from shoal.api.groups.volcano import VolcanoPodGroupSpec
from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.api.resources import amounts
from shoal.api.wire import ApiStruct, Quantities

Key = tuple[str, str]
"""Namespace and name."""
DEFAULT_QUEUE, ROOT_QUEUE = "default", "root"
GROUP = "scheduling.k8s.io/group-name"
QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"
"""On a pod without a group: the queue of the group that is made for it."""
SCHEDULER = "volcano"
"""The `schedulerName` of pods, and the reporting component of Events about groups."""
TASK = "volcano.sh/task-spec"
CLOSED_BY_PARENT = "volcano.sh/closed-by-parent"


class VolcanoOwner(ApiStruct, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class VolcanoMeta(ApiStruct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owner_references: tuple[VolcanoOwner, ...] = ()
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None

    @property
    def key(self) -> Key:
        return (self.namespace, self.name)

    @property
    def created_s(self) -> float:
        return 0.0 if self.creation_timestamp is None else self.creation_timestamp.timestamp()

    def controller(self) -> VolcanoOwner | None:
        return next((owner for owner in self.owner_references if owner.controller), None)


class VolcanoCondition(ApiStruct, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class VolcanoPodStatus(ApiStruct, frozen=True):
    phase: str = ""
    conditions: tuple[VolcanoCondition, ...] = ()


class GroupPodSpec(ApiStruct, frozen=True):
    node_name: str = ""
    scheduler_name: str = ""
    priority_class_name: str = ""


class GroupPod(ApiStruct, frozen=True):
    """Without containers: each change of each pod of a cluster is decoded."""

    metadata: VolcanoMeta
    spec: GroupPodSpec = field(default_factory=GroupPodSpec)
    status: VolcanoPodStatus = field(default_factory=VolcanoPodStatus)

    @property
    def group(self) -> str:
        return self.metadata.annotations.get(GROUP, "")

    @property
    def role(self) -> str:
        return self.metadata.annotations.get(TASK, "")

    @property
    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def is_finished(self) -> bool:
        return self.status.phase in TERMINAL_PHASES


class GroupStatus(ApiStruct, frozen=True):
    phase: str = ""
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    conditions: tuple[VolcanoCondition, ...] = ()


class QueuedPodGroup(ApiStruct, frozen=True):
    metadata: VolcanoMeta
    spec: VolcanoPodGroupSpec = field(default_factory=VolcanoPodGroupSpec)
    status: GroupStatus = field(default_factory=GroupStatus)

    @property
    def queue(self) -> str:
        return self.spec.queue or DEFAULT_QUEUE

    @property
    def is_waiting(self) -> bool:
        """Whether the group is not admitted yet: none of its pods may start."""
        return self.status.phase in ("", "Pending")

    def min_resources(self) -> dict[str, int]:
        return amounts(self.spec.min_resources)


class Guarantee(ApiStruct, frozen=True):
    resource: Quantities = field(default_factory=dict)


class QueueSpec(ApiStruct, frozen=True):
    weight: int = 1
    capability: Quantities = field(default_factory=dict)
    deserved: Quantities = field(default_factory=dict)
    guarantee: Guarantee = field(default_factory=Guarantee)
    reclaimable: bool | None = None
    """Whether others may reclaim what the queue borrows; None: not declared."""
    priority: int = 0
    parent: str = ""
    dequeue_strategy: str = ""
    preemptable: bool | None = None
    """An extension of Shoal: false protects the pods of the queue from every eviction."""
    preemption_policy: str = ""
    """An extension of Shoal: which pods of the queue go first."""


class QueueStatus(ApiStruct, frozen=True):
    state: str = ""
    allocated: dict[str, str] = field(default_factory=dict)
    pending: int = 0
    inqueue: int = 0
    running: int = 0
    unknown: int = 0
    completed: int = 0


class Queue(ApiStruct, frozen=True):
    metadata: VolcanoMeta
    spec: QueueSpec = field(default_factory=QueueSpec)
    status: QueueStatus = field(default_factory=QueueStatus)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def parent(self) -> str:
        """The parent; each queue except the root has one."""
        return "" if self.name == ROOT_QUEUE else self.spec.parent or ROOT_QUEUE

    @property
    def is_open(self) -> bool:
        return self.status.state in ("", "Open")

    @property
    def was_closed_by_parent(self) -> bool:
        return self.metadata.annotations.get(CLOSED_BY_PARENT) == "true"

    def capability(self) -> dict[str, int]:
        return amounts(self.spec.capability)

    def deserved(self) -> dict[str, int]:
        return amounts(self.spec.deserved)

    def guarantee(self) -> dict[str, int]:
        return amounts(self.spec.guarantee.resource)
