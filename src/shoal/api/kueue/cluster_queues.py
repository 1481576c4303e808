"""Cluster queues: who has how much quota, and what happens when it is not enough.

An absent `namespaceSelector` lets no namespace in and an empty one lets in all; `probable_mistakes.py` warns of the
first, which is hardly ever meant.
"""

from __future__ import annotations

from typing import Literal

from msgspec import field

from shoal.api.conditions import Condition
from shoal.api.kueue.quotas import FairSharing, ResourceGroup
from shoal.api.meta import ObjectMeta
from shoal.api.pod import Priority
from shoal.api.selectors import LabelSelector
from shoal.api.wire import ApiStruct
from shoal.units.quantity import Quantity

StopPolicy = Literal["None", "Hold", "HoldAndDrain"]
NextFlavor = Literal["MayStopSearch", "TryNextFlavor"]


class FlavorFungibility(ApiStruct, frozen=True):
    when_can_borrow: NextFlavor = "MayStopSearch"
    when_can_preempt: NextFlavor = "TryNextFlavor"
    preference: Literal["BorrowingOverPreemption", "PreemptionOverBorrowing", ""] = ""


class BorrowWithinCohort(ApiStruct, frozen=True):
    policy: Literal["Never", "LowerPriority"] = "Never"
    max_priority_threshold: Priority | None = None


class ClusterQueuePreemption(ApiStruct, frozen=True):
    within_cluster_queue: Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority"] = "Never"
    reclaim_within_cohort: Literal["Never", "LowerPriority", "Any"] = "Never"
    borrow_within_cohort: BorrowWithinCohort | None = None


class AdmissionCheckRule(ApiStruct, frozen=True):
    """A check that is demanded for some flavors or, where none is named, for all."""

    name: str
    on_flavors: tuple[str, ...] = ()


class AdmissionChecksStrategy(ApiStruct, frozen=True):
    admission_checks: tuple[AdmissionCheckRule, ...] = ()


class AdmissionScope(ApiStruct, frozen=True):
    admission_mode: Literal["UsageBasedAdmissionFairSharing", "NoAdmissionFairSharing"]


class MigrationConstraints(ApiStruct, frozen=True):
    last_acceptable_flavor_name: str = ""


class Migration(ApiStruct, frozen=True):
    mode: Literal["TryPreferredFlavors", "RetainFirstAdmission"] = "TryPreferredFlavors"
    constraints: MigrationConstraints = field(default_factory=MigrationConstraints)


class ConcurrentAdmissionPolicy(ApiStruct, frozen=True):
    migration: Migration = field(default_factory=Migration)


class ClusterQueueSpec(ApiStruct, frozen=True):
    resource_groups: tuple[ResourceGroup, ...] = ()
    cohort_name: str = ""
    queueing_strategy: Literal["BestEffortFIFO", "StrictFIFO"] = "BestEffortFIFO"
    namespace_selector: LabelSelector | None = None
    flavor_fungibility: FlavorFungibility = field(default_factory=FlavorFungibility)
    preemption: ClusterQueuePreemption = field(default_factory=ClusterQueuePreemption)
    admission_checks_strategy: AdmissionChecksStrategy = field(default_factory=AdmissionChecksStrategy)
    stop_policy: StopPolicy = "None"
    fair_sharing: FairSharing = field(default_factory=FairSharing)
    admission_scope: AdmissionScope | None = None
    concurrent_admission_policy: ConcurrentAdmissionPolicy | None = None
    cohort: str = ""
    """v1beta1's word for `cohort_name`, kept where a document of v1beta2 uses it, for the warning."""

    def has_usage_based_admission(self) -> bool:
        """Whether local queues that used less come first."""
        scope = self.admission_scope
        return scope is not None and scope.admission_mode == "UsageBasedAdmissionFairSharing"


class ResourceUsage(ApiStruct, frozen=True):
    name: str
    total: Quantity = field(default_factory=lambda: Quantity.of(0))
    borrowed: Quantity = field(default_factory=lambda: Quantity.of(0))


class FlavorUsage(ApiStruct, frozen=True):
    name: str
    resources: tuple[ResourceUsage, ...] = ()


class FairSharingStatus(ApiStruct, frozen=True):
    weighted_share: int = 0


class ClusterQueueStatus(ApiStruct, frozen=True):
    """The status as another controller wrote it; Shoal counts anew."""

    conditions: tuple[Condition, ...] = ()
    flavors_reservation: tuple[FlavorUsage, ...] = ()
    flavors_usage: tuple[FlavorUsage, ...] = ()
    pending_workloads: int = 0
    reserving_workloads: int = 0
    admitted_workloads: int = 0
    fair_sharing: FairSharingStatus | None = None


class ClusterQueue(ApiStruct, frozen=True):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: ClusterQueueSpec = field(default_factory=ClusterQueueSpec)
    status: ClusterQueueStatus = field(default_factory=ClusterQueueStatus)
