"""A case as facts of the queue engine: flavors, quotas, cohorts, nodes, and how the discipline is set.

Written against the engine's own values, not through manifests: the cases judge decisions, and a slip of the border
would hide behind them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from shoal.api.resources import PODS, amounts
from shoal.api.selectors import selector_of
from shoal.engine.queues import facts as q
from shoal.engine.queues.admission_checks import AdmissionCheckFacts, AdmissionCheckRule
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Fact, Queues
from shoal.engine.queues.topology_facts import QueueNode, TopologyLevels
from shoal.units.quantity import NANO, Quantity

from . import specs
from .case import Case, Node

_DURATION = re.compile(r"(?P<number>[0-9.]+)(?P<unit>ms|h|m|s)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_ENDED = ("Succeeded", "Failed")
_ADMITTED = "kueue.x-k8s.io/tas"
"""On pods whose workload says where they are: its admission accounts for them."""
_BY_USAGE = "UsageBasedAdmissionFairSharing"
_NO_QUEUE_USAGE = "AdmissionFairSharing"
"""The gate without which the setting of the same name does nothing."""


def queues_of(case: Case) -> Queues:
    """Everything but the workloads."""
    queues = Queues(settings_of(case))
    for namespace in case.namespaces:
        queues.put_namespace(namespace.name, namespace.labels)
    for fact in facts_of(case):
        queues.put(fact)
    queues.refresh()
    return queues


def settings_of(case: Case) -> Settings:
    config = case.config
    settings = Settings(gates=_gates(case))
    changes: dict[str, Any] = {"ignore_undeclared": config.resources.get("quotaCheckStrategy") == "IgnoreUndeclared"}
    if config.fair_sharing is not None and config.fair_sharing.enabled:
        changes["fair_sharing"] = True
        if config.fair_sharing.preemption_strategies:
            changes["fair_strategies"] = tuple(config.fair_sharing.preemption_strategies)
    usage = config.admission_fair_sharing
    gate = case.feature_gates.get(_NO_QUEUE_USAGE)
    if usage is not None and (gate is None or gate.value):
        changes["usage_half_life_s"] = seconds(usage.usage_half_life_time)
        changes["usage_sampling_s"] = seconds(usage.usage_sampling_interval)
        changes["usage_weights"] = usage.resource_weights
    if config.wait_for_pods_ready is not None and config.wait_for_pods_ready.enable:
        changes |= _readiness(config.wait_for_pods_ready)
    return msgspec.structs.replace(settings, **changes)


def seconds(duration: str) -> float:
    """`1h30m` and the like."""
    return sum(float(each["number"]) * _SECONDS[each["unit"]] for each in _DURATION.finditer(duration))


def facts_of(case: Case) -> Iterator[Fact]:
    """All that stands still, in an order in which nothing is mentioned before it is known."""
    for topology in case.topologies:
        yield TopologyLevels(topology.name, tuple(level.node_label for level in topology.spec.levels))
    for flavor in case.flavors:
        if flavor.name not in case.intentionally_missing:
            yield q.FlavorFacts(
                flavor.name, flavor.node_labels, flavor.node_taints, flavor.tolerations, flavor.topology_name
            )
    for check in case.admission_checks:
        yield AdmissionCheckFacts(check.name, check.controller_name, check.active)
    for cohort in case.cohorts:
        if not cohort.implicit:
            yield q.CohortFacts(
                cohort.name, cohort.spec.parent_name, _groups(cohort.spec.resource_groups), _weight(cohort.spec)
            )
    for queue in case.cluster_queues:
        yield _cluster_queue(queue)
    yield from _local_queues(case)
    for node in case.nodes:
        yield _node(case, node)


def _gates(case: Case) -> frozenset[str]:
    on = {name for name, gate in case.feature_gates.items() if gate.value}
    off = {name for name, gate in case.feature_gates.items() if not gate.value}
    return (Settings().gates | on) - off


def _readiness(config: specs.WaitForPodsReady) -> dict[str, Any]:
    requeuing = config.requeuing_strategy
    recovery = config.recovery_timeout
    return {
        "wait_for_pods_ready": True,
        "ready_timeout_s": seconds(config.timeout),
        "recovery_timeout_s": None if recovery is None else seconds(recovery),
        "block_admission": config.block_admission,
        "requeue_by": requeuing.timestamp,
        "backoff_limit": requeuing.backoff_limit_count,
        "backoff_base_s": requeuing.backoff_base_seconds,
        "backoff_most_s": requeuing.backoff_max_seconds,
    }


def _cluster_queue(queue: specs.ClusterQueue) -> q.ClusterQueueFacts:
    spec = queue.spec
    checks = [
        AdmissionCheckRule(rule.name, tuple(rule.on_flavors))
        for rule in spec.admission_checks_strategy.admission_checks
    ]
    return msgspec.convert(
        {
            "name": queue.name,
            "cohort": spec.cohort_name,
            "groups": _groups(spec.resource_groups),
            "strategy": spec.queueing_strategy,
            "namespaces": selector_of(spec.namespace_selector),
            "fungibility": {
                "when_can_borrow": spec.flavor_fungibility.when_can_borrow,
                "when_can_preempt": spec.flavor_fungibility.when_can_preempt,
                "preference": spec.flavor_fungibility.preference,
            },
            "preemption": {
                "within": spec.preemption.within_cluster_queue,
                "reclaim": spec.preemption.reclaim_within_cohort,
                "borrow": spec.preemption.borrow_within_cohort.policy,
                "borrow_threshold": spec.preemption.borrow_within_cohort.max_priority_threshold,
            },
            "checks": (*checks, *(AdmissionCheckRule(name) for name in spec.admission_checks)),
            "stop": spec.stop_policy,
            "weight": _weight(spec),
            "by_usage": spec.admission_scope.admission_mode == _BY_USAGE,
        },
        q.ClusterQueueFacts,
    )


def _groups(groups: list[specs.ResourceGroup]) -> tuple[q.ResourceGroup, ...]:
    return tuple(
        q.ResourceGroup(
            tuple(group.covered_resources),
            tuple(q.FlavorQuotas(flavor.name, _quotas(flavor.resources)) for flavor in group.flavors),
        )
        for group in groups
    )


def _quotas(resources: list[specs.ResourceQuota]) -> dict[str, q.Quota]:
    return {
        each.name: q.Quota(
            amount(each.name, each.nominal_quota),
            None if each.borrowing_limit is None else amount(each.name, each.borrowing_limit),
            None if each.lending_limit is None else amount(each.name, each.lending_limit),
        )
        for each in resources
    }


def amount(resource: str, quantity: Quantity) -> int:
    return amounts({resource: quantity})[resource]


def _weight(spec: specs.CohortSpec | specs.ClusterQueueSpec | specs.LocalQueue) -> float:
    weight = spec.fair_sharing.weight
    return 1.0 if weight is None else weight.nano / NANO


def _local_queues(case: Case) -> Iterator[q.LocalQueueFacts]:
    used = {plain(key): amounts(quantities) for key, quantities in case.initial_local_queue_usage.items()}
    known = set()
    for queue in case.local_queues:
        key = f"{queue.namespace}/{queue.name}"
        known.add(key)
        consumed = _consumed(case, used[plain(key)]) if plain(key) in used else None
        stop = cast("q.Stop", queue.stop_policy)
        yield q.LocalQueueFacts(key, queue.cluster_queue, stop, _weight(queue), consumed)
    for workload in (*case.admitted, *case.pending):
        key = queue_key(workload.key, workload.queue, workload.cluster_queue)
        if not workload.queue and workload.cluster_queue and key not in known:
            known.add(key)
            yield q.LocalQueueFacts(key, workload.cluster_queue)


def queue_key(workload: str, queue: str, cluster_queue: str) -> str:
    """Workloads of component cases may name their cluster queue alone."""
    return f"{workload.partition('/')[0]}/{queue or cluster_queue}"


def plain(name: str) -> str:
    """The cases lower-case names in most places, but not in all."""
    return name.lower().replace("_", "-")


def _consumed(case: Case, used: q.Amounts) -> float:
    config = case.config.admission_fair_sharing
    weights = config.resource_weights if config is not None else {}
    return sum(weights.get(name, 1.0) * _in_base_units(name, each) for name, each in used.items())


def _in_base_units(resource: str, found: int) -> float:
    return found / 1000 if resource == "cpu" else float(found)


def _node(case: Case, node: Node) -> QueueNode:
    taken: q.Amounts = {}
    for pod in case.other_pods:
        if pod.node_name == node.name and pod.phase not in _ENDED and pod.labels.get(_ADMITTED) != "true":
            for name, each in {PODS: 1, **amounts(pod.requests)}.items():
                taken[name] = taken.get(name, 0) + each
    return QueueNode(
        node.name, node.labels, amounts(node.allocatable), node.taints, node.ready, node.unschedulable, taken
    )
