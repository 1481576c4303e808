"""The series of Deployments, StatefulSets, DaemonSets, ReplicaSets and Jobs."""

from __future__ import annotations

import msgspec

from shoal.api.conditions import Condition
from shoal.api.meta import ObjectMeta
from shoal.api.wire import ApiStruct, Timestamp
from shoal.client.item import Item
from shoal.telemetry.kube_state.series import Family, Labels, add, add_all, common_series

_VALUES = ("true", "false", "unknown")
_FAILURES = ("BackoffLimitExceeded", "DeadlineExceeded", "Evicted")
"""Reasons of a failed Job that have a series of their own."""


class _ScaledSpec(ApiStruct, frozen=True):
    replicas: int = 1
    paused: bool = False


class _ScaledStatus(ApiStruct, frozen=True):
    """Of all kinds with replicas; each has some of the fields."""

    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    updated_replicas: int = 0
    current_replicas: int = 0
    fully_labeled_replicas: int = 0
    observed_generation: int = 0
    conditions: tuple[Condition, ...] = ()


class _Scaled(ApiStruct, frozen=True):
    metadata: ObjectMeta
    spec: _ScaledSpec = _ScaledSpec()
    status: _ScaledStatus = _ScaledStatus()


class _DaemonStatus(ApiStruct, frozen=True):
    current_number_scheduled: int = 0
    desired_number_scheduled: int = 0
    number_available: int = 0
    number_misscheduled: int = 0
    number_ready: int = 0
    number_unavailable: int = 0
    updated_number_scheduled: int = 0
    observed_generation: int = 0


class _ShownDaemonSet(ApiStruct, frozen=True):
    metadata: ObjectMeta
    status: _DaemonStatus = _DaemonStatus()


class _ShownJobSpec(ApiStruct, frozen=True):
    parallelism: int | None = None
    completions: int | None = None
    active_deadline_seconds: int | None = None


class _ShownJobStatus(ApiStruct, frozen=True):
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    start_time: Timestamp | None = None
    completion_time: Timestamp | None = None
    conditions: tuple[Condition, ...] = ()


class _ShownJob(ApiStruct, frozen=True):
    metadata: ObjectMeta
    spec: _ShownJobSpec = _ShownJobSpec()
    status: _ShownJobStatus = _ShownJobStatus()


def deployment_series(item: Item) -> Family:
    """Raises msgspec.DecodeError for an object that is no Deployment."""
    one = item.read(_Scaled)
    found, own = common_series("deployment", one.metadata)
    status = one.status
    values = {
        "spec_replicas": one.spec.replicas,
        "spec_paused": one.spec.paused,
        "metadata_generation": one.metadata.generation,
        "status_observed_generation": status.observed_generation,
        "status_replicas": status.replicas,
        "status_replicas_ready": status.ready_replicas,
        "status_replicas_available": status.available_replicas,
        "status_replicas_unavailable": status.unavailable_replicas,
        "status_replicas_updated": status.updated_replicas,
    }
    add_all(found, "deployment", own, values)
    for condition in status.conditions:
        for value in _VALUES:
            labels = (*own, ("condition", condition.type), ("status", value))
            add(found, "kube_deployment_status_condition", labels, condition.status.lower() == value)
    return found


def stateful_set_series(item: Item) -> Family:
    """Raises msgspec.DecodeError for an object that is no StatefulSet."""
    one = item.read(_Scaled)
    found, own = common_series("statefulset", one.metadata)
    status = one.status
    values = {
        "replicas": one.spec.replicas,
        "metadata_generation": one.metadata.generation,
        "status_observed_generation": status.observed_generation,
        "status_replicas": status.replicas,
        "status_replicas_ready": status.ready_replicas,
        "status_replicas_available": status.available_replicas,
        "status_replicas_current": status.current_replicas,
        "status_replicas_updated": status.updated_replicas,
    }
    add_all(found, "statefulset", own, values)
    return found


def replica_set_series(item: Item) -> Family:
    """Raises msgspec.DecodeError for an object that is no ReplicaSet."""
    one = item.read(_Scaled)
    found, own = common_series("replicaset", one.metadata)
    status = one.status
    values = {
        "spec_replicas": one.spec.replicas,
        "metadata_generation": one.metadata.generation,
        "status_observed_generation": status.observed_generation,
        "status_replicas": status.replicas,
        "status_fully_labeled_replicas": status.fully_labeled_replicas,
        "status_ready_replicas": status.ready_replicas,
    }
    add_all(found, "replicaset", own, values)
    _add_owner(found, "replicaset", own, one.metadata)
    return found


def daemon_set_series(item: Item) -> Family:
    """Raises msgspec.DecodeError for an object that is no DaemonSet."""
    one = item.read(_ShownDaemonSet)
    found, own = common_series("daemonset", one.metadata)
    counts = {f"status_{name}": value for name, value in msgspec.structs.asdict(one.status).items()}
    add_all(found, "daemonset", own, {"metadata_generation": one.metadata.generation, **counts})
    return found


def job_series(item: Item) -> Family:
    """Raises msgspec.DecodeError for an object that is no Job."""
    one = item.read(_ShownJob)
    found, own = common_series("job", one.metadata, "job_name")
    spec, status = one.spec, one.status
    add(found, "kube_job_info", own)
    _add_owner(found, "job", own, one.metadata)
    for name in ("parallelism", "completions", "active_deadline_seconds"):
        value = getattr(spec, name)
        if value is not None:
            add(found, f"kube_job_spec_{name}", own, value)
    add_all(found, "job", own, {"status_active": status.active, "status_succeeded": status.succeeded})
    for name, moment in (("start", status.start_time), ("completion", status.completion_time)):
        if moment is not None:
            add(found, f"kube_job_status_{name}_time", own, moment.timestamp())
    reasons = {each.type: each.reason for each in status.conditions if each.status == "True"}
    failure = reasons.get("Failed", "")
    if status.failed and failure in _FAILURES:
        for reason in _FAILURES:
            add(found, "kube_job_status_failed", (*own, ("reason", reason)), failure == reason)
    else:
        add(found, "kube_job_status_failed", (*own, ("reason", "")), status.failed)
    for condition in status.conditions:
        ended = {"Complete": "complete", "Failed": "failed"}.get(condition.type)
        for value in _VALUES if ended else ():
            add(found, f"kube_job_{ended}", (*own, ("condition", value)), condition.status.lower() == value)
    return found


def _add_owner(found: Family, kind: str, own: Labels, meta: ObjectMeta) -> None:
    """One series for each owner; one with empty labels where there is none."""
    for owner in meta.owner_references:
        labels = (("owner_kind", owner.kind), ("owner_name", owner.name))
        is_controller = ("owner_is_controller", "true" if owner.controller else "false")
        add(found, f"kube_{kind}_owner", (*own, *labels, is_controller))
    if not meta.owner_references:
        none = (("owner_kind", ""), ("owner_name", ""), ("owner_is_controller", ""))
        add(found, f"kube_{kind}_owner", (*own, *none))
