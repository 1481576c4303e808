"""Facts from the JSON of objects: only the fields that the dashboard shows are decoded.

The contents of objects are not trusted. This module returns no text with more than one line or with control
sequences, and no number that would make a frame large.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from shoal.api.pod import WorkloadReference
from shoal.autoscale.node_claims.claim import DISRUPTED_TAINT
from shoal.devices.health_reports import CONDITION
from shoal.engine.from_api.membership import (
    IN_ANNOTATIONS,
    IN_LABELS,
    KUEUE_TOTAL_ANNOTATION,
    LIGHT_MINIMUM_LABEL,
    ONE_BY_ONE,
    workload_gang,
)
from shoal.units.errors import one_line
from shoal.views.dashboard.facts import DashboardNode, DashboardPod, EventFacts, NodeDetail, Tile
from shoal.views.dashboard.slots import MOST_GPUS, slots
from shoal.views.dashboard.without_nulls import decoded
from shoal.views.job_progress import REPORTED

GPU_FAULTS, _LOAD = "shoal.dev/gpu-faults", "shoal.dev/gpu-util"
_TYPE, _PRODUCT, _COUNT = "node.kubernetes.io/instance-type", "nvidia.com/gpu.product", "nvidia.com/gpu.count"
_GPU, _PREFIXES = "nvidia.com/gpu", ("nvidia.com/gpu.", "nvidia.com/gpu-", "nvidia.com/mig-")
_QUEUE_LABELS = ("kueue.x-k8s.io/queue-name", "kai.scheduler/queue", "volcano.sh/queue-name")
_QUEUE_ANNOTATIONS = ("scheduling.volcano.sh/queue-name",)
_WELL = frozenset({"Ready", CONDITION})
"""Conditions that are True on a node without a fault."""
_LONGEST = 300
_MOST_DEVICES = 1_024
"""What is kept of the devices of one pod."""
_MOST_ASKED, _MOST_LABELS = 999_999, 64
_AVAILABLE = re.compile(r"^0/[0-9]+ nodes are available: ")
_SHOWN_LABELS = re.compile(r"nvidia\.com/|topology|instance-type|gpu|capacity|nodepool|nodegroup|kueue|shoal", re.ASCII)


class Camel(msgspec.Struct, rename="camel"):
    pass


class OwnerName(Camel):
    kind: str = ""
    name: str = ""
    controller: bool = False


class Meta(Camel):
    name: str = ""
    namespace: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    owner_references: Sequence[OwnerName] = ()


class Condition(Camel):
    type: str
    status: str
    message: str = ""
    reason: str = ""
    last_transition_time: str = ""


class _Taint(Camel):
    key: str = ""
    value: str = ""
    effect: str = ""


class _NodeSpec(Camel):
    unschedulable: bool = False
    taints: Sequence[_Taint] = ()


class _NodeStatus(Camel):
    conditions: Sequence[Condition] = ()
    capacity: Mapping[str, str] = {}
    allocatable: Mapping[str, str] = {}


class _NodeJson(Camel):
    metadata: Meta
    spec: _NodeSpec = msgspec.field(default_factory=_NodeSpec)
    status: _NodeStatus = msgspec.field(default_factory=_NodeStatus)


class _Resources(Camel):
    limits: Mapping[str, Any] = {}
    requests: Mapping[str, Any] = {}


class ContainerJson(Camel):
    resources: _Resources = msgspec.field(default_factory=_Resources)


class _Gate(Camel):
    name: str = ""


class _SchedulingGroup(Camel):
    pod_group_name: str = ""


class _PodSpec(Camel):
    node_name: str = ""
    containers: Sequence[ContainerJson] = ()
    scheduler_name: str = "default-scheduler"
    scheduling_gates: Sequence[_Gate] = ()
    scheduling_group: _SchedulingGroup | None = None
    workload_ref: WorkloadReference | None = None


class _Device(Camel):
    resource_id: str = msgspec.field(name="resourceID", default="")


class _Allocated(Camel):
    resources: Sequence[_Device] = ()


class _ContainerStatus(Camel):
    allocated_resources_status: Sequence[_Allocated] = ()


class _PodStatus(Camel):
    phase: str = "Pending"
    message: str = ""
    start_time: str | None = None
    conditions: Sequence[Condition] = ()
    container_statuses: Sequence[_ContainerStatus] = ()


class _PodJson(Camel):
    metadata: Meta
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)


class _About(Camel):
    kind: str = ""
    namespace: str = ""
    name: str = ""


class _Series(Camel):
    count: int = 1
    last_observed_time: str | None = None


class _Event(Camel):
    metadata: Meta
    involved_object: _About = msgspec.field(default_factory=_About)
    reason: str = ""
    message: str = ""
    type: str = ""
    last_timestamp: str | None = None
    event_time: str | None = None
    count: int | None = 1
    series: _Series | None = None
    """Repetitions of an Event of events.k8s.io, which has no count."""


_node, _pod, _event = msgspec.json.Decoder(_NodeJson), msgspec.json.Decoder(_PodJson), msgspec.json.Decoder(_Event)


def node_facts(data: bytes) -> DashboardNode:
    node = decoded(_node, data)
    labels, annotations = node.metadata.labels, node.metadata.annotations
    counted = labels.get(_COUNT, "")
    whole = node.status.capacity.get(_GPU) or node.status.allocatable.get(_GPU, "0")
    ready = next((one.status for one in node.status.conditions if one.type == "Ready"), "Unknown")
    advertised = {**node.status.allocatable, **node.status.capacity}
    # GPUs that are given to resource claims are no resource of the node: no request for nvidia.com/gpu gets one.
    has_gpus = not advertised or any(map(_is_gpu, advertised))
    found = slots(annotations, labels) if has_gpus else ()
    gpus = max((slot.gpu + 1 for slot in found), default=0)
    gpus = max(gpus, _number(counted if counted.isdecimal() else whole, MOST_GPUS)) if has_gpus else 0
    return DashboardNode(
        name=shown(node.metadata.name),
        kind=shown(labels.get(_TYPE) or labels.get(_PRODUCT) or "nodes"),
        gpus=gpus,
        slots=found,
        is_ready=ready == "True",
        is_cordoned=node.spec.unschedulable,
        is_leaving=any(one.key == DISRUPTED_TAINT for one in node.spec.taints),
        broken=_broken(annotations.get(GPU_FAULTS, "")) or _withdrawn(node.status, gpus),
    )


def node_detail(data: bytes, tile: Tile, pods: Sequence[DashboardPod]) -> NodeDetail:
    """What the page of one node shows beside its tile. Decoded on demand, because labels are long."""
    node = decoded(_node, data)
    labels = sorted(node.metadata.labels.items())
    conditions = [_condition(one) for one in node.status.conditions if (one.status == "True") != (one.type in _WELL)]
    taints = [f"taint {one.key}{'=' if one.value else ''}{one.value}:{one.effect}" for one in node.spec.taints]
    faults = _json(node.metadata.annotations.get(GPU_FAULTS, ""))
    return NodeDetail(
        tile,
        pods,
        [(shown(key), shown(value)) for key, value in labels if _SHOWN_LABELS.search(key)][:_MOST_LABELS],
        [shown(text) for text in (*conditions, *taints)],
        {int(index): shown(f"XID {code}") for index, code in faults.items() if index.isdecimal() and len(index) < 4},
    )


def pod_facts(data: bytes) -> DashboardPod:
    pod = decoded(_pod, data)
    meta, spec, status = pod.metadata, pod.spec, pod.status
    devices = [
        device.resource_id
        for container in status.container_statuses
        for allocated in container.allocated_resources_status
        for device in allocated.resources
    ]
    load = meta.annotations.get(_LOAD, "")
    gang = _gang(pod)
    return DashboardPod(
        namespace=shown(meta.namespace),
        name=shown(meta.name),
        phase=shown(status.phase),
        node=shown(spec.node_name),
        gpus=sum(_gpus(container.resources) for container in spec.containers),
        devices=tuple(devices[:_MOST_DEVICES]),
        why=shown(_why(pod)),
        created=shown(meta.creation_timestamp),
        is_ending=meta.deletion_timestamp is not None,
        gang=shown(f"{meta.namespace}/{gang}") if gang else "",
        job="" if gang else _job(meta),
        gang_needs=max(
            _number(meta.annotations.get(KUEUE_TOTAL_ANNOTATION, "0"), _MOST_ASKED),
            _number(meta.labels.get(LIGHT_MINIMUM_LABEL, "0"), _MOST_ASKED),
        ),
        queue=shown(_queue(meta)),
        is_gated=bool(spec.scheduling_gates) and not spec.node_name,
        load=_number(load, 100) if load.isdecimal() else None,
        started=shown(status.start_time or ""),
        reported=tuple((key, shown(meta.annotations[key])) for key in REPORTED if key in meta.annotations),
    )


def event_facts(data: bytes) -> EventFacts:
    event = decoded(_event, data)
    about, series = event.involved_object, event.series or _Series()
    return EventFacts(
        name=shown(f"{event.metadata.namespace}/{event.metadata.name}"),
        namespace=shown(about.namespace),
        at=shown(
            series.last_observed_time or event.last_timestamp or event.event_time or event.metadata.creation_timestamp
        ),
        about=shown(f"{about.kind.lower()}/{about.name}"),
        reason=shown(event.reason),
        message=shown(event.message),
        is_warning=event.type == "Warning",
        count=max(event.count or 1, series.count),
    )


def shown(text: str) -> str:
    """As one printable line of limited length."""
    return one_line(text[:_LONGEST])


def _gang(pod: _PodJson) -> str:
    meta, spec = pod.metadata, pod.spec
    if spec.scheduling_group is not None:
        return spec.scheduling_group.pod_group_name
    if spec.workload_ref is not None:
        return workload_gang(spec.workload_ref)
    if any(meta.annotations.get(key) == "true" for key in ONE_BY_ONE):
        return ""
    for names, there in ((IN_ANNOTATIONS, meta.annotations), (IN_LABELS, meta.labels)):
        for key in sorted(names.intersection(there)):
            if there[key]:
                return there[key]
    return ""


def _job(meta: Meta) -> str:
    owner = next((one for one in meta.owner_references if one.controller), None)
    return shown(f"{meta.namespace}/{owner.name}") if owner is not None and owner.kind == "Job" else ""


def _queue(meta: Meta) -> str:
    for names, there in ((_QUEUE_LABELS, meta.labels), (_QUEUE_ANNOTATIONS, meta.annotations)):
        for key in names:
            if there.get(key):
                return there[key]
    return ""


def _condition(condition: Condition) -> str:
    return f"{condition.type}={condition.status}" + (f": {condition.message}" if condition.message else "")


def _why(pod: _PodJson) -> str:
    status = pod.status
    if status.message:
        return status.message
    refused = next((one for one in status.conditions if one.type == "PodScheduled" and one.status == "False"), None)
    gates = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
    if gates:
        return f"waits until the scheduling gate is removed: {gates}"
    if refused is not None:
        return _essence(refused.message or refused.reason)
    if pod.spec.node_name or status.phase != "Pending":
        return ""
    return f"the scheduler {pod.spec.scheduler_name} has not tried it yet"


def _essence(message: str) -> str:
    """Of a scheduler's message what differs from pod to pod, so that it is seen in a narrow line."""
    counts = _AVAILABLE.sub("", message, count=1)
    return counts.partition(". no new claims")[0].partition(". preemption:")[0]


