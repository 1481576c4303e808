"""Reads an NVIDIADriver (`nvidia.com/v1alpha1`): the driver of some of the nodes.

The fields of the driver are those of a ClusterPolicy; some have another name here and are translated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import field

from shoal.api.node_affinity import NodeAffinity
from shoal.operator.policy.operands import ConfigName, Obj, OffOperand, PolicyStruct
from shoal.operator.policy.reading import converted, unknown_fields, without_nulls
from shoal.operator.policy.spec import DriverFields
from shoal.operator.upgrades.policy import UpgradePolicy, parse_upgrade_policy
from shoal.units.errors import UserError, Where

_MOST_WARNINGS = 32


class DriverNodes(PolicyStruct, frozen=True):
    """The fields that a ClusterPolicy does not have in its driver."""

    driver_type: Literal["gpu", "vgpu", "vgpu-host-manager"] = "gpu"
    default: bool = False
    """Whether it is for the nodes that no other NVIDIADriver selects."""
    node_selector: dict[str, str] = field(default_factory=dict)
    node_affinity: NodeAffinity | None = None
    tolerations: tuple[Obj, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    priority_class_name: str = ""
    gds: OffOperand = OffOperand()
    gdrcopy: OffOperand = OffOperand()
    virtual_topology_config: ConfigName = ConfigName()

    def selects(self, name: str, labels: Mapping[str, str]) -> bool:
        required = self.node_affinity.required if self.node_affinity is not None else None
        return self.node_selector.items() <= labels.items() and (required is None or required.matches(name, labels))


class NvidiaDriver(msgspec.Struct, frozen=True):
    name: str
    created: str
    driver: DriverFields
    nodes: DriverNodes
    warnings: tuple[str, ...] = ()
    upgrade_policy: UpgradePolicy | None = None
    """Of its own; None: that of the ClusterPolicy."""


def read_nvidia_driver(name: str, created: str, written: Any) -> NvidiaDriver:
    """`written` is the value of `spec`. Raises `UserError`."""
    place = Where(path="spec")
    if not isinstance(written, Mapping | None):
        raise UserError("must be an object", where=place)
    given = without_nulls(written or {})
    nodes = converted(given, DriverNodes, place)
    driver = converted(_translated(given), DriverFields, place)
    if nodes.default and (nodes.node_selector or nodes.node_affinity):
        raise UserError(
            "selects nodes, and is the default of all others",
            where=place.below("default"),
            fix="remove nodeSelector and nodeAffinity, or set default to false",
        )
    if nodes.node_affinity is not None and nodes.node_affinity.required is not None:
        nodes.node_affinity.required.check(place.below("nodeAffinity"))
    known = {one.encode_name for type_ in (DriverNodes, DriverFields) for one in msgspec.structs.fields(type_)}
    warnings = unknown_fields(given, DriverFields, "spec", known)
    written_policy = given.get("upgradePolicy")
    policy = None if written_policy is None else parse_upgrade_policy(written_policy, place.below("upgradePolicy"))
    return NvidiaDriver(name, created, driver, nodes, tuple(warnings)[:_MOST_WARNINGS], policy)


def _translated(given: Mapping[str, Any]) -> dict[str, Any]:
    """With the names that the driver of a ClusterPolicy has."""
    found = dict(given)
    if "name" in (given.get("repoConfig") or {}):
        found["repoConfig"] = {"configMapName": given["repoConfig"]["name"]}
    if given.get("virtualTopologyConfig"):
        found["virtualTopology"] = {"config": given["virtualTopologyConfig"].get("name", "")}
    return found
