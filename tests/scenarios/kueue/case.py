"""A case as it stands in the files, without what it expects: that is looked at only after the decision."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from shoal.api.node_affinity import NodeSelectorTerm, PreferredSchedulingTerm
from shoal.api.taints import Taint, Toleration
from shoal.api.wire import Quantities, dec_hook
from shoal.units.quantity import Quantity

from .specs import (
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    Config,
    Flavor,
    LocalQueue,
    Namespace,
    Topology,
)


class Node(msgspec.Struct, rename="camel"):
    name: str
    labels: dict[str, str] = {}
    allocatable: Quantities = {}
    ready: bool = True
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class OtherPod(msgspec.Struct, rename="camel"):
    name: str
    namespace: str = "default"
    requests: Quantities = {}
    node_name: str = ""
    labels: dict[str, str] = {}
    phase: str = ""


class SliceConstraint(msgspec.Struct, rename="camel"):
    topology: str
    size: int


class TopologyRequest(msgspec.Struct, rename="camel"):
    required: str = ""
    preferred: str = ""
    unconstrained: bool = False
    pod_set_group_name: str = ""
    pod_set_slice_required_topology: str = ""
    pod_set_slice_size: int = 0
    podset_slice_required_topology_constraints: list[SliceConstraint] = []
    pod_set_slice_required_topology_constraints: list[SliceConstraint] = []


class Domain(msgspec.Struct, rename="camel"):
    values: tuple[str, ...]
    count: int


class TopologyAssignment(msgspec.Struct, rename="camel"):
    levels: tuple[str, ...]
    domains: list[Domain] = []


class PodSet(msgspec.Struct, rename="camel"):
    name: str = "main"
    count: int = 1
    min_count: int | None = None
    requests: Quantities = {}
    node_selector: dict[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()
    required_node_affinity: tuple[NodeSelectorTerm, ...] = ()
    preferred_node_affinity: tuple[PreferredSchedulingTerm, ...] = ()
    topology_request: TopologyRequest | None = None
    # Of admitted ones.
    flavors: dict[str, str] = {}
    usage: Quantities = {}
    admitted_count: int | None = None
    topology_assignment: TopologyAssignment | None = None
    delayed_topology_request: Literal["", "Pending", "Ready"] = ""


class Evicted(msgspec.Struct, rename="camel"):
    reason: str = ""
    offset_seconds: float = 0


class CheckState(msgspec.Struct, rename="camel"):
    name: str
    state: Literal["Pending", "Ready", "Retry", "Rejected"] = "Pending"


class Reclaimable(msgspec.Struct, rename="camel"):
    name: str
    count: int


class Workload(msgspec.Struct, rename="camel"):
    """Waiting, or (with `admitted` said) holding quota."""

    name: str
    namespace: str = "default"
    priority: int = 0
    queue: str = ""
    cluster_queue: str = ""
    uid: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    creation_order: int = 0
    creation_offset_seconds: float = 0
    pod_sets: list[PodSet] = []
    active: bool = True
    evicted: Evicted | None = None
    admission_check_states: list[CheckState] = []
    reclaimable_pods: list[Reclaimable] = []
    unhealthy_nodes: list[str] = []
    quota_reserved_offset_seconds: float = 0
    admitted: bool = False
    pods_ready: bool = True
    synthetic: bool = False

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class Given(msgspec.Struct, rename="camel"):
    """What the flavor assigner is supposed to have answered."""

    flavor: str
    mode: str = "Preempt"


class OracleAnswer(msgspec.Struct, rename="camel"):
    flavor: str
    resource: str
    possibility: str
    borrowing_level_after: int = 0


class Extra(msgspec.Struct, rename="camel"):
    flavor: str
    resource: str
    quantity: Quantity


class Candidate(msgspec.Struct, rename="camel"):
    name: str
    priority: int = 0
    borrowing_level: int = 0
    creation_offset_seconds: float = 0
    evicted: Evicted | None = None


class Gate(msgspec.Struct, rename="camel"):
    value: bool
    default: bool = False


class BetweenCycles(msgspec.Struct, rename="camel"):
    delete_workloads: list[str] = []

    @property
    def deleted(self) -> list[str]:
        """Keys of the workloads that go."""
        return [key if "/" in key else f"default/{key}" for key in self.delete_workloads]


class Case(msgspec.Struct, rename="camel"):
    id: str
    level: str = "scheduler-cycle"
    feature: str = ""
    cycles: int = 1
    end_to_end_likely: bool = False
    config: Config = msgspec.field(default_factory=Config)
    feature_gates: dict[str, Gate] = {}
    namespaces: list[Namespace] = []
    flavors: list[Flavor] = []
    intentionally_missing: list[str] = []
    topologies: list[Topology] = []
    cohorts: list[Cohort] = []
    cluster_queues: list[ClusterQueue] = []
    local_queues: list[LocalQueue] = []
    admission_checks: list[AdmissionCheck] = []
    nodes: list[Node] = []
    other_pods: list[OtherPod] = []
    admitted: list[Workload] = []
    pending: list[Workload] = []
    assignment_given: dict[str, dict[str, Given]] = {}
    preemption_oracle: str | list[OracleAnswer] | None = None
    extra_request: list[Extra] = []
    candidates: list[Candidate] = []
    initial_local_queue_usage: dict[str, Quantities] = {}
    between_cycles: BetweenCycles = msgspec.field(default_factory=BetweenCycles)


_ABOUT = {"source", "tags", "normalised", "usesNonDefaultGates", "apiInvalid", "steadyStateSafe", "expect"}
"""What is said about a case and decides nothing."""


def case_of(raw: dict[str, Any]) -> Case:
    return msgspec.convert(raw, Case, dec_hook=dec_hook)


def unread(raw: dict[str, Any]) -> list[str]:
    """Fields nobody reads: a case that turns on one of them is not decided by its facts."""
    known = {field.encode_name for field in msgspec.structs.fields(Case)} | _ABOUT
    found = {name for name in raw if name not in known}
    for kind in ("admitted", "pending"):
        found |= _unread_in(raw.get(kind) or [], Workload, kind)
        for workload in raw.get(kind) or []:
            found |= _unread_in(workload.get("podSets") or [], PodSet, f"{kind}.podSets")
    found |= _unread_in(raw.get("nodes") or [], Node, "nodes")
    found |= _unread_in(raw.get("candidates") or [], Candidate, "candidates")
    return sorted(found)


def _unread_in(items: list[dict[str, Any]], kind: type[msgspec.Struct], where: str) -> set[str]:
    known = {field.encode_name for field in msgspec.structs.fields(kind)}
    return {f"{where}.{name}" for item in items for name in item if name not in known}
