"""The series of a node, and of a namespace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from shoal.api.conditions import Condition
from shoal.api.meta import ObjectMeta
from shoal.api.wire import ApiStruct
from shoal.client.item import Item
from shoal.telemetry.kube_state.series import Family, add, amounts, exported

_ROLE = "node-role.kubernetes.io/"


class _ShownTaint(ApiStruct, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class _ShownNodeSpec(ApiStruct, frozen=True):
    unschedulable: bool = False
    provider_id: str = msgspec.field(default="", name="providerID")
    pod_cidr: str = msgspec.field(default="", name="podCIDR")
    taints: tuple[_ShownTaint, ...] = ()


class _ShownNodeInfo(ApiStruct, frozen=True):
    kernel_version: str = ""
    os_image: str = ""
    container_runtime_version: str = ""
    kubelet_version: str = ""
    system_uuid: str = msgspec.field(default="", name="systemUUID")


class _ShownNodeStatus(ApiStruct, frozen=True):
    capacity: Mapping[str, Any] = msgspec.field(default_factory=dict)
    allocatable: Mapping[str, Any] = msgspec.field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    node_info: _ShownNodeInfo = _ShownNodeInfo()


class _ShownNode(ApiStruct, frozen=True):
    metadata: ObjectMeta
    spec: _ShownNodeSpec = _ShownNodeSpec()
    status: _ShownNodeStatus = _ShownNodeStatus()


class _PhaseOf(ApiStruct, frozen=True):
    phase: str = ""


class _ShownNamespace(ApiStruct, frozen=True):
    metadata: ObjectMeta
    status: _PhaseOf = _PhaseOf()


def node_series(item: Item) -> Family:
    """Raises msgspec.DecodeError for an object that is no node."""
    node = item.read(_ShownNode)
    meta, spec, status, info = node.metadata, node.spec, node.status, node.status.node_info
    found: Family = {}
    own = (("node", meta.name),)
    facts = (
        ("kernel_version", info.kernel_version),
        ("os_image", info.os_image),
        ("container_runtime_version", info.container_runtime_version),
        ("kubelet_version", info.kubelet_version),
        ("provider_id", spec.provider_id),
        ("pod_cidr", spec.pod_cidr),
        ("system_uuid", info.system_uuid),
    )
    add(found, "kube_node_info", (*own, *facts))
    add(found, "kube_node_labels", (*own, *exported(meta.labels)))
    if meta.creation_timestamp is not None:
        add(found, "kube_node_created", own, meta.creation_timestamp.timestamp())
    for key in meta.labels:
        if key.startswith(_ROLE):
            add(found, "kube_node_role", (*own, ("role", key.removeprefix(_ROLE))))
    add(found, "kube_node_spec_unschedulable", own, spec.unschedulable)
    for taint in spec.taints:
        labels = (*own, ("key", taint.key), ("value", taint.value), ("effect", taint.effect))
        add(found, "kube_node_spec_taint", labels)
    for one in status.conditions:
        for value in ("true", "false", "unknown"):
            told = (*own, ("condition", one.type), ("status", value))
            add(found, "kube_node_status_condition", told, one.status.lower() == value)
    for series, resources in (("capacity", status.capacity), ("allocatable", status.allocatable)):
        for resource, unit, amount in amounts(resources):
            add(found, f"kube_node_status_{series}", (*own, ("resource", resource), ("unit", unit)), amount)
    return found


def namespace_series(item: Item) -> Family:
    """Raises msgspec.DecodeError for an object that is no namespace."""
    namespace = item.read(_ShownNamespace)
    meta = namespace.metadata
    found: Family = {}
    own = (("namespace", meta.name),)
    add(found, "kube_namespace_labels", (*own, *exported(meta.labels)))
    for phase in ("Active", "Terminating"):
        add(found, "kube_namespace_status_phase", (*own, ("phase", phase)), namespace.status.phase == phase)
    if meta.creation_timestamp is not None:
        add(found, "kube_namespace_created", own, meta.creation_timestamp.timestamp())
    return found
