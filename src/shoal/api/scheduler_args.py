"""Arguments of the scheduler plugins Shoal understands, as kube-scheduler defaults and checks them.

Unknown fields are refused here, unlike everywhere else: in a hand-written configuration a misspelt field is a
setting that silently does nothing.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from shoal.api.affinity import TopologySpreadConstraint, check_spread
from shoal.api.names import label_key_fault
from shoal.api.node_affinity import NodeAffinity
from shoal.api.wire import ApiStruct
from shoal.units.errors import UserError, Where, excerpt

Strategy = Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]


class Args(ApiStruct, frozen=True, forbid_unknown_fields=True):
    """An args object may repeat what it is; `name` of the plugin decides."""

    api_version: str = ""
    kind: str = ""

    def check(self, where: Where) -> None:
        """Refuse what kube-scheduler refuses beyond types and ranges."""


class ResourceWeight(ApiStruct, frozen=True, forbid_unknown_fields=True):
    name: str
    weight: Annotated[int, Meta(ge=0, le=100)] = 1

    @property
    def share(self) -> int:
        """A weight of zero means the default, as kube-scheduler has it."""
        return self.weight or 1


CPU_AND_MEMORY = (ResourceWeight("cpu"), ResourceWeight("memory"))


class ShapePoint(ApiStruct, frozen=True, forbid_unknown_fields=True):
    """A score from 0 to 10 at a utilization in percent; between points the line is straight."""

    utilization: Annotated[int, Meta(ge=0, le=100)]
    score: Annotated[int, Meta(ge=0, le=10)]


class CapacityRatio(ApiStruct, frozen=True, forbid_unknown_fields=True):
    shape: tuple[ShapePoint, ...] = ()


class ScoringStrategy(ApiStruct, frozen=True, forbid_unknown_fields=True):
    type: Strategy = "LeastAllocated"
    resources: tuple[ResourceWeight, ...] = CPU_AND_MEMORY
    requested_to_capacity_ratio: CapacityRatio | None = None

    def weights(self) -> tuple[tuple[str, int], ...]:
        return tuple((r.name, r.share) for r in self.resources or CPU_AND_MEMORY)

    def shape(self) -> tuple[tuple[int, int], ...]:
        """(utilization, score) points; empty for the strategies that have none."""
        ratio = self.requested_to_capacity_ratio
        return tuple((p.utilization, p.score) for p in ratio.shape) if ratio is not None else ()

    def check(self, where: Where) -> None:
        _check_names(self.resources, where.below("resources"))
        here = where.below("requestedToCapacityRatio")
        if self.type != "RequestedToCapacityRatio":
            if self.requested_to_capacity_ratio is not None:
                raise UserError("is only for type RequestedToCapacityRatio", where=here)
            return
        points = self.shape()
        if not points:
            raise UserError("at least one point must be specified", where=here.below("shape"))
        for index in range(1, len(points)):
            if points[index - 1][0] >= points[index][0]:
                raise UserError(
                    "values must be sorted in increasing order",
                    where=here.below(f"shape[{index}].utilization"),
                )


class NodeResourcesFitArgs(Args, frozen=True, forbid_unknown_fields=True):
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = field(default_factory=ScoringStrategy)

    def check(self, where: Where) -> None:
        for index, name in enumerate(self.ignored_resources):
            _check_label_key(name, where.below(f"ignoredResources[{index}]"))
        for index, group in enumerate(self.ignored_resource_groups):
            if "/" in group:
                here = where.below(f"ignoredResourceGroups[{index}]")
                raise UserError(f"resource group name can't contain '/', got {excerpt(group)}", where=here)
        self.scoring_strategy.check(where.below("scoringStrategy"))

    def is_ignored(self, resource: str) -> bool:
        return resource in self.ignored_resources or resource.split("/", maxsplit=1)[0] in self.ignored_resource_groups


class BalancedAllocationArgs(Args, frozen=True, forbid_unknown_fields=True):
    resources: tuple[ResourceWeight, ...] = CPU_AND_MEMORY

    def names(self) -> tuple[str, ...]:
        return tuple(r.name for r in self.resources or CPU_AND_MEMORY)

    def check(self, where: Where) -> None:
        _check_names(self.resources, where.below("resources"))
        for index, resource in enumerate(self.resources):
            if resource.share != 1:
                here = where.below(f"resources[{index}].weight")
                raise UserError(f"must be 1, got {resource.weight}", where=here)


class NodeAffinityArgs(Args, frozen=True, forbid_unknown_fields=True):
    """Affinity that every pod of the profile has besides its own."""

    added_affinity: NodeAffinity | None = None

    def check(self, where: Where) -> None:
        if self.added_affinity is not None:
            self.added_affinity.check(where.below("addedAffinity"))


class TopologySpreadArgs(Args, frozen=True, forbid_unknown_fields=True):
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: Literal["System", "List", ""] = "System"

    def check(self, where: Where) -> None:
        here = where.below("defaultConstraints")
        if self.default_constraints and self.defaulting_type != "List":
            raise UserError("must be List when defaultConstraints are given", where=where.below("defaultingType"))
        check_spread(self.default_constraints, here)
        for index, constraint in enumerate(self.default_constraints):
            if constraint.label_selector is not None:
                raise UserError(
                    "constraint must not define a selector, as they are deduced for each pod",
                    where=here.below(f"[{index}].labelSelector"),
                )


class InterPodAffinityArgs(Args, frozen=True, forbid_unknown_fields=True):
    hard_pod_affinity_weight: Annotated[int, Meta(ge=0, le=100)] = 1
    ignore_preferred_terms_of_existing_pods: bool = False


def _check_names(resources: tuple[ResourceWeight, ...], where: Where) -> None:
    seen: set[str] = set()
    for index, resource in enumerate(resources):
        here = where.below(f"[{index}].name")
        _check_label_key(resource.name, here)
        if resource.name in seen:
            raise UserError(f"{excerpt(resource.name)} is named twice", where=here)
        seen.add(resource.name)


def _check_label_key(name: str, where: Where) -> None:
    if fault := label_key_fault(name):
        raise UserError(f"{excerpt(name)} is not a resource name: {fault}", where=where)
