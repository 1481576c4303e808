"""A pod as far as it can change what the engine is told, its parts left as bytes wherever pods of one template share
them.

Most changes of a pod are of its status and concern nobody here, so the first look passes over the whole specification
and compares it by a number. The second look takes it to pieces: what remains the same among the pods of one template is
a key to what was read of it before.

Rejected: decoding every pod into `api.pod.Pod`. It takes ten times as long, and fifty thousand pods come at a start.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from msgspec import Raw

from shoal.store.live.item import Item

_NOTHING = Raw()
_FINISHED = frozenset({"Succeeded", "Failed"})


class _Condition(msgspec.Struct, rename="camel", gc=False):
    type: str = ""
    status: str = ""
    last_transition_time: datetime | None = None


class Status(msgspec.Struct, rename="camel", gc=False):
    phase: str = ""
    nominated_node_name: str = ""
    start_time: datetime | None = None
    conditions: tuple[_Condition, ...] = ()
    resource_claim_statuses: Raw = _NOTHING

    @property
    def is_finished(self) -> bool:
        return self.phase in _FINISHED

    def bound_s(self) -> float:
        """When the pod was bound; the conditions say it, and the start of the pod where they do not."""
        for condition in self.conditions:
            if condition.type == "PodScheduled" and condition.status == "True" and condition.last_transition_time:
                return condition.last_transition_time.timestamp()
        return self.start_time.timestamp() if self.start_time is not None else 0.0

    def is_ready(self) -> bool:
        return any(condition.type == "Ready" and condition.status == "True" for condition in self.conditions)


class Meta(msgspec.Struct, rename="camel", gc=False):
    labels: Raw = _NOTHING
    annotations: Raw = _NOTHING
    owner_references: Raw = _NOTHING
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    generation: int = 0


class Head(msgspec.Struct, gc=False):
    """The first look."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: Raw = _NOTHING
    status: Status = msgspec.field(default_factory=Status)

    def mark(self) -> int:
        """Of all but the status; equal marks, equal pods."""
        meta = self.metadata
        parts = (self.spec, meta.labels, meta.annotations, meta.owner_references, self.status.resource_claim_statuses)
        return hash(tuple(map(bytes, parts)))


class _Container(msgspec.Struct, rename="camel", gc=False):
    """What remains is told to the kubelet only."""

    resources: Raw = _NOTHING
    ports: Raw = _NOTHING
    restart_policy: str = ""


class _Volume(msgspec.Struct, rename="camel", gc=False):
    persistent_volume_claim: Raw = _NOTHING
    ephemeral: Raw = _NOTHING


class _Name(msgspec.Struct, gc=False):
    name: str = ""


class Spec(msgspec.Struct, rename="camel", gc=False):
    """The second look."""

    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    scheduling_gates: tuple[_Name, ...] = ()
    containers: tuple[_Container, ...] = ()
    init_containers: tuple[_Container, ...] = ()
    volumes: tuple[_Volume, ...] = ()
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
    def mounts_claims(self) -> bool:
        """Whether it waits for volumes that somebody claims."""
        return any(
            len(memoryview(volume.persistent_volume_claim)) or len(memoryview(volume.ephemeral))
            for volume in self.volumes
        )

    @property
    def has_company(self) -> bool:
        """Whether its rules may speak of other pods, and so depend on its own labels and namespace."""
        return b"odA" in bytes(self.affinity) or is_there(self.topology_spread_constraints)

    def key(self) -> tuple[object, ...]:
        """Equal keys, equal asks, as far as the specification says."""
        return (
            tuple((bytes(one.resources), bytes(one.ports)) for one in self.containers),
            tuple((bytes(one.resources), bytes(one.ports), one.restart_policy) for one in self.init_containers),
            self.host_network,
            self.scheduler_name,
            *map(
                bytes,
                (
                    self.node_selector,
                    self.affinity,
                    self.tolerations,
                    self.topology_spread_constraints,
                    self.overhead,
                    self.resources,
                ),
            ),
        )


_EMPTY = frozenset((b"", b"null", b"[]", b"{}"))
_heads = msgspec.json.Decoder(Head)
_specs = msgspec.json.Decoder(Spec)


def head_of(item: Item) -> Head:
    """Raises msgspec.DecodeError for what no server accepts as a pod."""
    try:
        return _heads.decode(item.data)
    except msgspec.ValidationError:
        return _heads.decode(_without_nulls(item.data))


def spec_of(head: Head) -> Spec:
    try:
        return _specs.decode(head.spec)
    except msgspec.ValidationError:
        return _specs.decode(_without_nulls(bytes(head.spec)))


def is_there(raw: Raw) -> bool:
    return bytes(raw) not in _EMPTY


def _without_nulls(data: bytes) -> bytes:
    """What is null is absent; servers seldom write it."""
    return msgspec.json.encode(_cleaned(msgspec.json.decode(data)))


def _cleaned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _cleaned(inner) for key, inner in value.items() if inner is not None}
    return [_cleaned(inner) for inner in value] if isinstance(value, list) else value
