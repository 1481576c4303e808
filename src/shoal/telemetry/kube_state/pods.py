"""The series of a pod."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from shoal.api.conditions import Condition, find_condition
from shoal.api.meta import ObjectMeta
from shoal.api.wire import ApiStruct, Timestamp
from shoal.client.item import Item
from shoal.telemetry.kube_state.series import Family, add, amounts, exported

PHASES = ("Pending", "Succeeded", "Failed", "Unknown", "Running")
_STATES = ("running", "waiting", "terminated")


class _Resources(ApiStruct, frozen=True):
    requests: Mapping[str, Any] = msgspec.field(default_factory=dict)
    limits: Mapping[str, Any] = msgspec.field(default_factory=dict)


class _ShownContainer(ApiStruct, frozen=True):
    name: str = ""
    image: str = ""
    resources: _Resources = _Resources()


class _ClaimOf(ApiStruct, frozen=True):
    claim_name: str = ""


class _ShownVolume(ApiStruct, frozen=True):
    name: str = ""
    persistent_volume_claim: _ClaimOf | None = None


class _ShownPodSpec(ApiStruct, frozen=True):
    node_name: str = ""
    host_network: bool = False
    priority_class_name: str = ""
    volumes: tuple[_ShownVolume, ...] = ()
    containers: tuple[_ShownContainer, ...] = ()
    init_containers: tuple[_ShownContainer, ...] = ()


class _ReasonOf(ApiStruct, frozen=True):
    reason: str = ""


class _ShownState(ApiStruct, frozen=True):
    running: _ReasonOf | None = None
    waiting: _ReasonOf | None = None
    terminated: _ReasonOf | None = None


class _ShownContainerStatus(ApiStruct, frozen=True):
    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: _ShownState = _ShownState()


class _ShownPodStatus(ApiStruct, frozen=True):
    phase: str = ""
    reason: str = ""
    host_ip: str = msgspec.field(default="", name="hostIP")
    pod_ip: str = msgspec.field(default="", name="podIP")
    start_time: Timestamp | None = None
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[_ShownContainerStatus, ...] = ()


class _ShownPod(ApiStruct, frozen=True):
    metadata: ObjectMeta
    spec: _ShownPodSpec = _ShownPodSpec()
    status: _ShownPodStatus = _ShownPodStatus()


def pod_series(item: Item) -> Family:
    """Raises msgspec.DecodeError for an object that is no pod."""
    pod = item.read(_ShownPod)
    meta, spec, status = pod.metadata, pod.spec, pod.status
    found: Family = {}
    own = (("namespace", meta.namespace), ("pod", meta.name), ("uid", meta.uid))
    owner = meta.controller()
    kind, name = ("", "") if owner is None else (owner.kind, owner.name)
    info = (
        *own,
        ("host_ip", status.host_ip),
        ("pod_ip", status.pod_ip),
        ("node", spec.node_name),
        ("created_by_kind", kind),
        ("created_by_name", name),
        ("priority_class", spec.priority_class_name),
        ("host_network", str(spec.host_network).lower()),
    )
    add(found, "kube_pod_info", info)
    owned = (("owner_kind", kind), ("owner_name", name), ("owner_is_controller", "true" if owner is not None else ""))
    add(found, "kube_pod_owner", (*own, *owned))
    add(found, "kube_pod_labels", (*own, *exported(meta.labels)))
    for phase in PHASES:
        add(found, "kube_pod_status_phase", (*own, ("phase", phase)), phase == status.phase)
    if status.reason:
        add(found, "kube_pod_status_reason", (*own, ("reason", status.reason)))
    for series, condition in (("ready", "Ready"), ("scheduled", "PodScheduled")):
        one = find_condition(status.conditions, condition)
        if one is not None:
            for value in ("true", "false", "unknown"):
                add(found, f"kube_pod_status_{series}", (*own, ("condition", value)), one.status.lower() == value)
    scheduled = find_condition(status.conditions, "PodScheduled")
    if scheduled is not None and scheduled.reason == "Unschedulable":
        add(found, "kube_pod_status_unschedulable", own)
    for series, moment in (("created", meta.creation_timestamp), ("start_time", status.start_time)):
        if moment is not None:
            add(found, f"kube_pod_{series}", own, moment.timestamp())
    for volume in spec.volumes:
        if volume.persistent_volume_claim is not None:
            claim = ("persistentvolumeclaim", volume.persistent_volume_claim.claim_name)
            add(found, "kube_pod_spec_volumes_persistentvolumeclaims_info", (*own, ("volume", volume.name), claim))
    _add_containers(found, own, pod)
    return found


def _add_containers(found: Family, own: tuple[tuple[str, str], ...], pod: _ShownPod) -> None:
    node = ("node", pod.spec.node_name)
    for prefix, containers in (("kube_pod", pod.spec.containers), ("kube_pod_init", pod.spec.init_containers)):
        for one in containers:
            named = (*own, ("container", one.name))
            add(found, f"{prefix}_container_info", (*named, ("image_spec", one.image)))
            for series, resources in (("requests", one.resources.requests), ("limits", one.resources.limits)):
                for resource, unit, value in amounts(resources):
                    labels = (*named, node, ("resource", resource), ("unit", unit))
                    add(found, f"{prefix}_container_resource_{series}", labels, value)
    for status in pod.status.container_statuses:
        named = (*own, ("container", status.name))
        add(found, "kube_pod_container_status_ready", named, status.ready)
        add(found, "kube_pod_container_status_restarts_total", named, status.restart_count)
        for state in _STATES:
            present = getattr(status.state, state)
            add(found, f"kube_pod_container_status_{state}", named, present is not None)
            if present is not None and present.reason:
                labels = (*named, ("reason", present.reason))
                add(found, f"kube_pod_container_status_{state}_reason", labels)
