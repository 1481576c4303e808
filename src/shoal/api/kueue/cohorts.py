"""Cohorts: cluster queues that lend each other what they do not use, and cohorts of cohorts.

A cohort that a cluster queue names exists without an object; the object is only for a parent, a weight or a quota that
all of its members share. Whether the parents lead in a circle takes all cohorts to see, so it is not asked here.
"""

from __future__ import annotations

from msgspec import field

from shoal.api.kueue.group_rules import QuotaOwner, check_groups
from shoal.api.kueue.quotas import FairSharing, ResourceGroup
from shoal.api.kueue.references import check_reference
from shoal.api.meta import ObjectMeta
from shoal.api.validity import check_meta
from shoal.api.wire import ApiStruct
from shoal.units.errors import UserError, Where


class CohortSpec(ApiStruct, frozen=True):
    parent_name: str = ""
    resource_groups: tuple[ResourceGroup, ...] = ()
    fair_sharing: FairSharing = field(default_factory=FairSharing)


class Cohort(ApiStruct, frozen=True):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: CohortSpec = field(default_factory=CohortSpec)


def check_cohort(cohort: Cohort, where: Where) -> None:
    check_meta(cohort.metadata, where.below("metadata"))
    spec, where = cohort.spec, where.below("spec")
    if spec.parent_name:
        check_reference(spec.parent_name, where.below("parentName"))
        if spec.parent_name == cohort.metadata.name:
            raise UserError("a cohort cannot be its own parent", where=where.below("parentName"))
    owner = QuotaOwner(has_parent=bool(spec.parent_name), parent_field="spec.parentName", lends_own_only=False)
    check_groups(spec.resource_groups, owner, where.below("resourceGroups"))
    spec.fair_sharing.check(where.below("fairSharing"))
