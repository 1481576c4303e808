"""Kueue's Workload: one or more sets of pods that are admitted together or not at all.

Not the Workload of scheduling.k8s.io, which lies in `groups/kubernetes.py`: a type of its own, because one cluster may
have both under one name.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from shoal.api.kueue.topology_requests import Count, PodSetTopologyRequest
from shoal.api.kueue.workload_status import WorkloadStatus
from shoal.api.meta import ObjectMeta
from shoal.api.pod import PodTemplate, Priority
from shoal.api.wire import ApiStruct

WORKLOAD_PRIORITY_CLASS = "WorkloadPriorityClass"


class PodSet(ApiStruct, frozen=True):
    name: str = "main"
    template: PodTemplate = field(default_factory=PodTemplate)
    count: Count = 1
    min_count: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None
    topology_request: PodSetTopologyRequest | None = None


class PriorityClassRef(ApiStruct, frozen=True):
    group: Literal["kueue.x-k8s.io", "scheduling.k8s.io"]
    kind: Literal["WorkloadPriorityClass", "PriorityClass"]
    name: str


class PreemptionGate(ApiStruct, frozen=True):
    """While it is closed the workload may not preempt."""

    name: str


class WorkloadSpec(ApiStruct, frozen=True):
    pod_sets: tuple[PodSet, ...] = ()
    queue_name: str = ""
    priority_class_ref: PriorityClassRef | None = None
    priority: Priority | None = None
    active: bool = True
    maximum_execution_time_seconds: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None
    preemption_gates: tuple[PreemptionGate, ...] = ()


class Workload(ApiStruct, frozen=True):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: WorkloadSpec = field(default_factory=WorkloadSpec)
    status: WorkloadStatus = field(default_factory=WorkloadStatus)
