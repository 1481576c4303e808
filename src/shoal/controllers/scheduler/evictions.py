"""Evicts victims: writes the condition `DisruptionTarget`, deletes the pod with its grace period, records an Event.

A pod that a disruption budget covers is ended through its `eviction` subresource: the server checks the budget at that
moment, since another client may have used up the allowed disruptions after the facts were read. The engine is given a
refusal as an event and looks for other victims.

Pods of a queued workload are not evicted here: the admission discipline suspends their job, which ends all of them.
"""

from __future__ import annotations

from functools import partial

from shoal.client.context import Context
from shoal.client.item import Obj
from shoal.client.kind import PODS
from shoal.client.port import Deletion
from shoal.client.recorder import Deed, reference_of
from shoal.client.refusals import BusyError, NotFoundError, RefusedError
from shoal.controllers.scheduler.bindings import Bindings
from shoal.controllers.scheduler.outcomes import Outcomes
from shoal.controllers.scheduler.pod_conditions import PodConditionWriter, about
from shoal.controllers.scheduler.pod_protocols import PodViews
from shoal.controllers.scheduler.pod_state import ServerPodState, state_of
from shoal.controllers.scheduler.write_pool import WritePool
from shoal.controllers.scheduling_loop.protocols import SchedulerState
from shoal.engine.events import PodRejected, PodStays
from shoal.engine.plan import Evict, Move
from shoal.engine.reasons import Code
from shoal.store.watched.pod_views import PodView
from shoal.units.errors import ConflictError, ShoalError

YIELDS = "PreemptionByScheduler"
"""The reason of the condition."""
_PREEMPTING = Deed("Preempting")
_TRIES = 6
_SHORTEST_S = 0.2
_TOO_MANY = 429


