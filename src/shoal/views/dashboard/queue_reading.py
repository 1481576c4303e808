"""Facts from the JSON of queues, Workloads and PodGroups of Kueue, Volcano, KAI and scheduler-plugins.

Only the fields that the dashboard shows are decoded. A quota or an amount that cannot be read counts as zero; the
controllers report it, and the dashboard keeps running.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from shoal.engine.from_api.queues.wait_slo import WaitSlo, wait_slo_of
from shoal.engine.queues.disciplines.kai.unschedulable_reasons import NOT_READY
from shoal.units.errors import UserError
from shoal.units.quantity import Quantity
from shoal.views.dashboard.facts import GroupFacts, PreemptionFacts, QueueFacts, QuotaFacts, WorkloadFacts
from shoal.views.dashboard.reading import Camel, Condition, ContainerJson, Meta, shown
from shoal.views.dashboard.without_nulls import decoded

_GPU = "nvidia.com/gpu"
_GPUS = ("nvidia.com/gpu", "nvidia.com/mig-", "gpu")
_UNLIMITED = -1.0
_MOST_QUOTAS = 64
_NANO = 1e9
_PREEMPTOR, _PREEMPTEE = "preemptor path: ", "preemptee path: "
_ASSIGNMENT = re.compile(r"couldn't assign flavors to pod set [^ :]+: ")


class _Quota(Camel):
    name: str = ""
    nominal_quota: Any = None


class _Flavor(Camel):
    name: str = ""
    resources: Sequence[_Quota] = ()


class _ResourceGroup(Camel):
    flavors: Sequence[_Flavor] = ()


class _ClusterQueueSpec(Camel):
    cohort_name: str = ""
    cohort: str = ""
    """The name of the field in v1beta1."""
    resource_groups: Sequence[_ResourceGroup] = ()


class _Used(Camel):
    name: str = ""
    total: Any = None
    borrowed: Any = None


class _FlavorUsage(Camel):
    name: str = ""
    resources: Sequence[_Used] = ()


class _ClusterQueueStatus(Camel):
    flavors_reservation: Sequence[_FlavorUsage] = ()
    flavors_usage: Sequence[_FlavorUsage] = ()
    pending_workloads: int = 0
    admitted_workloads: int = 0
    conditions: Sequence[Condition] = ()


class _ClusterQueue(Camel):
    metadata: Meta
    spec: _ClusterQueueSpec = msgspec.field(default_factory=_ClusterQueueSpec)
    status: _ClusterQueueStatus = msgspec.field(default_factory=_ClusterQueueStatus)


class _LocalQueueSpec(Camel):
    cluster_queue: str = ""


class _LocalQueue(Camel):
    metadata: Meta
    spec: _LocalQueueSpec = msgspec.field(default_factory=_LocalQueueSpec)


class _VolcanoQueueSpec(Camel):
    parent: str = ""
    deserved: Mapping[str, Any] = {}
    capability: Mapping[str, Any] = {}


class _VolcanoQueueStatus(Camel):
    state: str = ""
    allocated: Mapping[str, Any] = {}
    pending: int = 0
    inqueue: int = 0
    running: int = 0


class _VolcanoQueue(Camel):
    metadata: Meta
    spec: _VolcanoQueueSpec = msgspec.field(default_factory=_VolcanoQueueSpec)
    status: _VolcanoQueueStatus = msgspec.field(default_factory=_VolcanoQueueStatus)


class _KaiShare(Camel):
    quota: float = 0.0


class _KaiQueueSpec(Camel):
    parent_queue: str = ""
    resources: Mapping[str, _KaiShare] = {}


class _KaiQueueStatus(Camel):
    allocated: Mapping[str, Any] = {}


class _KaiQueue(Camel):
    metadata: Meta
    spec: _KaiQueueSpec = msgspec.field(default_factory=_KaiQueueSpec)
    status: _KaiQueueStatus = msgspec.field(default_factory=_KaiQueueStatus)


class _TemplateSpec(Camel):
    containers: Sequence[ContainerJson] = ()


class _Template(Camel):
    spec: _TemplateSpec = msgspec.field(default_factory=_TemplateSpec)


class _PodSet(Camel):
    count: int = 1
    template: _Template = msgspec.field(default_factory=_Template)


class _WorkloadSpec(Camel):
    queue_name: str = ""
    pod_sets: Sequence[_PodSet] = ()


class _Admission(Camel):
    cluster_queue: str = ""


class _WorkloadStatus(Camel):
    admission: _Admission | None = None
    conditions: Sequence[Condition] = ()


class _WorkloadJson(Camel):
    metadata: Meta
    spec: _WorkloadSpec = msgspec.field(default_factory=_WorkloadSpec)
    status: _WorkloadStatus = msgspec.field(default_factory=_WorkloadStatus)


class _GangPolicy(Camel):
    min_count: int = 0


class _SchedulingPolicy(Camel):
    gang: _GangPolicy | None = None


class _GroupSpec(Camel):
    min_member: int = 0
    scheduling_policy: _SchedulingPolicy | None = None
    """Of Kubernetes' own PodGroup."""
    queue: str = ""


