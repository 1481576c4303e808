"""Kubernetes' own gangs: the Workload of v1alpha1 with groups inside, and PodGroup objects since v1alpha2.

A policy is `basic`, where every pod goes its own way, or `gang`, where `minCount` pods start together or
none does. How a group yields has two spellings: v1alpha2 says Pod or PodGroup, later versions Single or All;
each version takes its own words only.

The Workload of v1alpha2 and later is a template from which controllers make PodGroups. Schedulers do not
read it, so it has no type here.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from shoal.api.device_names import dns_label_fault
from shoal.api.meta import ObjectMeta
from shoal.api.names import label_key_fault
from shoal.api.pod import PodClaim, Priority, check_pod_claims
from shoal.api.validity import check_meta
from shoal.api.wire import ApiStruct
from shoal.units.errors import UserError, Where, excerpt

MOST_GROUPS = 8

_EARLY_MODES = ("Pod", "PodGroup")
_LATER_MODES = ("Single", "All")


class BasicPolicy(ApiStruct, frozen=True):
    """No promise about the pods as a group; it has no settings."""


class GangPolicy(ApiStruct, frozen=True):
    min_count: Annotated[int, Meta(ge=1, le=2**31 - 1)]


class SchedulingPolicy(ApiStruct, frozen=True):
    basic: BasicPolicy | None = None
    gang: GangPolicy | None = None

    def min_count(self) -> int:
        """How many pods start together; 0 where each goes its own way."""
        return self.gang.min_count if self.gang is not None else 0

    def check(self, where: Where) -> None:
        if (self.basic is None) == (self.gang is None):
            raise UserError("exactly one of basic and gang is required", where=where)


class WorkloadPodGroup(ApiStruct, frozen=True):
    name: str
    policy: SchedulingPolicy


class ControllerReference(ApiStruct, frozen=True):
    kind: str = ""
    name: str = ""
    api_group: str = ""


class WorkloadSpec(ApiStruct, frozen=True):
    pod_groups: tuple[WorkloadPodGroup, ...] = ()
    controller_ref: ControllerReference | None = None


class Workload(ApiStruct, frozen=True):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: WorkloadSpec = field(default_factory=WorkloadSpec)

    def group(self, name: str) -> WorkloadPodGroup | None:
        return next((group for group in self.spec.pod_groups if group.name == name), None)


class GroupTopologyConstraint(ApiStruct, frozen=True):
    """All pods of the group on nodes with one value of this label."""

    key: str


class SchedulingConstraints(ApiStruct, frozen=True):
    topology: tuple[GroupTopologyConstraint, ...] = ()


class PodGroupSpec(ApiStruct, frozen=True):
    scheduling_policy: SchedulingPolicy
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: Literal["Pod", "PodGroup", "Single", "All", ""] = ""
    priority_class_name: str = ""
    priority: Priority | None = None
    preemption_policy: Literal["PreemptLowerPriority", "Never"] = "PreemptLowerPriority"
    resource_claims: tuple[PodClaim, ...] = ()
    parent_composite_pod_group_name: str = ""

    def is_evicted_whole(self) -> bool:
        """Whether the pods of the group are taken from it all together or one at a time."""
        return self.disruption_mode in {"PodGroup", "All"}


class PodGroup(ApiStruct, frozen=True):
    spec: PodGroupSpec
    metadata: ObjectMeta = field(default_factory=ObjectMeta)


def check_workload(workload: Workload, where: Where) -> None:
    check_meta(workload.metadata, where.below("metadata"))
    groups, where = workload.spec.pod_groups, where.below("spec.podGroups")
    if not groups:
        raise UserError("at least one pod group is required", where=where)
    if len(groups) > MOST_GROUPS:
        raise UserError(f"must have at most {MOST_GROUPS} items, got {len(groups)}", where=where)
    names: set[str] = set()
    for index, group in enumerate(groups):
        here = where.below(f"[{index}]")
        if fault := dns_label_fault(group.name):
            raise UserError(f"{excerpt(group.name)} is not a group name: {fault}", where=here.below("name"))
        if group.name in names:
            raise UserError(f"{excerpt(group.name)} is named twice", where=here.below("name"))
        names.add(group.name)
        group.policy.check(here.below("policy"))


def check_pod_group(group: PodGroup, where: Where) -> None:
    _check_pod_group(group, where, _LATER_MODES)


def check_pod_group_v1alpha2(group: PodGroup, where: Where) -> None:
    _check_pod_group(group, where, _EARLY_MODES)


def _check_pod_group(group: PodGroup, where: Where, modes: tuple[str, ...]) -> None:
    check_meta(group.metadata, where.below("metadata"))
    spec, where = group.spec, where.below("spec")
    spec.scheduling_policy.check(where.below("schedulingPolicy"))
    if spec.disruption_mode and spec.disruption_mode not in modes:
        raise UserError(
            f"unsupported value {excerpt(spec.disruption_mode)} in this version",
            where=where.below("disruptionMode"),
            fix=f"supported values are {', '.join(modes)}",
        )
    if spec.scheduling_constraints is not None:
        for index, constraint in enumerate(spec.scheduling_constraints.topology):
            if fault := label_key_fault(constraint.key):
                here = where.below(f"schedulingConstraints.topology[{index}].key")
                raise UserError(f"{excerpt(constraint.key)} is not a label key: {fault}", where=here)
    check_pod_claims(spec.resource_claims, where.below("resourceClaims"))
