"""Completes or undoes gangs that were left partially bound, by a killed process or by failed bindings.

A gang is partial if it has fewer bound pods than it needs, and a pod waits that existed when the others were bound. The
engine tries to place the rest in every cycle. Without progress for half a minute, the bound pods are evicted, so that
their capacity is free and the gang can start as a whole. Bindings in progress are awaited.

A gang that was preempted as a whole is partial too if only some of its pods were evicted: the others have the condition
DisruptionTarget.

A gang that ran as a whole and lost a pod is not partial: the replacement is younger than the bindings. Nor is a gang
that this process has seen complete: it lost a pod that an older spare pod replaces.

No state is kept across restarts: the ages of pods and bindings are sufficient for the next process. Rejected: an
annotation with the state of the bindings. It would be one more write, and the process could be killed before it.
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
"""The numbers of pods on nodes and of pending pods."""


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
        """`rolled_back`: called once for each gang that is undone."""
        self._clock = context.clock
        self._scheduling = scheduling
        self._watched = watched
        self._endings = endings
        self._outcomes = outcomes
        self._rolled_back = rolled_back
        self._undone: set[str] = set()
        """Gangs that were partial at the last check and are being evicted."""
        self._pods = context.informers.of(PODS)
        self._whole: dict[str, _Size] = {}
        """Gangs that were seen complete, with their sizes at the last check."""
        self._half: dict[str, tuple[int, float]] = {}
        """Gang -> the number of its bound pods, and since when that number has not grown."""

    async def run(self) -> None:
        """Runs until cancelled."""
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
                # Unchanged, like most gangs.
                whole[gang.name] = size
                continue
            try:
                self._look_at(gang, now_s, half, whole)
            except Exception:  # noqa: BLE001 - an error for one gang must not affect the others
                _log.exception("gang %s cannot be tried", gang.name)
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
        """Pods with a node to which they cannot be bound; they count as pending."""
        pods = self._scheduling.cluster.pods
        return {pod for pod in gang.running if not pods[pod].is_bound and self._outcomes.is_failing(pod)}

    def _is_settled(self, gang: Gang, failing: set[str]) -> bool:
        """Whether no binding of it is in progress, for example one that waits for a volume."""
        pods = self._scheduling.cluster.pods
        return all(pods[pod].is_bound or pod in failing for pod in gang.running)

    def _left_half(self, gang: Gang, failing: set[str], *, was_whole: bool) -> list[PodView]:
        """Its bound pods, if the gang is partial."""
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
        """Whether its eviction was started and not completed."""
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
