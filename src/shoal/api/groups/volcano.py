"""Volcano's PodGroup: how many members must start together, role by role, and how near to each other.

Tiers are those of HyperNodes, where a smaller number is a faster network. `hard` keeps the group inside one
HyperNode of at most the named tier, `soft` only prefers that.

Counts below zero are refused, counts of zero ask for nothing. A tier or a queue that does not exist is no
fault of the spelling, so it is left to callers that know the cluster.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from shoal.api.meta import ObjectMeta
from shoal.api.names import label_key_fault
from shoal.api.resource_rules import check_amounts
from shoal.api.selectors import LabelSelector
from shoal.api.validity import check_meta
from shoal.api.wire import ApiStruct, Quantities
from shoal.units.errors import UserError, Where, excerpt

GROUP_ANNOTATION = "scheduling.k8s.io/group-name"
"""On a pod: the PodGroup of its namespace that it belongs to."""

Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class NetworkTopology(ApiStruct, frozen=True):
    mode: Literal["hard", "soft"] = "hard"
    highest_tier_allowed: Count | None = None
    highest_tier_name: str = ""

    def is_required(self) -> bool:
        return self.mode == "hard"

    def check(self, where: Where) -> None:
        if self.highest_tier_allowed is not None and self.highest_tier_name:
            raise UserError("highestTierAllowed and highestTierName cannot be both set", where=where)


class SubGroupPolicy(ApiStruct, frozen=True):
    """Members that the selector finds, split by the values of the label keys into groups of one size."""

    name: str
    label_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    sub_group_size: Count | None = None
    min_sub_groups: Count | None = None
    network_topology: NetworkTopology | None = None

    def check(self, where: Where) -> None:
        if not self.name:
            raise UserError("is required", where=where.below("name"))
        if self.label_selector is not None:
            self.label_selector.check(where.below("labelSelector"))
        for index, key in enumerate(self.match_label_keys):
            here = where.below(f"matchLabelKeys[{index}]")
            if fault := label_key_fault(key):
                raise UserError(f"{excerpt(key)} is not a label key: {fault}", where=here)
            if key in self.match_label_keys[:index]:
                raise UserError(f"{excerpt(key)} is named twice", where=here)
        if self.network_topology is not None:
            self.network_topology.check(where.below("networkTopology"))


class VolcanoPodGroupSpec(ApiStruct, frozen=True):
    min_member: Count = 0
    min_task_member: dict[str, Count] = field(default_factory=dict)
    queue: str = ""
    priority_class_name: str = ""
    min_resources: Quantities = field(default_factory=dict)
    network_topology: NetworkTopology | None = None
    sub_group_policy: tuple[SubGroupPolicy, ...] = ()

    def role_minima(self) -> dict[str, int]:
        """They hold only where they do not ask for more together than the group itself; as in Volcano."""
        wanted = {role: least for role, least in self.min_task_member.items() if least}
        return wanted if sum(wanted.values()) <= self.min_member else {}


class VolcanoPodGroupStatus(ApiStruct, frozen=True):
    phase: str = ""
    running: int = 0
    succeeded: int = 0
    failed: int = 0


class VolcanoPodGroup(ApiStruct, frozen=True):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: VolcanoPodGroupSpec = field(default_factory=VolcanoPodGroupSpec)
    status: VolcanoPodGroupStatus = field(default_factory=VolcanoPodGroupStatus)


def check_volcano_pod_group(group: VolcanoPodGroup, where: Where) -> None:
    check_meta(group.metadata, where.below("metadata"))
    spec, where = group.spec, where.below("spec")
    check_amounts(spec.min_resources, where.below("minResources"))
    if spec.network_topology is not None:
        spec.network_topology.check(where.below("networkTopology"))
    names: set[str] = set()
    for index, policy in enumerate(spec.sub_group_policy):
        here = where.below(f"subGroupPolicy[{index}]")
        policy.check(here)
        if policy.name in names:
            raise UserError(f"{excerpt(policy.name)} is named twice", where=here.below("name"))
        names.add(policy.name)
