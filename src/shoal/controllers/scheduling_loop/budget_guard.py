"""Holds back pods of teams, namespaces and queues that have spent an enforced budget, before any node is considered.

It decides about the pods of every scheduler that Shoal takes the place of: those of Volcano's and KAI's groups, and
pods without a queue. The pods of a Workload that has its quota start: Kueue's discipline holds Workloads. Held are pods
with GPUs that wait; a gang that runs gets back the pods that it needs, and what runs goes on. A held pod returns by
itself when the budget resets or is raised.

Users write the annotations and owners of their pods. A pod is of a Workload only if that one is there, has its quota
and has the same owner; a gang needs no more pods than when the budget was spent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shoal.api.conditions import find_condition
from shoal.api.cost_budgets import owner_of, queue_of_pod
from shoal.api.kueue import Workload
from shoal.controllers.scheduling_loop.protocols import SchedulerState
from shoal.engine.events import Event, PodArrived, PodBound, PodGone
from shoal.engine.gang_members import Gang
from shoal.engine.plan import Evict, Place
from shoal.engine.queues.reasons import Wait
from shoal.store.pod_makers import Owner
from shoal.store.watched.cost_budgets import WatchedCostBudgets
from shoal.store.watched.pod_views import PodView

_SYSTEM = ("kube-", "shoal-system")
_INDIRECT = frozenset({"AppWrapper", "LeaderWorkerSet", "RayJob", "RayService", "SparkApplication", "TrainJob"})
"""Their pods have owners that the scheduler does not watch."""


class BudgetGuard:
    def __init__(
        self,
        scheduling: SchedulerState,
        budgets: WatchedCostBudgets,
        onward: Callable[[Event], None],
        now_s: Callable[[], float],
        *,
        places: bool = True,
        workload: Callable[[str], Workload | None] = lambda _: None,
    ) -> None:
        """`onward` receives pods that are no longer held. `places`: False if another scheduler places the pods.
        `workload`: the one of that name, as far as it is watched."""
        self._workload = workload
        self._now_s = now_s
        self._scheduling = scheduling
        self._budgets = budgets
        self._onward = onward
        self._places = places
        self._waiting: dict[str, PodArrived] = {}
        """Pods with GPUs that have no node, as they arrived here."""
        self._held: dict[str, str] = {}
        self._naming: dict[str, None] = {}
        """Held pods that name a Workload, which may get its quota."""
        self._least: dict[str, int] = {}
        """Group -> the fewest pods that it has needed since budgets are spent."""
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
        if self._is_to_look or (due_s is not None and now_s >= due_s):
            self._is_to_look, self._looked_s = False, now_s
            self._note_gangs()
            self._look([*self._waiting], now_s)
        elif self._naming:
            self._look([*self._naming], now_s)
        return ()

    def _look(self, keys: Sequence[str], now_s: float) -> None:
        cluster = self._scheduling.cluster
        for key in keys:
            event = self._waiting[key]
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
        if not budgets.is_refusing or traits.namespace.startswith(_SYSTEM) or self._is_missed(event):
            return ""
        view = self._scheduling.watched.view(event.key)
        if view is None or self._is_admitted(view):
            return ""
        cluster = self._scheduling.cluster
        gang = cluster.gangs.find(event.who.group) if event.who.group else None
        of_group = gang.facts.budget_queue if gang is not None and gang.facts is not None else ""
        queue = queue_of_pod(view.scheduler, dict(traits.labels), of_group)
        owner = owner_of(cluster.namespaces.get(traits.namespace, {}), traits.namespace, queue)
        found = budgets.refusal(owner, now_s)
        if found is None:
            return ""
        if view.workload:
            self._naming[event.key] = None
        return found.message

    def _is_admitted(self, view: PodView) -> bool:
        """Whether the pod is of a Workload that has its quota."""
        found = self._workload(view.workload) if view.workload else None
        return found is not None and covers(found, view, self._scheduling.watched.owners(view.key))

    def _is_missed(self, event: PodArrived) -> bool:
        """Whether a gang that runs needs the pod."""
        group, cluster = event.who.group, self._scheduling.cluster
        gang = cluster.gangs.find(group) if group else None
        if gang is None or not gang.running:
            return False
        needed = min(_least(gang), self._least.setdefault(group, _least(gang)))
        before: list[str] = []
        for key in gang.waiting:
            if key == event.key:
                break
            before.append(key)
        return sum(key not in cluster.terminating for key in gang.running) + len(before) < needed

    def _note_gangs(self) -> None:
        if not self._budgets.now.is_refusing:
            self._least.clear()
            return
        gangs = self._scheduling.cluster.gangs
        runs = {gang.name: _least(gang) for gang in gangs if gang.running and gang.facts is not None}
        self._least = {name: min(least, self._least.get(name, least)) for name, least in runs.items()}

    def _hold(self, key: str, words: str) -> None:
        self._held[key] = words
        self._scheduling.held_pods[key] = str(Wait.OVER_BUDGET), words

    def _forget(self, key: str) -> None:
        self._naming.pop(key, None)
        if self._held.pop(key, None) is not None:
            self._scheduling.held_pods.pop(key, None)


def covers(workload: Workload, pod: PodView, owners: Sequence[Owner]) -> bool:
    """Whether a pod that names the Workload is of it, and may start. `owners`: of the pod."""
    reserved, finished = (find_condition(workload.status.conditions, name) for name in ("QuotaReserved", "Finished"))
    if reserved is None or not reserved.is_true() or (finished is not None and finished.is_true()):
        return False
    for one in workload.metadata.owner_references:
        if one.kind == "Pod" and one.uid == pod.uid:
            return True
        if one.kind in _INDIRECT and owners:
            return True
        if (pod.namespace, one.kind, one.name) in owners:
            return True
    return False


def _least(gang: Gang) -> int:
    """So many of its pods must run."""
    facts = gang.facts
    if facts is None:
        return 0
    parents = {part.parent for part in facts.parts}
    of_parts = sum(part.minimum for part in facts.parts if part.name not in parents)
    return max(facts.minimum, of_parts, sum(least for _, least in facts.roles))
