"""Takes the time of each action of Volcano's sessions, and counts what the actions evicted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Protocol

from shoal.engine.cycle_state import CycleState, Step
from shoal.engine.plan import Evict
from shoal.engine.queues.disciplines.volcano.discipline import Volcano


class SessionObserver(Protocol):
    def observe(self, seconds: Mapping[str, float], victims: Mapping[str, Mapping[str, int]]) -> None:
        """The durations of the steps of a session, and the evicted pods, by action and by the job that they go for."""
        ...


class MeasuredSessions:
    def __init__(self, observer: SessionObserver, stopwatch: Callable[[], float], discipline: Volcano) -> None:
        self._observer = observer
        self._stopwatch = stopwatch
        self._discipline = discipline
        self._seconds: dict[str, float] = {}
        self._victims: dict[str, Counter[str]] = {}

    def steps(self) -> tuple[Step, ...]:
        self._seconds, self._victims = {}, {}
        return tuple(self._timed(name, step) for name, step in self._discipline.named_steps())

    def done(self) -> None:
        """After the steps of a cycle. A cycle without a session is not counted, nor is one that only admits groups: its
        steps are not timed."""
        if self._seconds and not self._discipline.rests:
            self._observer.observe(self._seconds, self._victims)

    def _timed(self, name: str, step: Step) -> Step:
        def run(state: CycleState) -> None:
            decided, began = len(state.intentions), self._stopwatch()
            step(state)
            self._seconds[name] = self._stopwatch() - began
            for each in state.intentions[decided:]:
                if isinstance(each, Evict):
                    self._victims.setdefault(name, Counter())[each.beneficiary] += 1

        return run
