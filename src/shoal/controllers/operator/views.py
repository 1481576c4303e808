"""Reads the fields of nodes, pods and DaemonSets on which the operator decides."""

from __future__ import annotations

import msgspec
from msgspec import field

from shoal.client.item import Item, Seen
from shoal.operator.components.facts import OperatorNode
from shoal.operator.progress.node_stages import NodeStages, OperandPod
from shoal.operator.progress.policy_status import DaemonSetProgress

STAGES = "shoal.dev/gpu-stages"
"""The annotation of a node with the stages of its components (`NodeStages`)."""
_RESOURCES = "nvidia.com/"


class _NodeInfo(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    os_image: str = ""
    kernel_version: str = ""
    container_runtime_version: str = ""


class _NodeMeta(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    name: str
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    creation_timestamp: str = ""


class _OperatedStatus(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    node_info: _NodeInfo = field(default_factory=_NodeInfo)
    allocatable: dict[str, str | int] = {}


class OperatedNode(msgspec.Struct, gc=False, omit_defaults=True):
    metadata: _NodeMeta
    status: _OperatedStatus = field(default_factory=_OperatedStatus)

    def facts(self) -> OperatorNode:
        info = self.status.node_info
        return OperatorNode(
            self.metadata.name,
            self.metadata.labels,
            info.os_image,
            info.kernel_version,
            info.container_runtime_version,
        )

    def has_resources(self) -> bool:
        """Whether GPUs or parts of them can be requested."""
        amounts = self.status.allocatable.items()
        return any(name.startswith(_RESOURCES) and str(amount) != "0" for name, amount in amounts)

    def stages(self) -> NodeStages | None:
        """The annotation; None without it, or if another client has damaged it."""
        try:
            return msgspec.json.decode(self.metadata.annotations[STAGES], type=NodeStages)
        except (KeyError, msgspec.MsgspecError):
            return None


seen_node: Seen[OperatedNode] = Seen(OperatedNode)


class _Waiting(msgspec.Struct, gc=False, omit_defaults=True):
    reason: str = ""
    message: str = ""


class _ContainerState(msgspec.Struct, gc=False, omit_defaults=True):
    waiting: _Waiting | None = None


class _ContainerStatus(msgspec.Struct, gc=False, omit_defaults=True):
    name: str = ""
    state: _ContainerState = field(default_factory=_ContainerState)


class _OperandCondition(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    type: str
    status: str = ""
    last_transition_time: str | None = None


class _PodMeta(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    labels: dict[str, str] = {}
    deletion_timestamp: str | None = None


class _PodSpec(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    node_name: str = ""


class _OperandStatus(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    phase: str = ""
    message: str = ""
    start_time: str | None = None
    conditions: list[_OperandCondition] = []
    init_container_statuses: list[_ContainerStatus] = []
    container_statuses: list[_ContainerStatus] = []


class CachedOperandPod(msgspec.Struct, gc=False, omit_defaults=True):
    metadata: _PodMeta
    spec: _PodSpec = field(default_factory=_PodSpec)
    status: _OperandStatus = field(default_factory=_OperandStatus)


def node_of(item: Item) -> list[str]:
    """The node of a pod, as the values of an index."""
    name = item.read(CachedOperandPod).spec.node_name
    return [name] if name else []


def operand_pod(item: Item) -> OperandPod | None:
    """None for a pod that is being deleted."""
    pod = item.read(CachedOperandPod)
    if pod.metadata.deletion_timestamp is not None:
        return None
    status = pod.status
    ready = next((one for one in status.conditions if one.type == "Ready" and one.status == "True"), None)
    containers = (*status.init_container_statuses, *status.container_statuses)
    waiting = tuple(
        (one.name, one.state.waiting.reason, one.state.waiting.message)
        for one in containers
        if one.state.waiting is not None
    )
    return OperandPod(
        app=pod.metadata.labels.get("app", ""),
        name=item.name,
        phase=status.phase,
        is_ready=ready is not None,
        ready_at=(ready.last_transition_time or "") if ready is not None else "",
        started_at=status.start_time or "",
        waiting=waiting,
        message=status.message,
    )


class _SetMeta(msgspec.Struct, gc=False, omit_defaults=True):
    generation: int = 0


class _Strategy(msgspec.Struct, gc=False, omit_defaults=True):
    type: str = ""


class _SetSpec(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    update_strategy: _Strategy = field(default_factory=_Strategy)


class _SetStatus(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    observed_generation: int = 0
    desired_number_scheduled: int = 0
    updated_number_scheduled: int = 0
    number_unavailable: int = 0


class _DaemonSet(msgspec.Struct, gc=False, omit_defaults=True):
    metadata: _SetMeta
    spec: _SetSpec = field(default_factory=_SetSpec)
    status: _SetStatus = field(default_factory=_SetStatus)


def daemon_set_progress(item: Item) -> DaemonSetProgress:
    found = item.read(_DaemonSet)
    status = found.status
    return DaemonSetProgress(
        found.metadata.generation,
        status.observed_generation,
        status.desired_number_scheduled,
        status.updated_number_scheduled,
        status.number_unavailable,
        is_on_delete=found.spec.update_strategy.type == "OnDelete",
    )
