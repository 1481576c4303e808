"""Gangs that lost so many pods that they are below their minimum, and what is left of them ended after a minute.

What is left holds devices and gets nothing done, and nobody may replace those who went: a queue may be full by now, a
job may make no pods any more. KAI waits as long for successors, and ends the rest. A gang of which a pod has succeeded
is not short of anything: it is on its way to its end.

Rejected: a mark on the group, as KAI has it, so that a restart would not begin the minute anew. It would be a write for
every gang that is made anew, to save a minute after a restart.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.controllers.kai.work import Work
from shoal.controllers.kai.works import Works

AFTER_S = 60.0


class StaleGangs:
    def __init__(self, works: Works, has_succeeded: Callable[[str], bool]) -> None:
        """`has_succeeded`: whether a pod of the gang namespace/name has."""
        self._works = works
        self._has_succeeded = has_succeeded
        self._since_s: dict[str, float] = {}

    def look(self, name: str, now_s: float) -> None:
        """Something about the gang has changed."""
        if self._is_short(name):
            self._since_s.setdefault(name, now_s)
        else:
            self._since_s.pop(name, None)

    def due(self, now_s: float) -> list[list[Work]]:
        """Of each gang that was given its time, what is left; each once."""
        found = []
        for name in [name for name, since_s in self._since_s.items() if now_s >= since_s + AFTER_S]:
            del self._since_s[name]
            if not self._has_succeeded(name):
                found.append([work for work in self._works.of_origin(name) if work.there])
        return found

    def next_s(self) -> float | None:
        return min((since_s + AFTER_S for since_s in self._since_s.values()), default=None)

    def _is_short(self, name: str) -> bool:
        work = self._works.any_of(name)
        if work is None or work.evicted_s is not None or not work.origin.is_known:
            return False
        return any(True for _ in work.standing()) and bool(work.origin.lacks(work.standing()))
