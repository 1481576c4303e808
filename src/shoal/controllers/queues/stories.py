"""What the pods of a workload tell about it, for the choice of who yields: when its work was last saved, and which
disruption budgets its end would draw on. As `store/queues/from_pods.py` does for manifests.

Worked out only where the configuration asks for it, and for those whose pods or budgets have changed; whoever says how
often it saves is worked out for every choice, because its last save moves with time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import structs

from shoal.engine.cluster import Cluster
from shoal.engine.events import BudgetGone, BudgetSeen, Event, PodBound, PodGone
from shoal.engine.groups import BudgetFacts
from shoal.engine.pods import Holding
from shoal.engine.queues.facts import BudgetUse, WorkloadFacts
from shoal.engine.queues.state import Queues


class Stories:
    """`there` names the pods of a workload that are in the facts, `workload_of` the workload of a pod."""

    def __init__(
        self, cluster: Cluster, there: Callable[[str], Sequence[str]], workload_of: Callable[[str], str]
    ) -> None:
        self._cluster = cluster
        self._there = there
        self._workload_of = workload_of
        self._dirty: dict[str, None] = {}
        self._moving: dict[str, None] = {}
        """Workloads that save by the clock."""
        self._is_all_dirty = False

    def hear(self, event: Event) -> None:
        """Before whoever forgets whose pod it was."""
        if isinstance(event, (BudgetSeen, BudgetGone)):
            self._is_all_dirty = True
        elif isinstance(event, (PodBound, PodGone)):
            self.touch(self._workload_of(event.key))

    def touch(self, workload: str) -> None:
        if workload:
            self._dirty[workload] = None

    def tell(self, queues: Queues, now_s: float) -> None:
        """All that hold quota say what is so by now."""
        settings = queues.settings
        if not settings.lost_work and not settings.respect_budgets:
            self._dirty.clear()
            return
        dirty, self._dirty = self._dirty, {}
        keys: Iterable[str] = [*queues.held] if self._is_all_dirty else [*dirty, *self._moving]
        self._is_all_dirty = False
        self._moving.clear()
        budgets = self._by_pod() if settings.respect_budgets and keys else {}
        for key in dict.fromkeys(keys):
            held = queues.held.get(key)
            if held is not None:
                held.facts = self._told(held.facts, budgets, now_s)

    # Inside

    def _by_pod(self) -> dict[str, list[BudgetFacts]]:
        found: dict[str, list[BudgetFacts]] = {}
        for budget in self._cluster.budgets.values():
            for pod in budget.pods:
                found.setdefault(pod, []).append(budget)
        return found

    def _told(self, facts: WorkloadFacts, budgets: dict[str, list[BudgetFacts]], now_s: float) -> WorkloadFacts:
        pods = {key: pod for key in self._there(facts.key) if (pod := self._cluster.pods.get(key)) is not None}
        if any(pod.who.saves_every_s for pod in pods.values()):
            self._moving[facts.key] = None
        up = (key for key, pod in pods.items() if not pod.leaving)
        return structs.replace(facts, saved_s=_oldest(pods.values(), now_s), budgets=_drawn_on(up, budgets))


def _oldest(pods: Iterable[Holding], now_s: float) -> float | None:
    """A gang goes back to where its slowest member was saved."""
    saved = [now_s - pod.who.lost_s(now_s) for pod in pods if pod.who.saved_s is not None or pod.who.saves_every_s]
    return min(saved, default=None)


def _drawn_on(pods: Iterable[str], budgets: dict[str, list[BudgetFacts]]) -> tuple[BudgetUse, ...]:
    counts: dict[tuple[str, int], int] = {}
    for key in pods:
        for budget in budgets.get(key, ()):
            named = f"{budget.namespace}/{budget.name}", budget.allowed
            counts[named] = counts.get(named, 0) + 1
    return tuple(BudgetUse(name, count, allowed) for (name, allowed), count in sorted(counts.items()))