def _gpus(resources: _Resources) -> float:
    asked = {**resources.requests, **resources.limits}
    return sum(_number(str(value), _MOST_ASKED) for name, value in asked.items() if _is_gpu(name))


def _is_gpu(resource: str) -> bool:
    return resource == _GPU or resource.startswith(_PREFIXES)


def _number(text: str, most: int) -> int:
    """`most` at most; 0 where it is none. A text of any length, so it is not converted first."""
    if not text.isdecimal():
        return 0
    return min(most, int(text)) if len(text) < _LONGEST else most


def _broken(text: str) -> frozenset[int]:
    try:
        named = {int(index) for index in _json(text)}
    except ValueError:
        return frozenset()
    return frozenset(named.intersection(range(MOST_GPUS)))


def _json(text: str) -> Mapping[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any]) if text else {}
    except (msgspec.DecodeError, ValueError, RecursionError):
        return {}


def _withdrawn(status: _NodeStatus, gpus: int) -> frozenset[int]:
    """A device plugin withdraws unhealthy GPUs: allocatable is below capacity. It does not say which they are."""
    if _GPU not in status.allocatable or _GPU not in status.capacity:
        return frozenset()
    there, usable = (_number(amounts[_GPU], MOST_GPUS) for amounts in (status.capacity, status.allocatable))
    return frozenset(range(max(0, gpus - max(0, there - usable)), gpus)) if there == gpus else frozenset()
