"""The status of a Workload: admission, conditions, admission checks, requeue state and reclaimable pods."""

from __future__ import annotations

from typing import Literal

from msgspec import field

from shoal.api.conditions import Condition, find_condition, is_condition_true
from shoal.api.kueue.topology_assignments import TopologyAssignment
from shoal.api.kueue.topology_requests import Count
from shoal.api.taints import Toleration
from shoal.api.wire import ApiStruct, Quantities, Timestamp


class PodSetAssignment(ApiStruct, frozen=True):
    """`resource_usage` is of all pods together."""

    name: str = "main"
    flavors: dict[str, str] = field(default_factory=dict)
    resource_usage: Quantities = field(default_factory=dict)
    count: Count | None = None
    topology_assignment: TopologyAssignment | None = None
    delayed_topology_request: Literal["Pending", "Ready", ""] = ""


class Admission(ApiStruct, frozen=True):
    cluster_queue: str
    pod_set_assignments: tuple[PodSetAssignment, ...] = ()


class RequeueState(ApiStruct, frozen=True):
    count: Count = 0
    requeue_at: Timestamp | None = None


class PodSetUpdate(ApiStruct, frozen=True):
    """What a check adds to the pods it lets through."""

    name: str
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    node_selector: dict[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()


class AdmissionCheckState(ApiStruct, frozen=True):
    name: str
    state: Literal["Pending", "Ready", "Retry", "Rejected"]
    message: str = ""
    last_transition_time: Timestamp | None = None
    pod_set_updates: tuple[PodSetUpdate, ...] = ()
    retry_count: Count | None = None
    requeue_after_seconds: Count | None = None


class ReclaimablePod(ApiStruct, frozen=True):
    """Pods of a set that have ended and will not come again."""

    name: str
    count: Count


class PodSetRequest(ApiStruct, frozen=True):
    name: str
    resources: Quantities = field(default_factory=dict)


class EvictionCount(ApiStruct, frozen=True):
    reason: str
    underlying_cause: str = ""
    count: Count = 0


class SchedulingStats(ApiStruct, frozen=True):
    evictions: tuple[EvictionCount, ...] = ()


class UnhealthyNode(ApiStruct, frozen=True):
    name: str


class PreemptionGateState(ApiStruct, frozen=True):
    name: str
    position: Literal["Open", "Closed", ""] = ""
    last_triggered_time: Timestamp | None = None
    last_transition_time: Timestamp | None = None


class WorkloadStatus(ApiStruct, frozen=True):
    conditions: tuple[Condition, ...] = ()
    admission: Admission | None = None
    requeue_state: RequeueState | None = None
    reclaimable_pods: tuple[ReclaimablePod, ...] = ()
    admission_checks: tuple[AdmissionCheckState, ...] = ()
    resource_requests: tuple[PodSetRequest, ...] = ()
    accumulated_past_execution_time_seconds: Count = 0
    scheduling_stats: SchedulingStats | None = None
    nominated_cluster_names: tuple[str, ...] = ()
    cluster_name: str | None = None
    unhealthy_nodes: tuple[UnhealthyNode, ...] = ()
    preemption_gates: tuple[PreemptionGateState, ...] = ()

    def condition(self, name: str) -> Condition | None:
        return find_condition(self.conditions, name)

    def is_true(self, name: str) -> bool:
        return is_condition_true(self.conditions, name)
