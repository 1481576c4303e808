"""Facts from the JSON of objects: only the fields that the dashboard shows are decoded.

The contents of objects are not trusted. This module returns no text with more than one line or with control
sequences, and no number that would make a frame large.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from shoal.units.errors import one_line
from shoal.views.dashboard.facts import EventFacts, NodeFacts, PodFacts
from shoal.views.dashboard.slots import MOST_GPUS, slots

GPU_FAULTS = "shoal.dev/gpu-faults"
_TYPE, _PRODUCT, _COUNT = "node.kubernetes.io/instance-type", "nvidia.com/gpu.product", "nvidia.com/gpu.count"
_PREFIXES = ("nvidia.com/gpu", "nvidia.com/mig-")
_LONGEST = 300
_MOST_DEVICES = 1_024
"""What is kept of the devices of one pod."""
_MOST_ASKED = 999_999
_AVAILABLE = re.compile(r"^0/[0-9]+ nodes are available: ")


class _Camel(msgspec.Struct, rename="camel"):
    pass


class _Meta(_Camel):
    name: str = ""
    namespace: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


class _Condition(_Camel):
    type: str
    status: str
    message: str = ""
    reason: str = ""


class _NodeSpec(_Camel):
    unschedulable: bool = False


class _NodeStatus(_Camel):
    conditions: Sequence[_Condition] = ()
    capacity: Mapping[str, str] = {}


class _Node(_Camel):
    metadata: _Meta
    spec: _NodeSpec = msgspec.field(default_factory=_NodeSpec)
    status: _NodeStatus = msgspec.field(default_factory=_NodeStatus)


class _Resources(_Camel):
    limits: Mapping[str, Any] = {}
    requests: Mapping[str, Any] = {}


class _Container(_Camel):
    resources: _Resources = msgspec.field(default_factory=_Resources)


class _PodSpec(_Camel):
    node_name: str = ""
    containers: Sequence[_Container] = ()


class _Device(_Camel):
    resource_id: str = msgspec.field(name="resourceID", default="")


class _Allocated(_Camel):
    resources: Sequence[_Device] = ()


class _ContainerStatus(_Camel):
    allocated_resources_status: Sequence[_Allocated] = ()


class _PodStatus(_Camel):
    phase: str = "Pending"
    message: str = ""
    conditions: Sequence[_Condition] = ()
    container_statuses: Sequence[_ContainerStatus] = ()


class _Pod(_Camel):
    metadata: _Meta
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)


class _About(_Camel):
    kind: str = ""
    namespace: str = ""
    name: str = ""


class _Event(_Camel):
    metadata: _Meta
    involved_object: _About = msgspec.field(default_factory=_About)
    reason: str = ""
    message: str = ""
    type: str = ""
    last_timestamp: str | None = None
    event_time: str | None = None
    count: int | None = 1


_node, _pod, _event = msgspec.json.Decoder(_Node), msgspec.json.Decoder(_Pod), msgspec.json.Decoder(_Event)


def node_facts(data: bytes) -> NodeFacts:
    node = _node.decode(data)
    labels, annotations = node.metadata.labels, node.metadata.annotations
    counted = labels.get(_COUNT, "")
    whole = node.status.capacity.get("nvidia.com/gpu", "0")
    ready = next((one.status for one in node.status.conditions if one.type == "Ready"), "Unknown")
    found = slots(annotations, labels)
    gpus = max((slot.gpu + 1 for slot in found), default=0)
    return NodeFacts(
        name=_shown(node.metadata.name),
        kind=_shown(labels.get(_TYPE) or labels.get(_PRODUCT) or "nodes"),
        gpus=max(gpus, _number(counted if counted.isdecimal() else whole, MOST_GPUS)),
        slots=found,
        is_ready=ready == "True",
        is_cordoned=node.spec.unschedulable,
        broken=_broken(annotations.get(GPU_FAULTS, "")),
    )


def pod_facts(data: bytes) -> PodFacts:
    pod = _pod.decode(data)
    status = pod.status
    devices = [
        device.resource_id
        for container in status.container_statuses
        for allocated in container.allocated_resources_status
        for device in allocated.resources
    ]
    return PodFacts(
        namespace=_shown(pod.metadata.namespace),
        name=_shown(pod.metadata.name),
        phase=status.phase,
        node=pod.spec.node_name,
        gpus=sum(_gpus(container.resources) for container in pod.spec.containers),
        devices=tuple(devices[:_MOST_DEVICES]),
        why=_shown(_why(status)),
        created=pod.metadata.creation_timestamp,
        is_ending=pod.metadata.deletion_timestamp is not None,
    )


def event_facts(data: bytes) -> EventFacts:
    event = _event.decode(data)
    about = event.involved_object
    return EventFacts(
        at=_shown(event.last_timestamp or event.event_time or event.metadata.creation_timestamp),
        about=_shown(f"{about.kind.lower()}/{about.name}"),
        reason=_shown(event.reason),
        message=_shown(event.message),
        is_warning=event.type == "Warning",
        count=event.count or 1,
    )


def _shown(text: str) -> str:
    return one_line(text[:_LONGEST])


def _why(status: _PodStatus) -> str:
    if status.message:
        return status.message
    refused = next((one for one in status.conditions if one.type == "PodScheduled" and one.status == "False"), None)
    return _essence(refused.message or refused.reason) if refused is not None else ""


def _essence(message: str) -> str:
    """Of a scheduler's message what differs from pod to pod, so that it is seen in a narrow line."""
    counts = _AVAILABLE.sub("", message, count=1)
    return counts.partition(". no new claims")[0].partition(". preemption:")[0]


def _gpus(resources: _Resources) -> float:
    asked = {**resources.requests, **resources.limits}
    return sum(_number(str(value), _MOST_ASKED) for name, value in asked.items() if name.startswith(_PREFIXES))


def _number(text: str, most: int) -> int:
    """`most` at most; 0 where it is none. A text of any length, so it is not converted first."""
    if not text.isdecimal():
        return 0
    return min(most, int(text)) if len(text) < _LONGEST else most


def _broken(text: str) -> frozenset[int]:
    try:
        named = {int(index) for index in msgspec.json.decode(text, type=dict[str, Any])} if text else set()
    except (msgspec.DecodeError, ValueError, RecursionError):
        return frozenset()
    return frozenset(named.intersection(range(MOST_GPUS)))
