"""Converts disruption budgets to facts: their pods by name, and how many of them may still be evicted."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.api.disruption import PodDisruptionBudget
from shoal.api.pod import Pod
from shoal.api.selectors import selector_of
from shoal.engine.groups import BudgetFacts


def budget_facts_of(budget: PodDisruptionBudget, pods: Iterable[Pod]) -> BudgetFacts:
    """The budget over the pods that are there.

    A status is the controller's own count and is believed. Without one, pods on nodes that are not ending count as
    healthy, and every pod that the selector finds as expected.
    """
    selector = selector_of(budget.spec.selector)
    meta = budget.metadata
    covered = [
        pod
        for pod in pods
        if pod.metadata.namespace == meta.namespace and not pod.is_finished() and selector.matches(pod.metadata.labels)
    ]
    if budget.status is not None:
        allowed = budget.status.disruptions_allowed
    else:
        healthy = sum(1 for pod in covered if pod.spec.node_name and not pod.is_terminating())
        allowed = budget.allowed(healthy, len(covered))
    return BudgetFacts(meta.name, meta.namespace, allowed, frozenset(pod.metadata.key for pod in covered))
