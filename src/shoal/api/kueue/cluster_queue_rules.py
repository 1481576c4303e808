"""Checks cluster queues for the contradictions that Kueue's webhook and schema refuse without looking at other objects.

A flavor or a cohort that does not exist is no such contradiction: the queue waits for it, and callers that know the
cluster report it.
"""

from __future__ import annotations

from shoal.api.kueue.cluster_queues import (
    AdmissionCheckRule,
    ClusterQueue,
    ClusterQueuePreemption,
    ClusterQueueSpec,
    FlavorFungibility,
)
from shoal.api.kueue.group_rules import QuotaOwner, check_groups
from shoal.api.kueue.lists import check_most
from shoal.api.kueue.references import check_reference
from shoal.api.validity import check_meta
from shoal.units.errors import UserError, Where, excerpt

MOST_CHECKS = 64
MOST_FLAVORS = 64
LONGEST_CHECK = 316


def check_cluster_queue(queue: ClusterQueue, where: Where) -> None:
    check_meta(queue.metadata, where.below("metadata"))
    spec, where = queue.spec, where.below("spec")
    if spec.cohort_name:
        check_reference(spec.cohort_name, where.below("cohortName"))
    if spec.cohort and spec.cohort != spec.cohort_name:
        what = f"says {excerpt(spec.cohort)} where cohortName says {excerpt(spec.cohort_name)}"
        raise UserError(what, where=where.below("cohort"), fix="keep cohortName")
    owner = QuotaOwner(has_parent=bool(spec.cohort_name), parent_field="spec.cohortName", lends_own_only=True)
    check_groups(spec.resource_groups, owner, where.below("resourceGroups"))
    if spec.namespace_selector is not None:
        spec.namespace_selector.check(where.below("namespaceSelector"))
    _check_preemption(spec.preemption, where.below("preemption"))
    _check_fungibility(spec.flavor_fungibility, where.below("flavorFungibility"))
    _check_checks(spec.admission_checks_strategy.admission_checks, where.below("admissionChecksStrategy"))
    spec.fair_sharing.check(where.below("fairSharing"))
    _check_migration(spec, where.below("concurrentAdmissionPolicy.migration.constraints.lastAcceptableFlavorName"))


def _check_preemption(preemption: ClusterQueuePreemption, where: Where) -> None:
    borrow = preemption.borrow_within_cohort
    if borrow is None:
        return
    if borrow.policy != "Never" and preemption.reclaim_within_cohort == "Never":
        raise UserError(
            f"{borrow.policy} contradicts reclaimWithinCohort: Never",
            where=where.below("borrowWithinCohort.policy"),
            fix="let reclaimWithinCohort be LowerPriority or Any, or leave borrowWithinCohort out",
        )


def _check_fungibility(fungibility: FlavorFungibility, where: Where) -> None:
    """Where the search may stop at the first flavor there is nothing to prefer."""
    both = {fungibility.when_can_borrow, fungibility.when_can_preempt}
    if fungibility.preference and both != {"TryNextFlavor"}:
        raise UserError(
            "is only for whenCanBorrow and whenCanPreempt both TryNextFlavor",
            where=where.below("preference"),
            fix="leave it out or set both to TryNextFlavor",
        )


def _check_checks(rules: tuple[AdmissionCheckRule, ...], where: Where) -> None:
    where = where.below("admissionChecks")
    check_most(rules, MOST_CHECKS, where)
    seen: set[str] = set()
    for index, rule in enumerate(rules):
        here = where.below(f"[{index}]")
        if not rule.name:
            raise UserError("is required", where=here.below("name"))
        if len(rule.name) > LONGEST_CHECK:
            raise UserError(f"must be no more than {LONGEST_CHECK} characters", where=here.below("name"))
        if rule.name in seen:
            raise UserError(f"{excerpt(rule.name)} is named twice", where=here.below("name"))
        seen.add(rule.name)
        check_most(rule.on_flavors, MOST_FLAVORS, here.below("onFlavors"))
        for place, flavor in enumerate(rule.on_flavors):
            check_reference(flavor, here.below(f"onFlavors[{place}]"))


def _check_migration(spec: ClusterQueueSpec, where: Where) -> None:
    policy = spec.concurrent_admission_policy
    last = policy.migration.constraints.last_acceptable_flavor_name if policy is not None else ""
    if last and not any(flavor.name == last for group in spec.resource_groups for flavor in group.flavors):
        raise UserError(f"{excerpt(last)} is not one of the queue's flavors", where=where)
