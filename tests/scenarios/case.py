"""A case as it stands in the files, without what it expects: that is looked at only after the decision."""

from __future__ import annotations

from typing import Any

import msgspec

Amounts = dict[str, float]


class Node(msgspec.Struct, rename="camel"):
    name: str
    gpus: int = 0
    gpu_memory: int = 0
    cpu: float = 0
    memory: float = 0
    labels: dict[str, str] = {}
    taints: list[dict[str, Any]] = []
    mig_strategy: str = ""
    mig_instances: dict[str, int] = {}
    extended: Amounts = {}
    max_pods: int = 110
    used: Amounts = {}
    free_gpus: float | None = None
    free_cpu: float | None = None
    free_memory: float | None = None


class Queue(msgspec.Struct, rename="camel"):
    name: str
    parent: str = ""
    priority: float | None = None
    quota: Any = None
    limit: Any = None
    over_quota_weight: Any = None
    guarantee: Any = None
    weight: int = 1
    reclaimable: bool | None = None
    state: str = ""


class Task(msgspec.Struct, rename="camel"):
    name: str
    state: str
    node: str = ""
    gpus: float = 0
    gpu_fraction: float = 0
    gpu_memory: int = 0
    gpu_num_devices: int = 1
    mig_profiles: dict[str, int] = {}
    cpu: float = 0
    memory: float = 0
    extended: Amounts = {}
    gpu_groups: list[str] = []
    subgroup: str = ""
    role: str = ""
    task_priority: int = 0
    labels: dict[str, str] = {}
    node_selector: dict[str, str] = {}
    node_affinity: dict[str, Any] | None = None
    pod_affinity: dict[str, Any] | None = None
    pod_anti_affinity: dict[str, Any] | None = None
    affinity: dict[str, Any] = {}
    topology_spread_constraints: list[dict[str, Any]] = []
    tolerations: list[dict[str, Any]] = []
    resource_claims: list[str] = []
    preemptible: bool | None = None
    preemption_policy: str = ""


class Subgroup(msgspec.Struct, rename="camel"):
    name: str
    parent: str = ""
    min_available: int = 0
    size: int = 0
    min_sub_groups: int = 0
    match_label_keys: list[str] = []
    label_selector: dict[str, Any] | None = None
    topology: dict[str, Any] = {}
    children: list[Subgroup] = []


class Job(msgspec.Struct, rename="camel"):
    name: str
    queue: str = ""
    namespace: str = "default"
    priority: int = 0
    preemptible: bool | None = None
    created_order: int = msgspec.field(default=0, name="created_order")
    min_available: int = 0
    min_by_role: dict[str, int] = {}
    subgroups: list[Subgroup] = []
    topology: dict[str, Any] = {}
    admitted: bool = True
    min_resources: Amounts = {}
    stale_for_seconds: float | None = None
    being_deleted: bool = False
    tasks: list[Task] = []


class HyperNode(msgspec.Struct, rename="camel"):
    name: str
    tier: int
    nodes: list[str]
    tier_name: str = ""


class Topology(msgspec.Struct, rename="camel"):
    name: str
    levels: list[str]


class Config(msgspec.Struct, rename="camel"):
    actions: list[str] = []
    cycles: int = 1
    stable_for_cycles: int = 0
    node_placement: dict[str, str] = {}
    gpu_placement: str = ""
    only_plugins: list[str] = []
    plugins: dict[str, Any] = {}
    simulated_preemption: bool = False
    staleness_grace_seconds: float = 60
    strategy: str = ""
    weight: float = 1
    weights: dict[str, float] = {}
    resources: dict[str, Any] = {}


class Case(msgspec.Struct, rename="camel"):
    id: str
    kind: str = ""
    source: str = ""
    nodes: list[Node] = []
    symmetric_nodes: list[list[str]] = []
    hyper_nodes: list[HyperNode] = []
    topologies: list[Topology] = []
    queues: list[Queue] = []
    jobs: list[Job] = []
    dra: dict[str, Any] | None = None
    config: Config = msgspec.field(default_factory=Config)
    resource: str = ""
    request: dict[str, Any] = {}

    @property
    def is_kai(self) -> bool:
        return "KAI" in self.source
