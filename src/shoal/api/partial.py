"""Partial views of Kubernetes objects: the fields of pods, nodes and metadata that controllers read again and again.

Caches keep the bytes of an object and decode only the fields that a reader names, which is several times faster than
decoding the whole object. The fields that many readers share are declared here once, with their predicates.
`ObjectMeta` holds all the metadata that a controller needs; the smaller types here are for readers that pass over
thousands of objects at a time. A reader that needs further fields of `spec` or `status` declares those fields only.

Rejected: decoding `shoal.api.pod.Pod`. It parses the quantities of every container, which costs more than all else.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec import field

from shoal.api.conditions import Condition, find_condition, is_condition_true
from shoal.api.meta import ObjectMeta, OwnerReference
from shoal.api.pod import DEFAULT_SCHEDULER, SchedulingGate
from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.api.taints import Taint
from shoal.api.wire import ApiStruct, Timestamp

M = TypeVar("M")


class DeletionMeta(ApiStruct, frozen=True):
    """Whether the object is being deleted."""

    deletion_timestamp: str | None = None

    def is_terminating(self) -> bool:
        return self.deletion_timestamp is not None


class LabeledMeta(ApiStruct, frozen=True):
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


class OwnedMeta(ApiStruct, frozen=True):
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()

    def controller(self) -> OwnerReference | None:
        return next((owner for owner in self.owner_references if owner.controller), None)


class MetadataOf(ApiStruct, Generic[M], frozen=True):
    """An object of any kind of which only the metadata is read: `MetadataOf[LabeledMeta]`."""

    metadata: M


class ContainerTermination(ApiStruct, frozen=True):
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    started_at: Timestamp | None = None
    finished_at: Timestamp | None = None


class ContainerState(ApiStruct, frozen=True):
    terminated: ContainerTermination | None = None


class ContainerStatus(ApiStruct, frozen=True):
    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()


class PartialPodSpec(ApiStruct, frozen=True):
    node_name: str = ""
    scheduler_name: str = DEFAULT_SCHEDULER
    scheduling_gates: tuple[SchedulingGate, ...] = ()

    def is_gated_by(self, name: str) -> bool:
        return any(gate.name == name for gate in self.scheduling_gates)


class PodPhaseStatus(ApiStruct, frozen=True):
    """For readers that pass over all pods of a cluster."""

    phase: str = ""

    def is_finished(self) -> bool:
        return self.phase in TERMINAL_PHASES


class PartialPodStatus(ApiStruct, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()

    def condition(self, name: str) -> Condition | None:
        return find_condition(self.conditions, name)

    def is_true(self, name: str) -> bool:
        return is_condition_true(self.conditions, name)

    def is_finished(self) -> bool:
        return self.phase in TERMINAL_PHASES

    def is_ready(self) -> bool:
        return self.is_true("Ready")


class PartialPod(ApiStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PartialPodSpec = PartialPodSpec()
    status: PartialPodStatus = PartialPodStatus()

    @property
    def uid(self) -> str:
        return self.metadata.uid

    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    def is_finished(self) -> bool:
        return self.status.is_finished()

    def is_active(self) -> bool:
        """Whether it counts for the replicas of its owner: it has not ended and is not being deleted."""
        return not self.is_finished() and not self.is_terminating()

    def is_ready(self) -> bool:
        return self.status.is_ready()


class ConditionsStatus(ApiStruct, frozen=True):
    conditions: tuple[Condition, ...] = ()

    def is_true(self, name: str) -> bool:
        return is_condition_true(self.conditions, name)


class PartialNodeSpec(ApiStruct, frozen=True):
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class PartialNode(ApiStruct, frozen=True):
    """A node without its capacity."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PartialNodeSpec = PartialNodeSpec()
    status: ConditionsStatus = ConditionsStatus()

    def is_ready(self) -> bool:
        return self.status.is_true("Ready")
