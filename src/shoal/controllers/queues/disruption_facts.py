"""Keeps in the facts of admitted Workloads what their pods say about the cost of a disruption, by which the discipline
chooses victims: when the work was last saved, and which PodDisruptionBudgets an eviction would use. For manifests
`store/queues/from_pods.py` does the same.

The facts are computed only if the configuration uses them, and only for Workloads whose pods or budgets changed. A
Workload that states how often it saves is computed in every round, because its last save moves with time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import structs

from shoal.engine.cluster import Cluster
from shoal.engine.events import BudgetGone, BudgetSeen, Event, PodBound, PodGone
from shoal.engine.groups import BudgetFacts
from shoal.engine.pods import PodAllocation
from shoal.engine.queues.facts import BudgetUse, WorkloadFacts
from shoal.engine.queues.state import Queues


class DisruptionFacts:
    """`pods_of` lists the pods of a Workload that are in the facts; `workload_of` returns the Workload of a pod."""

    def __init__(
        self, cluster: Cluster, pods_of: Callable[[str], Sequence[str]], workload_of: Callable[[str], str]
    ) -> None:
        self._cluster = cluster
        self._pods_of = pods_of
        self._workload_of = workload_of
        self._changed: dict[str, None] = {}
        self._periodic: dict[str, None] = {}
        """Workloads that save at regular intervals."""
        self._is_all_changed = False

    def handle(self, event: Event) -> None:
        """Must be called before `PodArrivals` forgets the Workload of a pod that is gone."""
        if isinstance(event, (BudgetSeen, BudgetGone)):
            self._is_all_changed = True
        elif isinstance(event, (PodBound, PodGone)):
            self.mark_changed(self._workload_of(event.key))

    def mark_changed(self, workload: str) -> None:
        if workload:
            self._changed[workload] = None

    def update(self, queues: Queues, now_s: float) -> None:
        """Bring the facts of all Workloads that hold quota up to date."""
        settings = queues.settings
        if not settings.lost_work and not settings.respect_budgets:
            self._changed.clear()
            return
        changed, self._changed = self._changed, {}
        keys: Iterable[str] = [*queues.held] if self._is_all_changed else [*changed, *self._periodic]
        self._is_all_changed = False
        self._periodic.clear()
        budgets = self._budgets_by_pod() if settings.respect_budgets and keys else {}
        for key in dict.fromkeys(keys):
            held = queues.held.get(key)
            if held is not None:
                held.facts = self._updated(held.facts, budgets, now_s)

    # internals

    def _budgets_by_pod(self) -> dict[str, list[BudgetFacts]]:
        found: dict[str, list[BudgetFacts]] = {}
        for budget in self._cluster.budgets.values():
            for pod in budget.pods:
                found.setdefault(pod, []).append(budget)
        return found

    def _updated(self, facts: WorkloadFacts, budgets: dict[str, list[BudgetFacts]], now_s: float) -> WorkloadFacts:
        pods = {key: pod for key in self._pods_of(facts.key) if (pod := self._cluster.pods.get(key)) is not None}
        if any(pod.who.saves_every_s for pod in pods.values()):
            self._periodic[facts.key] = None
        running = (key for key, pod in pods.items() if not pod.is_terminating)
        return structs.replace(facts, saved_s=_oldest_save_s(pods.values(), now_s), budgets=_used(running, budgets))


def _oldest_save_s(pods: Iterable[PodAllocation], now_s: float) -> float | None:
    """A gang restarts from the checkpoint of the member that saved longest ago."""
    saved = [now_s - pod.who.lost_s(now_s) for pod in pods if pod.who.saved_s is not None or pod.who.saves_every_s]
    return min(saved, default=None)


def _used(pods: Iterable[str], budgets: dict[str, list[BudgetFacts]]) -> tuple[BudgetUse, ...]:
    counts: dict[tuple[str, int], int] = {}
    for key in pods:
        for budget in budgets.get(key, ()):
            named = f"{budget.namespace}/{budget.name}", budget.allowed
            counts[named] = counts.get(named, 0) + 1
    return tuple(BudgetUse(name, count, allowed) for (name, allowed), count in sorted(counts.items()))
