"""Checks resource groups of cluster queues and cohorts as Kueue does.

The two differ in one thing: a cluster queue cannot lend more than its own, a cohort lends what its members leave over
as well.
"""

from __future__ import annotations

from dataclasses import dataclass

from shoal.api.kueue.amounts import check_bound
from shoal.api.kueue.lists import check_most, check_some
from shoal.api.kueue.quotas import FlavorQuotas, ResourceGroup, ResourceQuota
from shoal.api.kueue.references import check_reference
from shoal.api.names import label_key_fault
from shoal.units.errors import UserError, Where, excerpt

MOST_GROUPS = 16
MOST_IN_A_GROUP = 64
MOST_PAIRS = 512
MOST_IN_ALL = 256


@dataclass(frozen=True, slots=True)
class QuotaOwner:
    """Whose groups they are."""

    has_parent: bool
    parent_field: str
    lends_own_only: bool


def check_groups(groups: tuple[ResourceGroup, ...], owner: QuotaOwner, where: Where) -> None:
    check_most(groups, MOST_GROUPS, where)
    resources: dict[str, int] = {}
    flavors: dict[str, int] = {}
    for index, group in enumerate(groups):
        here = where.below(f"[{index}]")
        _check_sizes(group, here)
        for place, name in enumerate(group.covered_resources):
            _check_resource_name(name, here.below(f"coveredResources[{place}]"))
            _once(resources, name, index, here.below(f"coveredResources[{place}]"))
        for place, flavor in enumerate(group.flavors):
            check_reference(flavor.name, here.below(f"flavors[{place}].name"))
            _once(flavors, flavor.name, index, here.below(f"flavors[{place}].name"))
            _check_flavor(flavor, group.covered_resources, owner, here.below(f"flavors[{place}].resources"))
    for what, found in (("flavors", flavors), ("resources", resources)):
        if len(found) > MOST_IN_ALL:
            raise UserError(f"must have at most {MOST_IN_ALL} {what} in all, got {len(found)}", where=where)


def _check_sizes(group: ResourceGroup, where: Where) -> None:
    check_some(group.covered_resources, MOST_IN_A_GROUP, where.below("coveredResources"))
    check_some(group.flavors, MOST_IN_A_GROUP, where.below("flavors"))
    pairs = len(group.covered_resources) * len(group.flavors)
    if pairs > MOST_PAIRS:
        what = f"must have at most {MOST_PAIRS} pairs of flavor and resource, got {pairs}"
        raise UserError(what, where=where, fix="split the group")


def _check_flavor(flavor: FlavorQuotas, covered: tuple[str, ...], owner: QuotaOwner, where: Where) -> None:
    listed = tuple(quota.name for quota in flavor.resources)
    if listed != covered:
        missing = [name for name in covered if name not in listed]
        extra = [name for name in listed if name not in covered]
        what = f"flavor {excerpt(flavor.name)} must list the group's coveredResources, in their order"
        detail = f"{', '.join(missing)} is missing" if missing else f"{', '.join(extra)} is not covered"
        if not missing and not extra:
            detail = "they stand in another order" if len(listed) == len(covered) else "one is listed twice"
        raise UserError(f"{what}: {detail}", where=where, fix=f"list {', '.join(covered)}")
    for index, quota in enumerate(flavor.resources):
        _check_quota(quota, owner, where.below(f"[{index}]"))


def _check_quota(quota: ResourceQuota, owner: QuotaOwner, where: Where) -> None:
    for name, amount in (
        ("nominalQuota", quota.nominal_quota),
        ("borrowingLimit", quota.borrowing_limit),
        ("lendingLimit", quota.lending_limit),
    ):
        if amount is None:
            continue
        check_bound(quota.name, amount, where.below(name))
        if name != "nominalQuota" and not owner.has_parent:
            fix = f"set {owner.parent_field} or leave the limit out"
            raise UserError(f"means nothing without {owner.parent_field}", where=where.below(name), fix=fix)
    lent = quota.lending_limit
    if owner.lends_own_only and lent is not None and lent > quota.nominal_quota:
        what = f"must be at most the nominalQuota of {quota.nominal_quota}, got {lent}"
        raise UserError(what, where=where.below("lendingLimit"))


def _once(seen: dict[str, int], name: str, group: int, where: Where) -> None:
    if name in seen:
        what = "is named twice" if seen[name] == group else f"is already in resourceGroups[{seen[name]}]"
        raise UserError(f"{excerpt(name)} {what}", where=where, fix="each belongs to one group only")
    seen[name] = group


def _check_resource_name(name: str, where: Where) -> None:
    if fault := label_key_fault(name):
        raise UserError(f"{excerpt(name)} is not a resource name: {fault}", where=where)
