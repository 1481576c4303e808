"""Runs Volcano's actions as steps of the engine's cycle, over the same facts, ledger and placement as other steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from shoal.engine.cycle_state import CycleState, Step
from shoal.engine.queues.disciplines.volcano.actions import ACTIONS
from shoal.engine.queues.disciplines.volcano.configuration import DEFAULT, VolcanoConfiguration
from shoal.engine.queues.disciplines.volcano.session import Session, VolcanoFacts


class Volcano:
    """The discipline `volcano`. `facts` returns queues and jobs as they are when a cycle begins."""

    def __init__(self, facts: Callable[[], VolcanoFacts], configuration: VolcanoConfiguration = DEFAULT) -> None:
        self._facts = facts
        self._configuration = configuration
        self._memory: dict[str, float] = {}
        self._state: CycleState | None = None
        self.session: Session | None = None
        """The last session."""

    def configure(self, configuration: VolcanoConfiguration) -> None:
        """From the next session on."""
        self._configuration = configuration

    def steps(self) -> tuple[Step, ...]:
        """The actions of the configuration, in order."""
        return tuple(partial(self._run, ACTIONS[name]) for name in self._configuration.actions)

    def _run(self, action: Callable[[Session], None], state: CycleState) -> None:
        if self._state is not state or self.session is None:
            self._state = state
            self.session = Session(state, self._facts(), self._configuration, self._memory)
        action(self.session)
