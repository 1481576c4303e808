"""Defines what the grouping rules read and return: an owner with its pod, and the gang of the owner's pods.

A subgroup is listed only if the gang needs pods of it; other pods count only for the whole. An error in an owner is a
user error, which is reported on its pods, and they wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from shoal.controllers.kai.workload_object import WorkloadObject
from shoal.units.errors import UserError, Where, excerpt

TRAIN, BUILD, INFERENCE = "train", "build", "inference"
MINIMUM_KEY = "kai.scheduler/batch-min-member"
SET_MINIMUM_KEY = "kai.scheduler/min-member"
TOPOLOGY_KEYS = {
    "topology": "kai.scheduler/topology",
    "requiredTopologyLevel": "kai.scheduler/topology-required-placement",
    "preferredTopologyLevel": "kai.scheduler/topology-preferred-placement",
}


class SubGroup(msgspec.Struct, frozen=True):
    name: str
    minimum: int = 0
    """Zero for a subgroup with subgroups, all of which it needs."""
    parent: str = ""
    topology_constraint: dict[str, str] = {}
    """The fields of `topologyConstraint`."""


class GroupingResult(msgspec.Struct, frozen=True):
    minimum: int = 1
    sub_groups: tuple[SubGroup, ...] = ()
    sub_group: str = ""
    """The subgroup of the pod."""
    suffix: str = ""
    """Distinguishes the groups of an owner that has several."""
    priority: str = TRAIN
    """The default priority class."""
    is_per_pod: bool = False
    """Whether each pod has its own group, which is deleted with it."""


class GroupingInput(msgspec.Struct, frozen=True):
    """The input of a grouping rule."""

    pod: WorkloadObject
    owner: WorkloadObject
    """The owner of the group."""
    chain: tuple[WorkloadObject, ...] = ()
    """All owners of the pod."""
    cluster: WorkloadObject | None = None
    """For Ray: the RayCluster of the pod."""


def minimum_of(owner: WorkloadObject, key: str, default: int) -> int:
    """The minimum from an annotation."""
    text = owner.annotations.get(key)
    return default if text is None else positive_number(text, f"{owner.kind} {owner.namespace}/{owner.name}", key)


def positive_number(text: str, obj: str, key: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 8 else 0
    if number < 1:
        where = Where(obj=obj).with_path(f"metadata.annotations[{key}]")
        raise UserError(f"{excerpt(text)} is not a whole number above zero", where=where)
    return number


def with_sub_groups(minimum: int, counts: Mapping[str, int], sub_group: str) -> GroupingResult:
    sub_groups = tuple(SubGroup(name, count) for name, count in counts.items() if count > 0)
    return GroupingResult(minimum, sub_groups, sub_group if counts.get(sub_group, 0) > 0 else "")


def topology_constraint(annotations: Mapping[str, Any]) -> dict[str, str]:
    """The topology constraint from annotations; empty if no level is named."""
    found = {
        field: text for field, key in TOPOLOGY_KEYS.items() if isinstance(text := annotations.get(key), str) and text
    }
    return found if len(found) > 1 and "topology" in found else {}


def no_replicas(owner: WorkloadObject, path: str) -> UserError:
    return UserError(
        "has no replicas, so no PodGroup can be created",
        where=Where(obj=f"{owner.kind} {owner.namespace}/{owner.name}").with_path(path),
    )
