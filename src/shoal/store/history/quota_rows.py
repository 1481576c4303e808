"""Reads what the history needs of queues: which work holds quota since when, what a queue has of its own, and which
work was preempted.

GPUs and other devices count; work without devices counts by its CPUs.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import msgspec

from shoal.api.conditions import Condition, find_condition
from shoal.api.kueue.quotas import ResourceGroup
from shoal.api.kueue.workload_status import Admission
from shoal.api.meta import ObjectMeta
from shoal.api.resource_quotas import ResourceQuota
from shoal.api.wire import ApiStruct, dec_hook
from shoal.client.item import Item
from shoal.cost.borrowing import QuotaHolder
from shoal.cost.records import FULL_SHARE, QuotaKind, QuotaSpan
from shoal.units.quantity import Quantity

_PLAIN = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})
_GPU = "nvidia.com/gpu"
_MAKERS = frozenset({"AppWrapper", "JobSet", "LeaderWorkerSet", "RayJob", "RayService", "SparkApplication", "TrainJob"})
"""Kinds whose pods have owners between."""


class _AdmittedStatus(ApiStruct, frozen=True):
    admission: Admission | None = None
    conditions: tuple[Condition, ...] = ()


class _QueuedSpec(ApiStruct, frozen=True):
    queue_name: str = ""


class _RecordedWorkload(ApiStruct, frozen=True):
    metadata: ObjectMeta
    spec: _QueuedSpec = _QueuedSpec()
    status: _AdmittedStatus = msgspec.field(default_factory=_AdmittedStatus)


class _QuotaSpec(ApiStruct, frozen=True):
    resource_groups: tuple[ResourceGroup, ...] = ()


class _RecordedQueue(ApiStruct, frozen=True):
    spec: _QuotaSpec = msgspec.field(default_factory=_QuotaSpec)


class _KaiShare(ApiStruct, frozen=True):
    quota: float = 0.0


class _KaiResources(ApiStruct, frozen=True):
    gpu: _KaiShare = _KaiShare()


class _KaiSpec(ApiStruct, frozen=True):
    parent_queue: str = ""
    resources: _KaiResources = _KaiResources()


class _KaiQueue(ApiStruct, frozen=True):
    spec: _KaiSpec = _KaiSpec()


class _VolcanoSpec(ApiStruct, frozen=True):
    deserved: dict[str, Quantity] = msgspec.field(default_factory=dict)
    parent: str = ""


class _VolcanoQueue(ApiStruct, frozen=True):
    spec: _VolcanoSpec = msgspec.field(default_factory=_VolcanoSpec)


class WorkloadQuota(msgspec.Struct, frozen=True):
    queue: str
    """The cluster queue; empty while it holds no quota."""
    holder: QuotaHolder
    is_preempted: bool
    owners: tuple[str, ...]
    """The uids of the objects whose pods it covers."""
    local_queue: str = ""
    makes_owners: bool = False
    """Whether the pods are those of objects that its owner makes."""


_workloads = msgspec.json.Decoder(_RecordedWorkload, dec_hook=dec_hook)
_queues = msgspec.json.Decoder(_RecordedQueue, dec_hook=dec_hook)
_namespace_quotas = msgspec.json.Decoder(ResourceQuota, dec_hook=dec_hook)
_volcano_queues = msgspec.json.Decoder(_VolcanoQueue, dec_hook=dec_hook)


def read_workload(item: Item) -> WorkloadQuota:
    """Raises msgspec.DecodeError and ValueError."""
    found = _workloads.decode(item.data)
    admission, conditions = found.status.admission, found.status.conditions
    amounts: dict[str, int] = {}
    for each in admission.pod_set_assignments if admission is not None else ():
        for name, quantity in each.resource_usage.items():
            pool = _pool(each.flavors.get(name, ""), name)
            amounts[pool] = amounts.get(pool, 0) + _amount(name, quantity)
    reserved = find_condition(conditions, "QuotaReserved")
    since = reserved.last_transition_time if reserved is not None else None
    evicted = find_condition(conditions, "Evicted")
    return WorkloadQuota(
        queue="" if admission is None else admission.cluster_queue,
        holder=QuotaHolder(
            f"{item.namespace}/{item.name}", 0 if since is None else round(since.timestamp() * 1000), _counted(amounts)
        ),
        is_preempted=evicted is not None and evicted.is_true() and evicted.reason == "Preempted",
        owners=tuple(one.uid for one in found.metadata.owner_references),
        local_queue=found.spec.queue_name,
        makes_owners=any(one.kind in _MAKERS for one in found.metadata.owner_references),
    )


def nominal_of(item: Item) -> dict[str, int]:
    """Of a ClusterQueue. Raises msgspec.DecodeError and ValueError."""
    return {
        _pool(flavor.name, one.name): _amount(one.name, one.nominal_quota)
        for group in _queues.decode(item.data).spec.resource_groups
        for flavor in group.flavors
        for one in flavor.resources
    }


def kai_quota(item: Item) -> int | None:
    """GPUs of a queue of KAI in shares of devices; None for a queue without a bound. Raises msgspec.DecodeError."""
    quota = item.read(_KaiQueue).spec.resources.gpu.quota
    # A Fraction, because the product may be larger than any float.
    return None if quota < 0 else round(Fraction(quota) * FULL_SHARE)


def volcano_quota(item: Item) -> int | None:
    """What a queue of Volcano deserves of GPUs; None where it says nothing. Raises msgspec.DecodeError."""
    found = _volcano_queues.decode(item.data).spec.deserved.get(_GPU)
    return None if found is None else found.milli_value() * FULL_SHARE // 1000


def gpu_quota(kind: QuotaKind, item: Item) -> QuotaSpan | None:
    """The quota of GPUs of an object of the kind; None for one without a bound. Raises msgspec.DecodeError and
    ValueError."""
    if kind == "cluster-queue":
        amounts = [amount for pool, amount in nominal_of(item).items() if pool.partition("/")[2] == _GPU]
        return QuotaSpan(kind, item.name, 0, None, sum(amounts) * FULL_SHARE) if amounts else None
    if kind == "kai":
        share, parent = kai_quota(item), item.read(_KaiQueue).spec.parent_queue
    elif kind == "volcano":
        share, parent = volcano_quota(item), _volcano_queues.decode(item.data).spec.parent
    else:
        share, parent = _namespace_quota(item), ""
    return None if share is None else QuotaSpan(kind, item.name, 0, None, share, parent)


def _namespace_quota(item: Item) -> int | None:
    """A quota with scopes is of some pods only."""
    spec = _namespace_quotas.decode(item.data).spec
    if spec.scopes or spec.scope_selector is not None:
        return None
    found = spec.hard.get(f"requests.{_GPU}")
    return None if found is None else found.value() * FULL_SHARE


def _counted(amounts: Mapping[str, int]) -> dict[str, int]:
    devices = {pool: amount for pool, amount in amounts.items() if pool.partition("/")[2] not in _PLAIN}
    return devices or {pool: amount for pool, amount in amounts.items() if pool.endswith("/cpu")}


def _amount(resource: str, quantity: Quantity) -> int:
    return quantity.milli_value() if resource == "cpu" else quantity.value()


def _pool(flavor: str, resource: str) -> str:
    return f"{flavor}/{resource}"
