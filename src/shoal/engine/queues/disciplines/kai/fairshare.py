"""The fair-share discipline: KAI's actions as steps of a scheduling cycle, over the queues of a cluster.

What must survive from cycle to cycle is small: the moments since when gangs run below their minima, and the use of the
queues over the window. Both are values that a controller stores and hands back after a restart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from shoal.engine.cycle_state import CycleState, Step
from shoal.engine.queues.disciplines.kai.fair_actions import (
    ACTIONS,
    ALLOCATE,
    CONSOLIDATION,
    PREEMPT,
    RECLAIM,
    STALE,
    evict_stale,
)
from shoal.engine.queues.disciplines.kai.fair_cycle import FairshareCycle, FairshareSettings
from shoal.engine.queues.disciplines.kai.fair_queues import FairQueue
from shoal.engine.queues.disciplines.kai.node_pools import NodePool
from shoal.engine.queues.disciplines.kai.node_preferences import profile_of
from shoal.engine.queues.disciplines.own_preferences import OwnPreferences

DEFAULT_ACTIONS = (ALLOCATE, CONSOLIDATION, RECLAIM, PREEMPT, STALE)
OPEN, CLOSE = "open", "close"
"""The steps that read the jobs, and that note whether anything is left to decide."""


class Fairshare:
    """The discipline for a cluster, or for a node pool of it."""

    def __init__(
        self,
        queues: Sequence[FairQueue] = (),
        settings: FairshareSettings = FairshareSettings(),  # noqa: B008 - a frozen value
        actions: Sequence[str] = DEFAULT_ACTIONS,
        pool: NodePool | None = None,
        preferences: str = "",
    ) -> None:
        """`pool`: the part of the cluster about which it decides; None for all of it. `preferences`: the name of a
        profile of node preferences, or KAI's default one."""
        self.pool = pool
        self.queues = tuple(queues)
        self.settings = settings
        self.actions = tuple(actions)
        self.usage: dict[str, tuple[float, ...]] = {}
        """Queue -> its use of each resource over the window, divided by the capacity over the window."""
        self.stale_since_s: dict[str, float] = {}
        """Gang -> since when it has run below its minimum."""
        self.last: FairshareCycle | None = None
        """The latest cycle that decided anything: its shares, and the reasons why jobs wait."""
        self.preferences = ""
        self._placement = OwnPreferences(profile_of(""))
        self.prefer(preferences)
        self._seen: set[str] = set()
        """Gangs that were looked at: what their objects record of earlier processes counts no more."""
        self._kept: frozenset[str] = frozenset()
        self._cut: tuple[object, ...] | None = None
        """The facts as the last cycle left them, if it ended before all jobs were looked at."""
        self._cut_at = 0
        """The place of the action that it ended in: the next cycle does not repeat those before."""
        self._quiet: tuple[object, ...] | None = None
        """The facts under which nothing is left to decide; None while there may be."""

    def prefer(self, preferences: str) -> None:
        """From the next step on."""
        if preferences != self.preferences:
            self.preferences = preferences
            self._placement.put(profile_of(preferences))

    def steps(self) -> tuple[Step, ...]:
        """The actions in their configured order."""
        return tuple(step for _, step in self.named_steps())

    def named_steps(self) -> tuple[tuple[str, Step], ...]:
        """With the name of each action; the first and the last step are none."""
        actions = ((action, self._step(at, action)) for at, action in enumerate(self.actions))
        return (OPEN, self._open), *actions, (CLOSE, self._end)

    def next_s(self) -> float | None:
        """When the passing of time alone may change a decision."""
        return None if self.last is None or self.last.due_s == math.inf else self.last.due_s

    def keep(self, state: CycleState) -> None:
        """Keep all gangs in queues of KAI from the steps of others."""
        state.keep(_queued_gangs(state))

    def _step(self, at: int, action: str) -> Step:
        if action == STALE:
            return partial(self._run, at, lambda cycle: evict_stale(cycle, self.stale_since_s, self._seen))
        return partial(self._run, at, ACTIONS[action])

    def _open(self, state: CycleState) -> None:
        """Read the jobs, if anything may have changed."""
        if self.last is not None and self._cut is not None and self._cut == self._facts(state):
            self.last.resume(state)
        elif not self._is_quiet(state):
            self._quiet = None
            self._cut_at = 0
            self._kept = _queued_gangs(state)
            self.last = FairshareCycle(state, self.queues, self.settings, self.usage, self.pool)
        self._cut = None
        state.keep(self._kept)

    def _run(self, at: int, action: Callable[[FairshareCycle], None], state: CycleState) -> None:
        if self._quiet is None and self.last is not None and at >= self._cut_at:
            with self._placement.within(state):
                action(self.last)
            if state.is_cut:
                self._cut, self._cut_at = self._facts(state), at

    def _end(self, state: CycleState) -> None:
        if self._quiet is None and not state.intentions and self.last is not None and self.last.is_final:
            self._quiet = self._facts(state)

    def _is_quiet(self, state: CycleState) -> bool:
        """Whether the latest cycle found nothing to do, and nothing has changed since, time included."""
        if self.last is None or self._quiet is None or state.now_s >= self.last.due_s:
            return False
        return self._quiet == self._facts(state)

    def _facts(self, state: CycleState) -> tuple[object, ...]:
        cluster = state.cluster
        waiting = cluster.pending.arrivals, len(cluster.pending)
        return cluster.version, waiting, self.queues, self.settings, self.usage, self.actions, self.pool


def _queued_gangs(state: CycleState) -> frozenset[str]:
    return frozenset(gang.name for gang in state.cluster.gangs if gang.facts and gang.facts.queue)
