"""Chooses the pods to preempt for a pod that fits nowhere: on one node, as few and as unimportant pods as possible.

On each candidate node, all pods with lower priority are removed in a trial; if the pod fits then, they are added back,
the most important first, as long as the pod still fits. The chosen node is the one with the fewest violated disruption
budgets, then with the least important top victim, then with the least sum, the fewest, and the youngest victims.

Guarantees: the scheduler cache is unchanged afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import field

from shoal.api.selectors import LabelSelector, selector_of
from shoal.api.wire import ApiStruct
from shoal.embedded.scheduler.node_choice import FilterResult
from shoal.embedded.scheduler.pod_info import PodInfo
from shoal.embedded.scheduler.scheduler_cache import SchedulerCache

MAX_NODES = 100
_LOWEST = 2**31


class _BudgetSpec(ApiStruct, frozen=True):
    selector: LabelSelector | None = None


class _BudgetStatus(ApiStruct, frozen=True):
    disruptions_allowed: int = 0
    disrupted_pods: dict[str, Any] = field(default_factory=dict)


class _BudgetMeta(ApiStruct, frozen=True):
    namespace: str = ""


class BudgetState(ApiStruct, frozen=True):
    metadata: _BudgetMeta
    spec: _BudgetSpec = field(default_factory=_BudgetSpec)
    status: _BudgetStatus = field(default_factory=_BudgetStatus)


class Victims(NamedTuple):
    node: str
    pods: list[PodInfo]
    broken: int
    """The number of pods whose disruption budgets would be violated."""


def cheapest_victims(
    state: SchedulerCache, pod: PodInfo, result: FilterResult, budgets: Sequence[BudgetState]
) -> Victims | None:
    found: list[Victims] = []
    for row in result.helpable.tolist():
        place = state.columns.places[row]
        if place is None:
            continue
        victims = _victims_on(state, pod, (row, place.name), budgets)
        if victims is not None:
            found.append(victims)
        if len(found) >= MAX_NODES:
            break
    return min(found, key=_cost, default=None)


def _victims_on(
    state: SchedulerCache, pod: PodInfo, at: tuple[int, str], budgets: Sequence[BudgetState]
) -> Victims | None:
    row, node = at
    lower = [other for other in state.columns.pods_on(node) if other.priority < pod.priority]
    if not lower:
        return None
    breaking, others = _sorted_by_budget(sorted(lower, key=_importance), budgets)
    away = {other.uid: other for other in lower}
    for uid in away:
        state.remove(uid)
    try:
        if not state.fits(pod, row):
            return None
        for other in (*breaking, *others):
            state.place(node, other)
            if state.fits(pod, row):
                del away[other.uid]
            else:
                state.remove(other.uid)
        victims = sorted(away.values(), key=_importance)
    finally:
        for other in away.values():
            state.place(node, other)
    return Victims(node, victims, sum(other in breaking for other in victims))


def _sorted_by_budget(pods: Sequence[PodInfo], budgets: Sequence[BudgetState]) -> tuple[list[PodInfo], list[PodInfo]]:
    """The pods beyond what their budgets allow, and the others."""
    left = [budget.status.disruptions_allowed for budget in budgets]
    breaking: list[PodInfo] = []
    others: list[PodInfo] = []
    for pod in pods:
        is_beyond = False
        for number, budget in enumerate(budgets):
            if budget.metadata.namespace != pod.namespace or not _covers(budget, pod.labels):
                continue
            if pod.name in budget.status.disrupted_pods:
                continue
            left[number] -= 1
            is_beyond = is_beyond or left[number] < 0
        (breaking if is_beyond else others).append(pod)
    return breaking, others


def _covers(budget: BudgetState, labels: Mapping[str, str]) -> bool:
    return bool(labels) and selector_of(budget.spec.selector).matches(labels)


def _importance(pod: PodInfo) -> tuple[int, float]:
    """The most important first; of equals the one that has run longest."""
    return (-pod.priority, pod.started or pod.created)


def _cost(victims: Victims) -> tuple[int, int, int, int, float]:
    pods = victims.pods
    if not pods:
        return (victims.broken, -_LOWEST, 0, 0, 0.0)
    most = pods[0].priority
    youngest = min(pod.started or pod.created for pod in pods if pod.priority == most)
    return (victims.broken, most, sum(pod.priority + _LOWEST for pod in pods), len(pods), -youngest)
