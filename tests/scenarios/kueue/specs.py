"""What an administrator writes, as the cases spell it: specs in the form of Kueue's API (v1beta2).

Own small types instead of the product's reading of the API: what is judged must not read its own questions.
"""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.api.selectors import LabelSelector
from shoal.api.taints import Taint, Toleration
from shoal.units.quantity import Quantity


class Namespace(msgspec.Struct, rename="camel"):
    name: str
    labels: dict[str, str] = {}


class Flavor(msgspec.Struct, rename="camel"):
    name: str
    node_labels: dict[str, str] = {}
    node_taints: tuple[Taint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    topology_name: str = ""


class Level(msgspec.Struct, rename="camel"):
    node_label: str


class Levels(msgspec.Struct, rename="camel"):
    levels: list[Level] = []


class Topology(msgspec.Struct, rename="camel"):
    name: str
    spec: Levels = msgspec.field(default_factory=Levels)


class ResourceQuota(msgspec.Struct, rename="camel"):
    name: str
    nominal_quota: Quantity
    borrowing_limit: Quantity | None = None
    lending_limit: Quantity | None = None


class FlavorQuotas(msgspec.Struct, rename="camel"):
    name: str
    resources: list[ResourceQuota] = []


class ResourceGroup(msgspec.Struct, rename="camel"):
    covered_resources: list[str]
    flavors: list[FlavorQuotas] = []


class Weight(msgspec.Struct, rename="camel"):
    weight: Quantity | None = None


class CohortSpec(msgspec.Struct, rename="camel"):
    parent_name: str = ""
    resource_groups: list[ResourceGroup] = []
    fair_sharing: Weight = msgspec.field(default_factory=Weight)


class Cohort(msgspec.Struct, rename="camel"):
    name: str
    spec: CohortSpec = msgspec.field(default_factory=CohortSpec)
    implicit: bool = False


class BorrowWithinCohort(msgspec.Struct, rename="camel"):
    policy: str = "Never"
    max_priority_threshold: int | None = None


class Preemption(msgspec.Struct, rename="camel"):
    within_cluster_queue: str = "Never"
    reclaim_within_cohort: str = "Never"
    borrow_within_cohort: BorrowWithinCohort = msgspec.field(default_factory=BorrowWithinCohort)


class Fungibility(msgspec.Struct, rename="camel"):
    when_can_borrow: str = "MayStopSearch"
    when_can_preempt: str = "TryNextFlavor"
    preference: str = ""


class CheckRule(msgspec.Struct, rename="camel"):
    name: str
    on_flavors: list[str] = []


class ChecksStrategy(msgspec.Struct, rename="camel"):
    admission_checks: list[CheckRule] = []


class AdmissionScope(msgspec.Struct, rename="camel"):
    admission_mode: str = ""


class ClusterQueueSpec(msgspec.Struct, rename="camel"):
    cohort_name: str = ""
    resource_groups: list[ResourceGroup] = []
    queueing_strategy: str = "BestEffortFIFO"
    namespace_selector: LabelSelector | None = None
    flavor_fungibility: Fungibility = msgspec.field(default_factory=Fungibility)
    preemption: Preemption = msgspec.field(default_factory=Preemption)
    admission_checks_strategy: ChecksStrategy = msgspec.field(default_factory=ChecksStrategy)
    admission_checks: list[str] = []
    stop_policy: str = "None"
    fair_sharing: Weight = msgspec.field(default_factory=Weight)
    admission_scope: AdmissionScope = msgspec.field(default_factory=AdmissionScope)


class ClusterQueue(msgspec.Struct, rename="camel"):
    name: str
    spec: ClusterQueueSpec = msgspec.field(default_factory=ClusterQueueSpec)


class LocalQueue(msgspec.Struct, rename="camel"):
    name: str
    cluster_queue: str
    namespace: str = "default"
    stop_policy: str = "None"
    fair_sharing: Weight = msgspec.field(default_factory=Weight)


class AdmissionCheck(msgspec.Struct, rename="camel"):
    name: str
    controller_name: str = ""
    active: bool = True


class FairSharing(msgspec.Struct, rename="camel"):
    enabled: bool = True
    preemption_strategies: list[str] = []


class AdmissionFairSharing(msgspec.Struct, rename="camel"):
    usage_half_life_time: str = "0s"
    usage_sampling_interval: str = "5m"
    resource_weights: dict[str, float] = {}


class Requeuing(msgspec.Struct, rename="camel"):
    timestamp: str = "Eviction"
    backoff_limit_count: int | None = None
    backoff_base_seconds: float = 60
    backoff_max_seconds: float = 3600


class WaitForPodsReady(msgspec.Struct, rename="camel"):
    enable: bool = True
    timeout: str = "30m"
    recovery_timeout: str | None = None
    block_admission: bool = False
    requeuing_strategy: Requeuing = msgspec.field(default_factory=Requeuing)


class Config(msgspec.Struct, rename="camel"):
    fair_sharing: FairSharing | None = None
    admission_fair_sharing: AdmissionFairSharing | None = None
    wait_for_pods_ready: WaitForPodsReady | None = None
    resources: dict[str, Any] = {}
