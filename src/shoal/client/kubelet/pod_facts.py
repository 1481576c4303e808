"""Decodes the fields of a pod that a kubelet reads, from the cache's bytes.

Rejected: storing these for every pod. For ten thousand idle pods that would double the memory of the cache.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from shoal.api.meta import OwnerReference
from shoal.client.item import Item

Role = Literal["init", "sidecar", "main"]


class Slim(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """Absent fields have Kubernetes' defaults."""


class Probe(Slim, frozen=True):
    initial_delay_seconds: int = 0
    period_seconds: int = 10
    success_threshold: int = 1
    failure_threshold: int = 3


class ExitCodes(Slim, frozen=True):
    operator: str = "In"
    values: tuple[int, ...] = ()


class RestartRule(Slim, frozen=True):
    action: str = "Restart"
    exit_codes: ExitCodes | None = None

    def matches(self, code: int) -> bool:
        codes = self.exit_codes
        return codes is not None and (code in codes.values) == (codes.operator == "In")


class ContainerResources(Slim, frozen=True):
    requests: dict[str, str | int] = {}
    limits: dict[str, str | int] = {}


class Container(Slim, frozen=True):
    name: str
    image: str = ""
    restart_policy: str | None = None
    restart_policy_rules: tuple[RestartRule, ...] = ()
    startup_probe: Probe | None = None
    readiness_probe: Probe | None = None
    liveness_probe: Probe | None = None
    resources: ContainerResources = ContainerResources()


class KubeletPodMeta(Slim, frozen=True):
    name: str
    uid: str
    namespace: str = ""
    generation: int = 0
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None


class ReadinessGate(Slim, frozen=True):
    condition_type: str


class Affinity(Slim, frozen=True):
    node_affinity: dict[str, object] | None = None


class Spec(Slim, frozen=True):
    node_name: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    restart_policy: str = "Always"
    host_network: bool = False
    active_deadline_seconds: int | None = None
    termination_grace_period_seconds: int = 30
    readiness_gates: tuple[ReadinessGate, ...] = ()
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    overhead: dict[str, str | int] = {}


class KubeletPodCondition(Slim, frozen=True):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class KubeletPodStatus(Slim, frozen=True):
    """The status of the pod from the API server."""

    phase: str = "Pending"
    conditions: tuple[KubeletPodCondition, ...] = ()


class PodFacts(Slim, frozen=True):
    metadata: KubeletPodMeta
    spec: Spec
    status: KubeletPodStatus = KubeletPodStatus()

    def owner_kind(self) -> str:
        """The kind of the controller; empty for a pod without one."""
        for owner in self.metadata.owner_references:
            if owner.controller:
                return owner.kind
        return ""

    def all_containers(self) -> tuple[Container, ...]:
        """All containers in the order in which they start; a run keeps the same order."""
        return self.spec.init_containers + self.spec.containers

    def condition(self, type_: str) -> KubeletPodCondition | None:
        return next((one for one in self.status.conditions if one.type == type_), None)


class _SummaryMeta(Slim, frozen=True):
    generation: int = 0
    annotations: dict[str, str] = {}
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None


class _SummarySpec(Slim, frozen=True):
    node_name: str = ""


class _SummaryCondition(Slim, frozen=True):
    type: str
    status: str


class _PartialPodStatus(Slim, frozen=True):
    phase: str = "Pending"
    start_time: str | None = None
    """Set by the first kubelet that handled the pod."""
    pod_ip: str = msgspec.field(default="", name="podIP")
    conditions: tuple[_SummaryCondition, ...] = ()

    def is_ready(self) -> bool:
        return any(one.type == "Ready" and one.status == "True" for one in self.conditions)


class PartialPod(Slim, frozen=True):
    """The fields that are read on every change of every pod."""

    metadata: _SummaryMeta
    spec: _SummarySpec
    status: _PartialPodStatus = _PartialPodStatus()

    def restart_requests(self) -> int:
        """A hash of the restart annotations, so that they need not be stored."""
        said = self.metadata.annotations
        return hash(frozenset(said.items())) if said else 0


_facts = msgspec.json.Decoder(PodFacts)
_glance = msgspec.json.Decoder(PartialPod)


def facts_of(item: Item) -> PodFacts:
    return _facts.decode(item.data)


def summary_of(item: Item) -> PartialPod:
    return _glance.decode(item.data)


def nodes_of(item: Item) -> tuple[str, ...]:
    """The node of a pod, for an index. A pod that a kubelet cannot decode is on no node."""
    try:
        name = summary_of(item).spec.node_name
    except msgspec.DecodeError:
        return ()
    return (name,) if name else ()


def role_of(facts: PodFacts, at: int) -> Role:
    if at >= len(facts.spec.init_containers):
        return "main"
    return "sidecar" if facts.spec.init_containers[at].restart_policy == "Always" else "init"
