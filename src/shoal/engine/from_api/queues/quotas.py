"""Converts cluster queues, cohorts and local queues to facts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shoal.api.kueue import ClusterQueue, Cohort, LocalQueue
from shoal.api.kueue.cluster_queues import ClusterQueueSpec
from shoal.api.kueue.quotas import FairSharing
from shoal.api.kueue.quotas import ResourceGroup as ApiGroup
from shoal.api.meta import ObjectMeta
from shoal.api.resources import CPU
from shoal.api.selectors import selector_of
from shoal.api.wire import Quantities
from shoal.engine.from_api.queues.wait_slo import wait_slo_of
from shoal.engine.queues.admission_checks import AdmissionCheckRule
from shoal.engine.queues.facts import (
    ClusterQueueFacts,
    CohortFacts,
    FlavorQuotas,
    Fungibility,
    LocalQueueFacts,
    PreemptionRules,
    Quota,
    ResourceGroup,
    Stop,
)
from shoal.units.quantity import NANO, Quantity


def cluster_queue_facts_of(queue: ClusterQueue) -> ClusterQueueFacts:
    spec = queue.spec
    fungibility = spec.flavor_fungibility
    return ClusterQueueFacts(
        name=queue.metadata.name,
        cohort=spec.cohort_name,
        groups=_groups(spec.resource_groups),
        strategy=spec.queueing_strategy,
        namespaces=selector_of(spec.namespace_selector),
        fungibility=Fungibility(fungibility.when_can_borrow, fungibility.when_can_preempt, fungibility.preference),
        preemption=_preemption(spec),
        checks=tuple(
            AdmissionCheckRule(rule.name, rule.on_flavors) for rule in spec.admission_checks_strategy.admission_checks
        ),
        stop=_stop(spec.stop_policy, queue.metadata),
        weight=_weight(spec.fair_sharing),
        by_usage=spec.has_usage_based_admission(),
        wait_slo_s=wait_slo_of(queue.metadata.annotations).seconds,
    )


def cohort_facts_of(cohort: Cohort) -> CohortFacts:
    spec = cohort.spec
    return CohortFacts(
        cohort.metadata.name, spec.parent_name, _groups(spec.resource_groups), _weight(spec.fair_sharing)
    )


def local_queue_facts_of(queue: LocalQueue, resource_weights: Mapping[str, float]) -> LocalQueueFacts:
    """`resource_weights` are those of admission fair sharing."""
    reported = queue.status.fair_sharing
    sharing = reported.admission_fair_sharing_status if reported is not None else None
    return LocalQueueFacts(
        key=queue.metadata.key,
        cluster_queue=queue.spec.cluster_queue,
        stop=_stop(queue.spec.stop_policy, queue.metadata),
        weight=_weight(queue.spec.fair_sharing),
        used=None if sharing is None else _weighted(sharing.consumed_resources, resource_weights),
        consumed={} if sharing is None else {name: q.nano / NANO for name, q in sharing.consumed_resources.items()},
    )


def _groups(groups: Iterable[ApiGroup]) -> tuple[ResourceGroup, ...]:
    return tuple(
        ResourceGroup(
            group.covered_resources,
            tuple(
                FlavorQuotas(
                    flavor.name,
                    {
                        each.name: Quota(
                            _amount(each.name, each.nominal_quota),
                            _optional(each.name, each.borrowing_limit),
                            _optional(each.name, each.lending_limit),
                        )
                        for each in flavor.resources
                    },
                )
                for flavor in group.flavors
            ),
        )
        for group in groups
    )


def _preemption(spec: ClusterQueueSpec) -> PreemptionRules:
    rules = spec.preemption
    borrow = rules.borrow_within_cohort
    return PreemptionRules(
        within=rules.within_cluster_queue,
        reclaim=rules.reclaim_within_cohort,
        borrow="Never" if borrow is None else borrow.policy,
        borrow_threshold=None if borrow is None else borrow.max_priority_threshold,
    )


def _stop(policy: Stop, meta: ObjectMeta) -> Stop:
    """A queue that is being deleted admits no more workloads, and keeps the admitted ones."""
    return "Hold" if policy == "None" and meta.deletion_timestamp is not None else policy


def _weight(sharing: FairSharing) -> float:
    return sharing.weight.nano / NANO


def _weighted(consumed: Quantities, weights: Mapping[str, float]) -> float:
    """In cores and whole units; a resource without a weight has weight 1."""
    return sum(weights.get(name, 1.0) * quantity.nano / NANO for name, quantity in sorted(consumed.items()))


def _optional(name: str, quantity: Quantity | None) -> int | None:
    return None if quantity is None else _amount(name, quantity)


def _amount(name: str, quantity: Quantity) -> int:
    return quantity.milli_value() if name == CPU else quantity.value()
