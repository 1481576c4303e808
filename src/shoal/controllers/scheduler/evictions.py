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
from shoal.controllers.scheduler.known import PodViews, SchedulerState
from shoal.controllers.scheduler.outcomes import Outcomes
from shoal.controllers.scheduler.pod_conditions import PodConditionWriter, about
from shoal.controllers.scheduler.pod_state import State, state_of
from shoal.controllers.scheduler.write_pool import WritePool
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
        world: PodViews,
        pool: WritePool,
        outcomes: Outcomes,
        bindings: Bindings,
    ) -> None:
        self._bindings = bindings
        self._context = context
        self._scheduling = scheduling
        self._world = world
        self._pool = pool
        self._outcomes = outcomes
        self._teller = PodConditionWriter(context)
        self._under_way: dict[str, str] = {}
        """Pod -> its uid."""

    def take(self, ending: Evict | Move) -> None:
        sight = self._world.sight(ending.pod)
        if sight is None or self._under_way.get(ending.pod) == sight.uid:
            return
        self._under_way[ending.pod] = sight.uid
        if sight.workload:
            self._pool.add(partial(self._stays, ending.pod, sight))
        else:
            self._pool.add(partial(self._end, ending, sight))

    def end(self, sight: PodView, reason: str, words: str, event: tuple[str, str]) -> None:
        """For a reason of one's own; the engine learns of it when it is done."""
        if self._under_way.get(sight.key) != sight.uid:
            self._under_way[sight.key] = sight.uid
            self._pool.add(partial(self._ended, sight, (reason, words), event))

    def is_under_way(self, key: str) -> bool:
        """Whether its end is being brought about."""
        return key in self._under_way

    async def _end(self, ending: Evict | Move, sight: PodView) -> None:
        if not sight.node and not await self._is_bound(sight):
            self._under_way.pop(sight.key, None)
            return
        if isinstance(ending, Move):
            condition = f"{sight.scheduler}: moving to another node to make room for {ending.beneficiary}"
            words = f"Moved away from node {ending.source} to make room for {ending.beneficiary}"
            event = "Moved", f"{words}; there is room for its successor on {ending.target}"
        elif ending.code is Code.GANG_TOO_SMALL:
            condition = f"{sight.scheduler}: too few pods of its group {ending.beneficiary} are left"
            event = "StaleJob", f"Ended: pod group {ending.beneficiary} has been below its minimum for too long"
        else:
            condition = f"{self._preemptor(ending.beneficiary, sight)}: preempting to accommodate a higher priority pod"
            node = sight.node or self._node_of(ending.pod)
            event = "Preempted", f"Preempted by {self._name(ending.beneficiary)} on node {node}"
        await self._ended(sight, (YIELDS, condition), event, self._deed(ending.beneficiary))

    def _node_of(self, pod: str) -> str:
        current = self._world.sight(pod)
        return current.node if current is not None else ""

    async def _is_bound(self, sight: PodView) -> bool:
        """Whether the pod runs. A pod that was still being bound is not deleted; its binding is cancelled."""
        with self._pool.aside():
            await self._bindings.called_off(sight.key)
            state = await state_of(self._context, sight)
        if state is State.WAITS:
            self._outcomes.say(PodRejected(sight.key))
        return state is State.STANDS

    def _deed(self, beneficiary: str) -> Deed:
        """The reference to the preemptor; a gang has none, since the kind of its object is unknown here."""
        sight = self._world.sight(beneficiary)
        return Deed("Preempting", reference_of(about(sight)) if sight is not None else ())

    def _preemptor(self, beneficiary: str, victim: PodView) -> str:
        """The scheduler that the other one names, of a gang any of its pods."""
        gang = self._scheduling.cluster.gangs.find(beneficiary)
        members = (beneficiary,) if gang is None else (*gang.waiting, *gang.running)
        found = next((sight for pod in members if (sight := self._world.sight(pod)) is not None), victim)
        return found.scheduler

    def _name(self, beneficiary: str) -> str:
        """A pod by its uid, as kube-scheduler has it; a gang by its name."""
        sight = self._world.sight(beneficiary)
        return f"pod {sight.uid}" if sight is not None else f"pod group {beneficiary}"

    async def _ended(
        self, sight: PodView, condition: tuple[str, str], event: tuple[str, str], deed: Deed | None = None
    ) -> None:
        try:
            if await self._is_ended(sight, condition):
                self._outcomes.forget(sight.key)
                self._teller.record(sight, *event, deed=deed)
                return
            await self._say_stays(sight)
        finally:
            if self._under_way.get(sight.key) == sight.uid:
                del self._under_way[sight.key]

    async def _is_ended(self, sight: PodView, condition: tuple[str, str]) -> bool:
        """Whether it is ending, or gone."""
        for number in range(_TRIES):
            try:
                await self._write(sight, condition)
            except NotFoundError:
                return True
            except (ConflictError, BusyError) as error:
                if await state_of(self._context, sight) is State.OVER:
                    return True
                if _is_budget(error):
                    return False
                with self._pool.aside():
                    delay_s = getattr(error, "delay_s", 0.0)
                    await self._context.clock.sleep(max(delay_s, _SHORTEST_S * (1 << number)))
            except ShoalError as error:
                words = f"Cannot be ended: {error}"
                self._teller.record(sight, "PreemptionFailed", words, is_warning=True, deed=_PREEMPTING)
                return False
            else:
                return True
        return False

    async def _write(self, sight: PodView, condition: tuple[str, str]) -> None:
        api = self._context.api
        at = PODS, sight.namespace, sight.name
        if self._has_budget(sight.key):
            # First, since the subresource writes a condition of its own.
            meta = {"name": sight.name, "namespace": sight.namespace}
            options: Obj = {"preconditions": {"uid": sight.uid}}
            eviction: Obj = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta, "deleteOptions": options}
            await api.post(*at, "eviction", eviction)
            await self._note(sight, condition)
        else:
            await self._note(sight, condition)
            await api.delete(*at, Deletion(uid=sight.uid))

    async def _note(self, sight: PodView, condition: tuple[str, str]) -> None:
        reason, words = condition
        body: Obj = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": reason,
            "message": words,
            "lastTransitionTime": self._context.clock.text(),
        }
        if sight.generation:
            body["observedGeneration"] = sight.generation
        await self._teller.patch(sight, {"conditions": [body]})

    def _has_budget(self, key: str) -> bool:
        return any(key in budget.pods for budget in self._scheduling.cluster.budgets.values())

    async def _stays(self, key: str, sight: PodView) -> None:
        try:
            await self._say_stays(sight)
        finally:
            if self._under_way.get(key) == sight.uid:
                del self._under_way[key]

    async def _say_stays(self, sight: PodView) -> None:
        """With increasing delays, since the same victim would be chosen again at once."""
        wait_s = self._outcomes.delay_s(sight.key)
        if wait_s:
            with self._pool.aside():
                await self._context.clock.sleep(wait_s)
        current = self._world.sight(sight.key)
        if current is not None and current.uid == sight.uid:
            self._outcomes.say(PodStays(sight.key))


def _is_budget(error: ShoalError) -> bool:
    """Whether a disruption budget stands behind a refusal, and not a server that has too much to do."""
    if not isinstance(error, (BusyError, RefusedError)) or error.code != _TOO_MANY:
        return False
    return any(cause.get("reason") == "DisruptionBudget" for cause in error.details.get("causes") or ())
