"""Makers of pods, read for the pod they would make: DaemonSets weigh on every node, Jobs bring the work, and
Deployments, ReplicaSets and StatefulSets own most other pods.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from shoal.api.meta import ObjectMeta
from shoal.api.pod import PodTemplate
from shoal.api.selectors import LabelSelector
from shoal.api.taints import Toleration
from shoal.api.wire import ApiStruct
from shoal.units.numbers import whole_of

# What the DaemonSet controller adds: its pods stay when a node has trouble and come to cordoned nodes.
DAEMON_TOLERATIONS: tuple[Toleration, ...] = (
    Toleration("node.kubernetes.io/not-ready", "Exists", effect="NoExecute"),
    Toleration("node.kubernetes.io/unreachable", "Exists", effect="NoExecute"),
    Toleration("node.kubernetes.io/disk-pressure", "Exists", effect="NoSchedule"),
    Toleration("node.kubernetes.io/memory-pressure", "Exists", effect="NoSchedule"),
    Toleration("node.kubernetes.io/pid-pressure", "Exists", effect="NoSchedule"),
    Toleration("node.kubernetes.io/unschedulable", "Exists", effect="NoSchedule"),
)
HOST_NETWORK_TOLERATION = Toleration("node.kubernetes.io/network-unavailable", "Exists", effect="NoSchedule")


class DaemonSetUpdateStrategy(ApiStruct, frozen=True):
    type: str = ""


class DaemonSetSpec(ApiStruct, frozen=True):
    template: PodTemplate = field(default_factory=PodTemplate)
    selector: LabelSelector | None = None
    update_strategy: DaemonSetUpdateStrategy = field(default_factory=DaemonSetUpdateStrategy)


class DaemonSet(ApiStruct, frozen=True):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: DaemonSetSpec = field(default_factory=DaemonSetSpec)

    def tolerations(self) -> tuple[Toleration, ...]:
        """The pod's own and those every daemon gets."""
        spec = self.spec.template.spec
        extra = (HOST_NETWORK_TOLERATION,) if spec.host_network else ()
        return (*spec.tolerations, *DAEMON_TOLERATIONS, *extra)


class JobSpec(ApiStruct, frozen=True):
    template: PodTemplate = field(default_factory=PodTemplate)
    parallelism: Annotated[int, Meta(ge=0)] = 1
    completions: Annotated[int, Meta(ge=0)] | None = None
    completion_mode: str = "NonIndexed"
    suspend: bool = False
    active_deadline_seconds: int | None = None


class JobCondition(ApiStruct, frozen=True):
    type: str
    status: str = "Unknown"


class JobStatus(ApiStruct, frozen=True):
    conditions: tuple[JobCondition, ...] = ()
    succeeded: int = 0
    failed_indexes: str = ""
    """`1,3-5`: completions that are not retried."""

    def failed_index_count(self) -> int:
        count = 0
        for piece in self.failed_indexes.split(",") if self.failed_indexes else ():
            first, _, last = piece.partition("-")
            low, high = whole_of(first), whole_of(last or first)
            if low is not None and high is not None:
                count += high - low + 1
        return max(count, 0)


class Job(ApiStruct, frozen=True):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: JobSpec = field(default_factory=JobSpec)
    status: JobStatus = field(default_factory=JobStatus)

    def is_finished(self) -> bool:
        """It makes no pods any more."""
        return any(each.type in {"Complete", "Failed"} and each.status == "True" for each in self.status.conditions)

    def pods_at_once(self) -> int:
        """How many pods run side by side while nothing has finished yet; none while suspended."""
        if self.spec.suspend:
            return 0
        wanted = self.spec.completions
        return self.spec.parallelism if wanted is None else min(self.spec.parallelism, wanted)


class ReplicasSpec(ApiStruct, frozen=True):
    """What Deployments, ReplicaSets and StatefulSets have in common, and all that is read of them."""

    selector: LabelSelector
    template: PodTemplate = field(default_factory=PodTemplate)
    replicas: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 1
    pod_management_policy: str = ""
    """Of StatefulSets alone: whether their pods come one after the other."""


class DeploymentStatus(ApiStruct, frozen=True):
    ready_replicas: int = 0


class Deployment(ApiStruct, frozen=True):
    spec: ReplicasSpec
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: DeploymentStatus = field(default_factory=DeploymentStatus)


class ReplicaSet(ApiStruct, frozen=True):
    spec: ReplicasSpec
    metadata: ObjectMeta = field(default_factory=ObjectMeta)


class StatefulSet(ApiStruct, frozen=True):
    spec: ReplicasSpec
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
