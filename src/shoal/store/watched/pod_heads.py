"""Decodes the parts of a pod that can change the engine's events; parts that pods of one template share stay bytes and
are a key to what was read before.

Rejected: decoding every pod into `api.pod.Pod`. It takes ten times as long, and fifty thousand pods are read at a
start.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from msgspec import Raw

from shoal.api.conditions import Condition, is_condition_true
from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.client.item import Item

_NOTHING = Raw()
_BETWEEN = b"\0"
"""A value that no JSON contains."""
_CLAIMED = (b'"persistentVolumeClaim":{', b'"ephemeral":{')
_REFUSED, _OUT_OF = "UnexpectedAdmissionError", "OutOf"
_DEVICES = "nvidia.com/"
"""Other plugins allocate devices too, and their ids may look like positions of GPUs."""
_GPUS = b'"nvidia.com/'
_ALLOCATED = b'"allocatedResourcesStatus"'


class _Allocated(msgspec.Struct, gc=False):
    id: str = msgspec.field(default="", name="resourceID")


class _Allocation(msgspec.Struct, gc=False):
    name: str = ""
    resources: tuple[_Allocated, ...] | None = None


class _Holder(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    allocated_resources_status: tuple[_Allocation, ...] | None = None


class Status(msgspec.Struct, rename="camel", gc=False):
    phase: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    start_time: datetime | None = None
    conditions: tuple[Condition, ...] = ()
    resource_claim_statuses: Raw = _NOTHING
    container_statuses: Raw = _NOTHING
    init_container_statuses: Raw = _NOTHING

    @property
    def is_finished(self) -> bool:
        return self.phase in TERMINAL_PHASES

    @property
    def lacked(self) -> str | None:
        """The resource for lack of which the kubelet rejected the pod, empty where the kubelet names none; None: the
        pod was not rejected.
        """
        if self.phase != "Failed" or not self.reason.startswith((_REFUSED, _OUT_OF)):
            return None
        return self.reason.removeprefix(_OUT_OF) if self.reason.startswith(_OUT_OF) else ""

    def bound_s(self) -> float:
        """The time at which the pod was bound: from its conditions, else its start time."""
        for condition in self.conditions:
            if condition.type == "PodScheduled" and condition.status == "True" and condition.last_transition_time:
                return condition.last_transition_time.timestamp()
        return self.start_time.timestamp() if self.start_time is not None else 0.0

    def allocated(self) -> str:
        """The devices that the kubelet allocated to the pod, in the format of the annotation `shoal.dev/devices`; or
        nothing.
        """
        found: dict[str, dict[str, list[str]]] = {}
        for reported in (self.init_container_statuses, self.container_statuses):
            for holder in _holders.decode(reported) if _ALLOCATED in bytes(reported) else ():
                for each in holder.allocated_resources_status or ():
                    if each.name.startswith(_DEVICES):
                        found.setdefault(holder.name, {})[each.name] = [one.id for one in each.resources or ()]
        return msgspec.json.encode(found).decode() if found else ""

    def is_ready(self) -> bool:
        return is_condition_true(self.conditions, "Ready")


class OwnerWord(msgspec.Struct, gc=False):
    """One of its ownerReferences."""

    kind: str = ""
    name: str = ""
    controller: bool = False


class PodHeadMeta(msgspec.Struct, rename="camel", gc=False):
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerWord, ...] = ()
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    generation: int = 0


class _RawContainer(msgspec.Struct, rename="camel", gc=False):
    """The other fields concern the kubelet only."""

    resources: Raw = _NOTHING
    ports: Raw = _NOTHING
    restart_policy: Raw = _NOTHING


class _Name(msgspec.Struct, gc=False):
    name: str = ""


class Spec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    scheduling_gates: tuple[_Name, ...] = ()
    containers: tuple[_RawContainer, ...] = ()
    init_containers: tuple[_RawContainer, ...] = ()
    volumes: Raw = _NOTHING
    node_selector: Raw = _NOTHING
    affinity: Raw = _NOTHING
    tolerations: Raw = _NOTHING
    topology_spread_constraints: Raw = _NOTHING
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str = ""
    overhead: Raw = _NOTHING
    host_network: bool = False
    resource_claims: Raw = _NOTHING
    resources: Raw = _NOTHING
    scheduling_group: Raw = _NOTHING
    workload_ref: Raw = _NOTHING

    @property
    def claims_devices(self) -> bool:
        return is_there(self.resource_claims)

    @property
    def asks_gpus(self) -> bool:
        """Whether it requests a resource of a GPU device plugin."""
        return any(_GPUS in bytes(one.resources) for one in (*self.containers, *self.init_containers))

    @property
    def mounts_claims(self) -> bool:
        """Whether it mounts volume claims."""
        volumes = bytes(self.volumes)
        return any(kind in volumes for kind in _CLAIMED)

    @property
    def has_pod_rules(self) -> bool:
        """Whether it has rules about other pods, which may depend on its own labels and namespace."""
        return b"odA" in bytes(self.affinity) or is_there(self.topology_spread_constraints)

    def key(self) -> tuple[object, ...]:
        """Pods with equal keys have equal asks, as far as the specification determines them."""
        parts = [
            self.node_selector,
            self.affinity,
            self.tolerations,
            self.topology_spread_constraints,
            self.overhead,
            self.resources,
        ]
        for container in self.containers:
            parts += (container.resources, container.ports)
        for container in self.init_containers:
            parts += (container.resources, container.ports, container.restart_policy)
        return (len(self.containers), self.host_network, self.scheduler_name, _BETWEEN.join(parts))


class PodHead(msgspec.Struct, gc=False):
    metadata: PodHeadMeta = msgspec.field(default_factory=PodHeadMeta)
    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)


_EMPTY = frozenset((b"", b"null", b"[]", b"{}"))
_heads = msgspec.json.Decoder(PodHead)
_holders = msgspec.json.Decoder(tuple[_Holder, ...])


def head_of(item: Item) -> PodHead:
    """Raises msgspec.DecodeError for input that no server accepts as a pod."""
    try:
        return _heads.decode(item.data)
    except msgspec.ValidationError:
        return _heads.decode(_without_nulls(item.data))


def is_there(raw: Raw) -> bool:
    return bytes(raw) not in _EMPTY


def _without_nulls(data: bytes) -> bytes:
    """Null counts as absent; servers seldom write it."""
    return msgspec.json.encode(_cleaned(msgspec.json.decode(data)))


def _cleaned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _cleaned(inner) for key, inner in value.items() if inner is not None}
    return [_cleaned(inner) for inner in value] if isinstance(value, list) else value
