"""Gangs that were left half bound, by a process that was killed or by bindings that failed: completed or undone.

A gang that lacks what it needs, of which some pods are bound and another pod waits that was there when they were bound,
was left half. The engine tries to place the rest in every round. If half a minute brings it no further, the bound pods
are ended, so that the room is free and the gang can start as a whole. Bindings that are under way are given their time.

So is a gang that had to yield as a whole, when only some of its pods were ended: the others bear the mark of it.

A gang that ran as a whole and lost a pod is not partial: the replacement is younger than the bindings. Nor is a gang
that this process has seen complete: it lost a pod that an older spare pod replaces.

Nothing is remembered across restarts: the ages of pods and bindings tell a successor all there is to know. Rejected: a
mark of the bindings. It would be one more write, and a kill could come before it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import msgspec

from shoal.api.partial import ConditionsStatus
from shoal.client.context import Context
from shoal.client.kind import PODS
from shoal.controllers.scheduler.evictions import YIELDS, Evictions
from shoal.controllers.scheduler.outcomes import Outcomes
from shoal.controllers.scheduler.pod_protocols import PodViews
from shoal.controllers.scheduling_loop.protocols import SchedulerState
from shoal.engine.gang_members import Gang
from shoal.engine.gangs.attempt import is_running
from shoal.store.watched.pod_views import PodView

_log = logging.getLogger("shoal.scheduler")
POLL_S = 5.0
PATIENCE_S = 30.0
_MARK = YIELDS.encode()
_Size = tuple[int, int]
"""Pods on nodes, and pods that wait."""


class _PodConditions(msgspec.Struct):
    status: ConditionsStatus = msgspec.field(default_factory=ConditionsStatus)


class PartialGangs:
    def __init__(
        self,
        context: Context,
        scheduling: SchedulerState,
        watched: PodViews,
        endings: Evictions,
        outcomes: Outcomes,
        rolled_back: Callable[[], None],
    ) -> None:
        """`rolled_back`: called for each gang that is, once."""
        self._clock = context.clock
        self._scheduling = scheduling
        self._watched = watched
        self._endings = endings
        self._outcomes = outcomes
        self._rolled_back = rolled_back
        self._undone: set[str] = set()
        """Gangs that were half when they were looked at last, and were told to end."""
        self._pods = context.informers.of(PODS)
        self._whole: dict[str, _Size] = {}
        """Gangs that were seen with all they need, bound; and how large they were when they were looked at."""
        self._half: dict[str, tuple[int, float]] = {}
        """Gang -> how many of it are bound, and since when they are no more."""

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self.look()
            await self._clock.sleep(POLL_S)

    def look(self) -> None:
        now_s = self._clock.seconds()
        half: dict[str, tuple[int, float]] = {}
        whole: dict[str, _Size] = {}
        for gang in self._scheduling.cluster.gangs:
            size = len(gang.running), len(gang.waiting)
            if not gang.running or gang.facts is None or gang.fault:
                # Its minimum is unknown.
                continue
            if self._whole.get(gang.name) == size and gang.name not in self._half:
                # Unchanged, as thousands of gangs are.
                whole[gang.name] = size
                continue
            try:
                self._look_at(gang, now_s, half, whole)
            except Exception:  # noqa: BLE001 - one gang that breaks the code must not keep the others half
                _log.exception("gang %s cannot be looked at", gang.name)
                if gang.name in self._half:
                    half[gang.name] = self._half[gang.name]
                if gang.name in self._whole:
                    whole[gang.name] = size
        self._half, self._whole = half, whole
        self._undone &= half.keys()

    def _look_at(self, gang: Gang, now_s: float, half: dict[str, tuple[int, float]], whole: dict[str, _Size]) -> None:
        failing, size = self._failing(gang), (len(gang.running), len(gang.waiting))
        if is_running(self._scheduling.cluster, gang) and not failing:
            if gang.name in self._whole or self._is_settled(gang, failing):
                whole[gang.name] = size
            return
        if was_whole := gang.name in self._whole:
            whole[gang.name] = size
        if left := self._left_half(gang, failing, was_whole=was_whole):
            known = self._half.get(gang.name, (-1, 0.0))
            half[gang.name] = _, since_s = known if known[0] >= len(left) else (len(left), now_s)
            if now_s - since_s >= PATIENCE_S and self._is_settled(gang, failing):
                self._roll_back(gang, left)

    def _failing(self, gang: Gang) -> set[str]:
        """Pods that have a place which they cannot be bound to; for the gang they are as good as waiting."""
        pods = self._scheduling.cluster.pods
        return {pod for pod in gang.running if not pods[pod].is_bound and self._outcomes.is_failing(pod)}

    def _is_settled(self, gang: Gang, failing: set[str]) -> bool:
        """Whether no binding of it is under way, such as one that waits for a volume to be made."""
        pods = self._scheduling.cluster.pods
        return all(pods[pod].is_bound or pod in failing for pod in gang.running)

    def _left_half(self, gang: Gang, failing: set[str], *, was_whole: bool) -> list[PodView]:
        """Its bound pods, if it was left half."""
        bound = list(self._bound(gang))
        least = gang.facts.minimum if gang.facts is not None else 0
        if not bound or (failing and len(bound) >= least):
            return []
        if any(map(self._had_to_yield, bound)):
            return bound
        latest_s = max(view.bound_s for view in bound)
        waiting = () if was_whole else (self._watched.view(pod) for pod in (*gang.waiting, *failing))
        is_half = any(view is not None and view.created_s <= latest_s for view in waiting)
        return bound if is_half else []

    def _had_to_yield(self, view: PodView) -> bool:
        """Whether its end was begun, and never done."""
        item = self._pods.get(view.namespace, view.name)
        if item is None or _MARK not in item.data:
            return False
        conditions = item.read(_PodConditions).status.conditions
        return any((one.type, one.status) == ("DisruptionTarget", "True") for one in conditions)

    def _bound(self, gang: Gang) -> Iterator[PodView]:
        cluster = self._scheduling.cluster
        for pod in gang.running:
            allocation = cluster.pods[pod]
            if allocation.is_bound and not allocation.is_terminating:
                view = self._watched.view(pod)
                if view is not None and view.node:
                    yield view

    def _roll_back(self, gang: Gang, bound: list[PodView]) -> None:
        if gang.name not in self._undone:
            self._undone.add(gang.name)
            self._rolled_back()
        least = gang.facts.minimum if gang.facts is not None else 0
        words = f"Only {len(bound)} of the {least} pods that gang {gang.name} needs got a node: it is started anew"
        for view in bound:
            condition = f"{view.scheduler}: the gang {gang.name} cannot be completed"
            self._endings.end(view, YIELDS, condition, ("GangRolledBack", words))