class _GroupStatus(Camel):
    conditions: Sequence[Condition] = ()
    scheduling_conditions: Sequence[Condition] = ()


class _Group(Camel):
    metadata: Meta
    spec: _GroupSpec = msgspec.field(default_factory=_GroupSpec)
    status: _GroupStatus = msgspec.field(default_factory=_GroupStatus)


_cluster_queue = msgspec.json.Decoder(_ClusterQueue)
_local_queue = msgspec.json.Decoder(_LocalQueue)
_volcano_queue = msgspec.json.Decoder(_VolcanoQueue)
_kai_queue = msgspec.json.Decoder(_KaiQueue)
_workload = msgspec.json.Decoder(_WorkloadJson)
_group = msgspec.json.Decoder(_Group)


def cluster_queue(data: bytes) -> QueueFacts:
    found = decoded(_cluster_queue, data)
    spec, status = found.spec, found.status
    used = {
        (usage.name, each.name): (_amount(each.total), _amount(each.borrowed))
        for usage in status.flavors_reservation or status.flavors_usage
        for each in usage.resources
    }
    quotas = [
        QuotaFacts(
            shown(quota.name),
            shown(flavor.name),
            _amount(quota.nominal_quota),
            *used.get((flavor.name, quota.name), (0.0, 0.0)),
        )
        for group in spec.resource_groups
        for flavor in group.flavors
        for quota in flavor.resources
    ]
    inactive = next((one for one in status.conditions if one.type == "Active" and one.status == "False"), None)
    return QueueFacts(
        "ClusterQueue",
        shown(found.metadata.name),
        shown(spec.cohort_name or spec.cohort),
        _gpus_first(quotas),
        status.pending_workloads,
        status.admitted_workloads,
        "" if inactive is None else shown(inactive.message or inactive.reason),
        _wait_slo(found.metadata),
    )


def _wait_slo(meta: Meta) -> WaitSlo:
    found = wait_slo_of(meta.annotations)
    return msgspec.structs.replace(found, fault=shown(found.fault)) if found.fault else found


def local_queue(data: bytes) -> tuple[str, str, str]:
    """Namespace, name, and the ClusterQueue behind it."""
    found = decoded(_local_queue, data)
    return shown(found.metadata.namespace), shown(found.metadata.name), shown(found.spec.cluster_queue)


def volcano_queue(data: bytes) -> QueueFacts:
    found = decoded(_volcano_queue, data)
    spec, status = found.spec, found.status
    nominal = spec.deserved or spec.capability
    names = sorted({*nominal, *(name for name in status.allocated if name.startswith(_GPUS))})
    quotas = [
        _plain_quota(name, _amount(nominal[name]) if name in nominal else None, status.allocated) for name in names
    ]
    return QueueFacts(
        "Volcano",
        shown(found.metadata.name),
        shown(spec.parent),
        _gpus_first(quotas),
        status.pending,
        status.inqueue + status.running,
        "" if status.state in ("", "Open") else shown(f"its state is {status.state}"),
    )


def kai_queue(data: bytes) -> QueueFacts:
    found = decoded(_kai_queue, data)
    share = found.spec.resources.get("gpu")
    # KAI writes -1 for a queue without a limit.
    nominal = 0.0 if share is None else None if share.quota == _UNLIMITED else share.quota
    allocated = found.status.allocated
    return QueueFacts(
        "KAI",
        shown(found.metadata.name),
        shown(found.spec.parent_queue),
        (_plain_quota(_GPU, nominal, {_GPU: allocated.get(_GPU, allocated.get("gpu"))}),),
    )