class Evictions:
    def __init__(
        self,
        context: Context,
        scheduling: SchedulerState,
        watched: PodViews,
        pool: WritePool,
        outcomes: Outcomes,
        bindings: Bindings,
    ) -> None:
        self._bindings = bindings
        self._context = context
        self._scheduling = scheduling
        self._watched = watched
        self._pool = pool
        self._outcomes = outcomes
        self._reporter = PodConditionWriter(context)
        self._under_way: dict[str, str] = {}
        """Pod -> its uid."""

    def take(self, ending: Evict | Move) -> None:
        view = self._watched.view(ending.pod)
        if view is None or self._under_way.get(ending.pod) == view.uid:
            return
        self._under_way[ending.pod] = view.uid
        if view.workload:
            self._pool.add(partial(self._stays, ending.pod, view))
        else:
            self._pool.add(partial(self._end, ending, view))

    def end(self, view: PodView, reason: str, words: str, event: tuple[str, str]) -> None:
        """Evict a pod for a reason of the caller; the engine gets the event afterwards."""
        if self._under_way.get(view.key) != view.uid:
            self._under_way[view.key] = view.uid
            self._pool.add(partial(self._ended, view, (reason, words), event))

    def is_under_way(self, key: str) -> bool:
        """Whether its eviction is in progress."""
        return key in self._under_way

    async def _end(self, ending: Evict | Move, view: PodView) -> None:
        if not view.node and not await self._is_bound(view):
            self._under_way.pop(view.key, None)
            return
        if isinstance(ending, Move):
            condition = f"{view.scheduler}: moving to another node to make room for {ending.beneficiary}"
            words = f"Moved away from node {ending.source} to make room for {ending.beneficiary}"
            event = "Moved", f"{words}; there is room for its successor on {ending.target}"
        elif ending.code is Code.STALE:
            group = view.event.who.group if view.event is not None else ""
            condition = f"{view.scheduler}: too few pods of its group {group} are left"
            event = "StaleJob", f"Ended: pod group {group} has been below its minimum for too long"
        else:
            condition = f"{self._preemptor(ending.beneficiary, view)}: preempting to accommodate a higher priority pod"
            node = view.node or self._node_of(ending.pod)
            event = "Preempted", f"Preempted by {self._name(ending.beneficiary)} on node {node}"
        await self._ended(view, (YIELDS, condition), event, self._deed(ending.beneficiary))

    def _node_of(self, pod: str) -> str:
        current = self._watched.view(pod)
        return current.node if current is not None else ""

    async def _is_bound(self, view: PodView) -> bool:
        """Whether the pod runs. A pod that was still being bound is not deleted; its binding is cancelled."""
        with self._pool.aside():
            await self._bindings.called_off(view.key)
            state = await state_of(self._context, view)
        if state is ServerPodState.PENDING:
            self._outcomes.say(PodRejected(view.key))
        return state is ServerPodState.BOUND

    def _deed(self, beneficiary: str) -> Deed:
        """The action of the Event, with a reference to the preemptor; a gang has none, because the kind of its object
        is unknown here.
        """
        view = self._watched.view(beneficiary)
        return Deed("Preempting", reference_of(about(view)) if view is not None else ())

    def _preemptor(self, beneficiary: str, victim: PodView) -> str:
        """The scheduler name of the preemptor, for a gang that of any of its pods."""
        gang = self._scheduling.cluster.gangs.find(beneficiary)
        members = (beneficiary,) if gang is None else (*gang.waiting, *gang.running)
        found = next((view for pod in members if (view := self._watched.view(pod)) is not None), victim)
        return found.scheduler

    def _name(self, beneficiary: str) -> str:
        """The uid of a pod, as in kube-scheduler's message; the name of a gang."""
        view = self._watched.view(beneficiary)
        return f"pod {view.uid}" if view is not None else f"pod group {beneficiary}"

    async def _ended(
        self, view: PodView, condition: tuple[str, str], event: tuple[str, str], deed: Deed | None = None
    ) -> None:
        try:
            if await self._is_ended(view, condition):
                self._outcomes.forget(view.key)
                self._reporter.record(view, *event, deed=deed)
                return
            await self._say_stays(view)
        finally:
            if self._under_way.get(view.key) == view.uid:
                del self._under_way[view.key]

    async def _is_ended(self, view: PodView, condition: tuple[str, str]) -> bool:
        """Returns whether the pod is terminating or deleted."""
        for number in range(_TRIES):
            try:
                await self._write(view, condition)
            except NotFoundError:
                return True
            except (ConflictError, BusyError) as error:
                if await state_of(self._context, view) is ServerPodState.GONE:
                    return True
                if _is_budget(error):
                    return False
                with self._pool.aside():
                    delay_s = getattr(error, "delay_s", 0.0)
                    await self._context.clock.sleep(max(delay_s, _SHORTEST_S * (1 << number)))
            except ShoalError as error:
                words = f"Cannot be ended: {error}"
                self._reporter.record(view, "PreemptionFailed", words, is_warning=True, deed=_PREEMPTING)
                return False
            else:
                return True
        return False

    async def _write(self, view: PodView, condition: tuple[str, str]) -> None:
        api = self._context.api
        at = PODS, view.namespace, view.name
        if self._has_budget(view.key):
            # The condition is written first, because the subresource writes a condition of its own.
            meta = {"name": view.name, "namespace": view.namespace}
            options: Obj = {"preconditions": {"uid": view.uid}}
            eviction: Obj = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta, "deleteOptions": options}
            await api.post(*at, "eviction", eviction)
            await self._note(view, condition)
        else:
            await self._note(view, condition)
            await api.delete(*at, Deletion(uid=view.uid))

    async def _note(self, view: PodView, condition: tuple[str, str]) -> None:
        reason, words = condition
        body: Obj = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": reason,
            "message": words,
            "lastTransitionTime": self._context.clock.text(),
        }
        if view.generation:
            body["observedGeneration"] = view.generation
        await self._reporter.patch(view, {"conditions": [body]})

    def _has_budget(self, key: str) -> bool:
        return any(key in budget.pods for budget in self._scheduling.cluster.budgets.values())

    async def _stays(self, key: str, view: PodView) -> None:
        try:
            await self._say_stays(view)
        finally:
            if self._under_way.get(key) == view.uid:
                del self._under_way[key]

    async def _say_stays(self, view: PodView) -> None:
        """With increasing delays, since the same victim would be chosen again at once."""
        wait_s = self._outcomes.delay_s(view.key)
        if wait_s:
            with self._pool.aside():
                await self._context.clock.sleep(wait_s)
        current = self._watched.view(view.key)
        if current is not None and current.uid == view.uid:
            self._outcomes.say(PodStays(view.key))


def _is_budget(error: ShoalError) -> bool:
    """Whether a disruption budget caused the refusal, and not an overloaded server."""
    if not isinstance(error, (BusyError, RefusedError)) or error.code != _TOO_MANY:
        return False
    return any(cause.get("reason") == "DisruptionBudget" for cause in error.details.get("causes") or ())
