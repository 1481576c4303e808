"""Lists the steps of a scheduling cycle: those of the queue disciplines first, then those of the loop.

A discipline of which a step failed is left out for a moment. Its gangs are kept from the other steps meanwhile, so that
no quota is exceeded; the pods of all others are placed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence

from shoal.controllers.scheduling_loop.protocols import QueueDiscipline
from shoal.engine.cycle_state import CycleState, Step

_log = logging.getLogger("shoal.scheduling")
_AGAIN_S = 1.0


class QueueSteps:
    def __init__(self, stopwatch: Callable[[], float] | None = None) -> None:
        self._stopwatch = stopwatch
        self.reading_s = 0.0
        """How long the disciplines read their jobs in the last cycle: the first step of each."""
        self._disciplines: list[QueueDiscipline] = []
        self._again_s: dict[QueueDiscipline, float] = {}
        """Disciplines that failed, and when their steps are tried again."""

    def add(self, discipline: QueueDiscipline) -> None:
        """Add a discipline after the existing ones."""
        self._disciplines.append(discipline)

    def __iter__(self) -> Iterator[QueueDiscipline]:
        return iter(self._disciplines)

    def before(self, steps: Sequence[Step], now_s: float) -> tuple[Step, ...]:
        """The steps of the disciplines and then these."""
        return (*self._steps(now_s), *steps)

    def next_s(self) -> float | None:
        """When a discipline that failed is tried again."""
        return min(self._again_s.values(), default=None)

    def words_of(self, group: str) -> str:
        return next((words for each in self._disciplines if (words := each.words_of(group))), "")

    def _steps(self, now_s: float) -> Iterator[Step]:
        self.reading_s = 0.0
        for discipline in self._disciplines:
            if now_s < self._again_s.get(discipline, now_s):
                yield discipline.keep
                continue
            self._again_s.pop(discipline, None)
            for at, step in enumerate(discipline.steps()):
                yield self._guarded(discipline, step if at else self._timed(step))

    def _timed(self, step: Step) -> Step:
        stopwatch = self._stopwatch
        if stopwatch is None:
            return step

        def run(state: CycleState) -> None:
            began = stopwatch()
            step(state)
            self.reading_s += stopwatch() - began

        return run

    def _guarded(self, discipline: QueueDiscipline, step: Step) -> Step:
        def run(state: CycleState) -> None:
            try:
                step(state)
            except Exception:
                _log.error("a step of %s failed", type(discipline).__name__)
                self._again_s[discipline] = state.now_s + _AGAIN_S
                raise

        return run
