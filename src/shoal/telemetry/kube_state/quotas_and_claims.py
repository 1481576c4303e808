"""The series of ResourceQuotas and PersistentVolumeClaims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from shoal.api.meta import ObjectMeta
from shoal.api.wire import ApiStruct
from shoal.client.item import Item
from shoal.telemetry.kube_state.series import Family, add, amounts, exported, plain_amounts

_PHASES = ("Lost", "Bound", "Pending")


class _Amounts(ApiStruct, frozen=True):
    hard: Mapping[str, Any] = msgspec.field(default_factory=dict)
    used: Mapping[str, Any] = msgspec.field(default_factory=dict)


class _ShownQuota(ApiStruct, frozen=True):
    metadata: ObjectMeta
    status: _Amounts = _Amounts()


class _Requests(ApiStruct, frozen=True):
    requests: Mapping[str, Any] = msgspec.field(default_factory=dict)


class _ShownClaimSpec(ApiStruct, frozen=True):
    storage_class_name: str = ""
    volume_name: str = ""
    volume_mode: str = ""
    access_modes: tuple[str, ...] = ()
    resources: _Requests = _Requests()


class _ShownClaimStatus(ApiStruct, frozen=True):
    phase: str = ""


class _ShownClaim(ApiStruct, frozen=True):
    metadata: ObjectMeta
    spec: _ShownClaimSpec = _ShownClaimSpec()
    status: _ShownClaimStatus = _ShownClaimStatus()


def resource_quota_series(item: Item) -> Family:
    """Raises msgspec.DecodeError for an object that is no ResourceQuota."""
    quota = item.read(_ShownQuota)
    meta = quota.metadata
    found: Family = {}
    own = (("namespace", meta.namespace), ("resourcequota", meta.name))
    if meta.creation_timestamp is not None:
        add(found, "kube_resourcequota_created", own, meta.creation_timestamp.timestamp())
    for type_, resources in (("hard", quota.status.hard), ("used", quota.status.used)):
        # The names of resources are not changed there: `requests.nvidia.com/gpu`.
        for resource, value in plain_amounts(resources):
            add(found, "kube_resourcequota", (*own, ("resource", resource), ("type", type_)), value)
    return found


def volume_claim_series(item: Item) -> Family:
    """Raises msgspec.DecodeError for an object that is no PersistentVolumeClaim."""
    claim = item.read(_ShownClaim)
    meta, spec = claim.metadata, claim.spec
    found: Family = {}
    own = (("namespace", meta.namespace), ("persistentvolumeclaim", meta.name))
    info = (
        ("storageclass", spec.storage_class_name),
        ("volumename", spec.volume_name),
        ("volumemode", spec.volume_mode),
    )
    add(found, "kube_persistentvolumeclaim_info", (*own, *info))
    add(found, "kube_persistentvolumeclaim_labels", (*own, *exported(meta.labels)))
    if meta.creation_timestamp is not None:
        add(found, "kube_persistentvolumeclaim_created", own, meta.creation_timestamp.timestamp())
    if claim.status.phase:
        for phase in _PHASES:
            labels = (*own, ("phase", phase))
            add(found, "kube_persistentvolumeclaim_status_phase", labels, phase == claim.status.phase)
    for resource, _, value in amounts(spec.resources.requests):
        if resource == "storage":
            add(found, "kube_persistentvolumeclaim_resource_requests_storage_bytes", own, value)
    for mode in spec.access_modes:
        add(found, "kube_persistentvolumeclaim_access_mode", (*own, ("access_mode", mode)))
    return found
