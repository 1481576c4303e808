"""Reads facts of a workload from its pods: the last checkpoint, and the disruption budgets that its end would use.

The oldest checkpoint counts: a gang restarts from the checkpoint of its slowest member. Pods that are terminating or
not yet on a node use no budget, because budgets count running pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import structs

from shoal.api.disruption import PodDisruptionBudget
from shoal.api.pod import Pod
from shoal.engine.from_api import budget_facts_of
from shoal.engine.from_api.checkpoints import saved_s
from shoal.engine.groups import BudgetFacts
from shoal.engine.queues.facts import BudgetUse, WorkloadFacts
from shoal.store.inventory import Inventory, Placed
from shoal.store.queues.members import Members, is_running
from shoal.units.errors import UserError, Where


class PodStories:
    """The pods and budgets of the manifests."""

    def __init__(self, inventory: Inventory, members: Members) -> None:
        self._members = members
        pods = [placed.value for placed in members.pods.values()]
        self._budgets: dict[str, list[BudgetFacts]] = {}
        """By running pod."""
        up = {pod.metadata.key for pod in pods if is_running(pod) and not pod.is_terminating()}
        for placed in inventory.of(PodDisruptionBudget):
            budget = budget_facts_of(placed.value, pods)
            for key in budget.pods & up:
                self._budgets.setdefault(key, []).append(budget)

    def reported(self, facts: WorkloadFacts, pods: Sequence[str]) -> WorkloadFacts:
        """`pods`: the pods of the workload."""
        saved = facts.saved_s
        if saved is None:
            saved = _oldest(self._members.pods[key] for key in pods)
        budgets = self._drawn_on(pods)
        if saved == facts.saved_s and budgets == facts.budgets:
            return facts
        return structs.replace(facts, saved_s=saved, budgets=budgets)

    def _drawn_on(self, pods: Iterable[str]) -> tuple[BudgetUse, ...]:
        counts: dict[tuple[str, int], int] = {}
        for key in pods:
            for budget in self._budgets.get(key, ()):
                named = f"{budget.namespace}/{budget.name}", budget.allowed
                counts[named] = counts.get(named, 0) + 1
        return tuple(BudgetUse(name, count, allowed) for (name, allowed), count in sorted(counts.items()))


def _oldest(pods: Iterable[Placed[Pod]]) -> float | None:
    found = []
    for placed in pods:
        try:
            moment = saved_s(placed.value.metadata.annotations, Where(path="metadata.annotations"))
        except UserError as error:
            raise placed.reported(error) from error
        if moment is not None:
            found.append(moment)
    return min(found, default=None)
