"""Local queues: the name in a namespace by which jobs are submitted to a cluster queue."""

from __future__ import annotations

from msgspec import field

from shoal.api.conditions import Condition
from shoal.api.kueue.cluster_queues import FlavorUsage, StopPolicy
from shoal.api.kueue.quotas import FairSharing
from shoal.api.kueue.references import check_reference
from shoal.api.meta import ObjectMeta
from shoal.api.validity import check_meta
from shoal.api.wire import ApiStruct, Quantities, Timestamp
from shoal.units.errors import Where


class LocalQueueSpec(ApiStruct, frozen=True):
    cluster_queue: str = ""
    stop_policy: StopPolicy = "None"
    fair_sharing: FairSharing = field(default_factory=FairSharing)


class AdmissionFairSharingStatus(ApiStruct, frozen=True):
    """What the queue has used lately, by resource, with the past fading."""

    consumed_resources: Quantities = field(default_factory=dict)
    last_update: Timestamp | None = None


class LocalQueueFairSharingStatus(ApiStruct, frozen=True):
    weighted_share: int = 0
    admission_fair_sharing_status: AdmissionFairSharingStatus | None = None


class LocalQueueStatus(ApiStruct, frozen=True):
    """The status as another controller wrote it. Only the consumption is read: the past cannot be counted anew."""

    conditions: tuple[Condition, ...] = ()
    flavors_reservation: tuple[FlavorUsage, ...] = ()
    flavors_usage: tuple[FlavorUsage, ...] = ()
    pending_workloads: int = 0
    reserving_workloads: int = 0
    admitted_workloads: int = 0
    fair_sharing: LocalQueueFairSharingStatus | None = None


class LocalQueue(ApiStruct, frozen=True):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: LocalQueueSpec = field(default_factory=LocalQueueSpec)
    status: LocalQueueStatus = field(default_factory=LocalQueueStatus)


def check_local_queue(queue: LocalQueue, where: Where) -> None:
    check_meta(queue.metadata, where.below("metadata"))
    check_reference(queue.spec.cluster_queue, where.below("spec.clusterQueue"))
    queue.spec.fair_sharing.check(where.below("spec.fairSharing"))