def workload(data: bytes) -> WorkloadFacts:
    found = decoded(_workload, data)
    meta, status = found.metadata, found.status
    by_type = {one.type: one for one in status.conditions}
    refused = by_type.get("QuotaReserved")
    owner = next(iter(meta.owner_references), None)
    admission = status.admission
    is_finished = "Finished" in by_type and by_type["Finished"].status == "True"
    return WorkloadFacts(
        namespace=shown(meta.namespace),
        name=shown(meta.name),
        queue=shown(found.spec.queue_name),
        cluster_queue="" if admission is None else shown(admission.cluster_queue),
        owner=shown(f"{owner.kind.lower()}/{owner.name}") if owner is not None else "",
        pods=sum(pods.count for pods in found.spec.pod_sets),
        gpus=sum(pods.count * _gpus(pods.template.spec) for pods in found.spec.pod_sets),
        state="finished" if is_finished else "admitted" if admission is not None else "pending",
        why="" if admission is not None or refused is None else shown(_essence(refused.message or refused.reason)),
        created=shown(meta.creation_timestamp),
        reserved=_moment(refused, "True"),
        requeued=_moment(by_type.get("Requeued"), "True"),
        preemption=_preemption(by_type.get("Preempted")),
    )


def _moment(condition: Condition | None, status: str) -> str:
    return shown(condition.last_transition_time) if condition is not None and condition.status == status else ""


def _preemption(condition: Condition | None) -> PreemptionFacts | None:
    """Once it is admitted again, the condition is false, and its message begins with `Previously: `."""
    if condition is None or _PREEMPTOR not in condition.message:
        return None
    by, own = (_last_of_path(condition.message, words) for words in (_PREEMPTOR, _PREEMPTEE))
    return PreemptionFacts(by, own, shown(condition.reason), shown(condition.last_transition_time))


def _last_of_path(message: str, words: str) -> str:
    """The ClusterQueue at the end of `/cohort/queue`."""
    found = message.partition(words)[2].partition(";")[0].strip().rpartition("/")[2]
    return "" if found == "UNKNOWN" else shown(found)


def group(data: bytes) -> GroupFacts:
    """A PodGroup of Volcano, KAI, scheduler-plugins or Kubernetes."""
    found = decoded(_group, data)
    policy = found.spec.scheduling_policy
    of_policy = policy.gang.min_count if policy is not None and policy.gang is not None else 0
    conditions = [*found.status.conditions, *found.status.scheduling_conditions]
    refused = next((one for one in reversed(conditions) if one.message and _is_refusal(one)), None)
    return GroupFacts(
        shown(found.metadata.namespace),
        shown(found.metadata.name),
        max(0, found.spec.min_member, of_policy),
        shown(found.spec.queue),
        "" if refused is None else shown(refused.message),
        any(_is_refusal(one) and one.reason != NOT_READY for one in found.status.scheduling_conditions),
    )


def _essence(message: str) -> str:
    """Of Kueue's message what differs from Workload to Workload, so that it is seen in a narrow line."""
    return _ASSIGNMENT.sub("", message)


def _is_refusal(condition: Condition) -> bool:
    return condition.type.startswith("Unschedulable") and condition.status == "True"


def _plain_quota(resource: str, nominal: float | None, allocated: Mapping[str, Any]) -> QuotaFacts:
    used = _amount(allocated.get(resource))
    return QuotaFacts(shown(resource), "", nominal, used, 0.0 if nominal is None else max(0.0, used - nominal))


def _gpus_first(quotas: Sequence[QuotaFacts]) -> tuple[QuotaFacts, ...]:
    return tuple(sorted(quotas, key=lambda quota: not quota.resource.startswith(_GPUS))[:_MOST_QUOTAS])


def _gpus(spec: _TemplateSpec) -> float:
    return sum(
        _amount(value)
        for container in spec.containers
        for name, value in {**container.resources.requests, **container.resources.limits}.items()
        if name.startswith(_GPUS)
    )


def _amount(value: Any) -> float:
    if value is None:
        return 0.0
    try:
        return Quantity.parse(str(value)).nano / _NANO
    except (UserError, ValueError):
        return 0.0
