"""Holds back pods of teams, namespaces and queues that have spent an enforced budget, before any node is considered.

It decides about the pods of every scheduler that Shoal takes the place of: those of Volcano's and KAI's groups, and
pods without a queue. The pods of Workloads are left to Kueue's discipline, which holds their Workloads. Held are pods
with GPUs that wait; a gang of which a pod runs gets its other pods, and what runs goes on. A held pod returns by itself
when the budget resets or is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shoal.controllers.scheduling_loop.protocols import SchedulerState
from shoal.engine.cost_budgets import owner_of
from shoal.engine.events import Event, PodArrived, PodBound, PodGone
from shoal.engine.plan import Evict, Place
from shoal.engine.queues.reasons import Wait
from shoal.store.watched.cost_budgets import WatchedCostBudgets

_SYSTEM = ("kube-", "shoal-system")


class BudgetGuard:
    def __init__(
        self,
        scheduling: SchedulerState,
        budgets: WatchedCostBudgets,
        onward: Callable[[Event], None],
        now_s: Callable[[], float],
        *,
        places: bool = True,
    ) -> None:
        """`onward` receives pods that are no longer held. `places`: False if another scheduler places the pods."""
        self._now_s = now_s
        self._scheduling = scheduling
        self._budgets = budgets
        self._onward = onward
        self._places = places
        self._waiting: dict[str, PodArrived] = {}
        """Pods with GPUs that have no node, as they arrived here."""
        self._held: dict[str, str] = {}
        self._is_to_look = False
        self._looked_s = 0.0
        budgets.on_change(lambda _: self._changed())

    # -- the protocol of the scheduling loop -----------------------------------------------------------------------

    async def synced(self) -> None:
        await self._budgets.synced()

    async def run(self) -> None:
        await self._budgets.run()

    def hear(self, event: Event) -> bool:
        if isinstance(event, PodArrived):
            return self._arrived(event)
        if isinstance(event, PodBound | PodGone):
            self._waiting.pop(event.key, None)
            self._forget(event.key)
        return False

    def round(self, now_s: float) -> Sequence[Place | Evict]:
        due_s = self.next_s()
        if not self._is_to_look and (due_s is None or now_s < due_s):
            return ()
        self._is_to_look, self._looked_s = False, now_s
        cluster = self._scheduling.cluster
        for key, event in list(self._waiting.items()):
            words = self._words(event, now_s)
            if words and key not in self._held:
                # A pod that has a place, and is on its way to its node, is left alone.
                if key in cluster.pending:
                    self._scheduling.intake.apply(PodGone(key))
                    self._hold(key, words)
            elif words:
                self._hold(key, words)
            elif key in self._held:
                self._forget(key)
                self._onward(event)
        return ()

    def next_s(self) -> float | None:
        """When the budgets stop to hold pods back."""
        if not self._held:
            return None
        until_s = self._budgets.now.until_s
        return until_s if until_s > self._looked_s else None

    @property
    def is_idle(self) -> bool:
        return not self._is_to_look

    # -- internals -------------------------------------------------------------------------------------------------

    def _changed(self) -> None:
        self._is_to_look = True
        self._scheduling.wake()

    def _arrived(self, event: PodArrived) -> bool:
        if not self._places or event.daemon_set or not event.ask.asks_devices:
            return False
        self._waiting[event.key] = event
        if (
            not self._budgets.now.is_refusing
            or event.key in self._scheduling.cluster.pending
            or event.key in self._scheduling.cluster.pods
        ):
            return False
        words = self._words(event, self._now_s())
        if words:
            self._hold(event.key, words)
        else:
            self._forget(event.key)
        return bool(words)

    def _words(self, event: PodArrived, now_s: float) -> str:
        budgets, traits = self._budgets.now, event.who.traits
        if not budgets.is_refusing or traits.namespace.startswith(_SYSTEM) or self._runs(event.who.group):
            return ""
        view = self._scheduling.watched.view(event.key)
        if view is None or view.workload:
            return ""
        cluster = self._scheduling.cluster
        owner = owner_of(cluster.namespaces.get(traits.namespace, {}), dict(traits.labels), traits.namespace)
        found = budgets.refusal(owner, now_s)
        return "" if found is None else found.message

    def _runs(self, group: str) -> bool:
        gang = self._scheduling.cluster.gangs.find(group) if group else None
        return gang is not None and bool(gang.running)

    def _hold(self, key: str, words: str) -> None:
        self._held[key] = words
        self._scheduling.held_pods[key] = str(Wait.OVER_BUDGET), words

    def _forget(self, key: str) -> None:
        if self._held.pop(key, None) is not None:
            self._scheduling.held_pods.pop(key, None)
