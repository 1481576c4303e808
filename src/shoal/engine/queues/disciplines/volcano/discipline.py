"""Runs Volcano's actions as steps of the engine's cycle, over the same facts, ledger and placement as other steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from shoal.engine.cluster import Cluster
from shoal.engine.cycle_state import CycleState, Step
from shoal.engine.queues.disciplines.own_preferences import OwnPreferences
from shoal.engine.queues.disciplines.volcano.actions import ACTIONS
from shoal.engine.queues.disciplines.volcano.configuration import DEFAULT, VolcanoConfiguration
from shoal.engine.queues.disciplines.volcano.consolidation import consolidate
from shoal.engine.queues.disciplines.volcano.node_scores import volcano_profile
from shoal.engine.queues.disciplines.volcano.session import Session, VolcanoFacts

Stamp = tuple[int, ...]
_NEVER = float("inf")
ENQUEUE = "enqueue"
OPEN, CLOSE = "open session", "close session"
"""The steps before and after the actions."""


class Volcano:
    """The discipline `volcano`.

    `facts` returns queues and jobs as they are when a cycle begins: the same object as long as they are the same. A
    cycle in which nothing can have changed since one that decided nothing costs nothing. `admit` receives the jobs that
    a session has admitted. No other step of the cycle decides about the jobs: none of them knows the queues. Their pods
    go to the nodes that the configuration prefers.
    """

    def __init__(
        self,
        facts: Callable[[], VolcanoFacts],
        configuration: VolcanoConfiguration = DEFAULT,
        admit: Callable[[Iterable[str]], None] = lambda _: None,
    ) -> None:
        self._facts = facts
        self._admit = admit
        self._configuration = configuration
        self._preferences = OwnPreferences(volcano_profile(configuration))
        self._memory: dict[str, float] = {}
        self.session: Session | None = None
        """The last session."""
        self._cut: Stamp | None = None
        """The facts as the last session left them, if its cycle ended before all jobs were looked at."""
        self._cut_at = 0
        """The place of the action that it ended in: the next cycle does not repeat those before."""
        self._settled: Stamp | None = None
        """What the facts were when the last session ended."""
        self._settled_until_s = 0.0
        self._rests = False
        self._kept: tuple[VolcanoFacts | None, frozenset[str]] = None, frozenset()
        """The names of the jobs of these facts."""

    @property
    def is_idle(self) -> bool:
        """Whether the last session decided nothing, and nothing has changed since that a session reads."""
        session = self.session
        if session is None or self._settled is None or session.state.intentions or session.enqueued:
            return False
        return self._settled == self._stamp(session.cluster)

    def _stamp(self, cluster: Cluster) -> Stamp:
        return (
            cluster.version,
            cluster.pending.arrivals,
            len(cluster.pending),
            len(cluster.terminating),
            id(self._facts()),
            id(self._configuration),
        )

    def opened(self, state: CycleState) -> Session:
        """A session on the facts as they are, in which no action has run."""
        return Session(state, self._facts(), self._configuration, dict(self._memory))

    def configure(self, configuration: VolcanoConfiguration) -> None:
        """From the next session on."""
        if configuration != self._configuration:
            self._preferences.put(volcano_profile(configuration))
        self._configuration = configuration

    @property
    def configuration(self) -> VolcanoConfiguration:
        return self._configuration

    def next_s(self) -> float | None:
        """When a decision may change without an event."""
        return None if self._settled_until_s in (0.0, _NEVER) else self._settled_until_s

    def steps(self) -> tuple[Step, ...]:
        return tuple(step for _, step in self.named_steps())

    def named_steps(self) -> tuple[tuple[str, Step], ...]:
        """The actions of the configuration, in order, and then what Volcano has no action for."""
        actions = ((name, partial(self._run, at, name)) for at, name in enumerate(self._configuration.actions))
        return ((OPEN, self._open), *actions, (CLOSE, self._close))

    def admission_steps(self) -> tuple[Step, ...]:
        """Admit groups and place nothing, where another scheduler places the pods."""
        return (self._open, partial(self._run, len(self._configuration.actions), ENQUEUE), self._settle)

    @property
    def rests(self) -> bool:
        """Whether the last cycle had no session, because nothing could have changed."""
        return self._rests

    def keep(self, state: CycleState) -> None:
        """Keep the jobs from the steps of others."""
        facts = self._facts()
        if self._kept[0] is not facts:
            self._kept = facts, frozenset(facts.jobs)
        state.keep(self._kept[1])

    def _open(self, state: CycleState) -> None:
        """Read the jobs, if anything may have changed."""
        self.keep(state)
        self._rests = self.is_idle and self._settled_until_s > state.now_s
        goes_on, self._cut = self._cut is not None and self._cut == self._stamp(state.cluster), None
        if goes_on and self.session is not None and _changes_s(self.session) > state.now_s:
            self.session.resume(state)
        elif not self._rests:
            self._settled = None
            self._cut_at = 0
            self.session = Session(state, self._facts(), self._configuration, self._memory)

    def _run(self, at: int, name: str, state: CycleState) -> None:
        if self.session is None or self._rests or at < self._cut_at:
            return
        with self._preferences.within(state):
            ACTIONS[name](self.session)
        if name == ENQUEUE:
            self._admit(self.session.enqueued)
        if state.is_cut:
            self._cut, self._cut_at = self._stamp(state.cluster), at

    def _close(self, state: CycleState) -> None:
        """Move pods for the jobs that still wait."""
        if self.session is None or self._rests:
            return
        with self._preferences.within(state):
            consolidate(self.session)
        self._settle(state)

    def _settle(self, state: CycleState) -> None:
        """Remember what the facts were."""
        if self.session is None or self._rests:
            return
        self._settled_until_s = _changes_s(self.session)
        if self.session.is_final:
            self._settled = self._stamp(state.cluster)


def _changes_s(session: Session) -> float:
    """When a plugin may decide otherwise without an event."""
    return min((plugin.changes_s() for plugin in session.plugins), default=_NEVER)
