"""Detects gangs whose pods are still being created, so that no pod reports a gang as short meanwhile.

A gang of hundreds of pods arrives over many cycles. Reporting the present number on each pod would be hundreds of
writes that are outdated when users read them. So a gang with too few pods is reported when it has not grown for a
second.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.client.clock import Clock
from shoal.engine.gang_members import Gang, Gangs

_GROWS_S = 1.0
_MOST_KEPT = 10_000


class GangArrivals:
    """`tell` is called with the name of a gang that may be reported now."""

    def __init__(self, clock: Clock, gangs: Callable[[], Gangs], tell: Callable[[str], None]) -> None:
        self._clock = clock
        self._gangs = gangs
        self._report = tell
        self._growing: dict[str, int] = {}
        """Gang -> the number of its pods at the last check; it is checked again after a while."""
        self._settled: dict[str, int] = {}

    def is_growing(self, gang: Gang) -> bool:
        """Whether it lacks pods that may still be created."""
        name, size = gang.name, _size(gang)
        if gang.facts is None or size >= gang.facts.minimum:
            self._settled.pop(name, None)
            return False
        if self._settled.get(name) == size:
            return False
        if name not in self._growing:
            self._look_later(name, size)
        return True

    def _look_later(self, name: str, size: int) -> None:
        self._growing[name] = size
        self._clock.call_later(_GROWS_S, lambda: self._look(name))

    def _look(self, name: str) -> None:
        before, gang = self._growing.pop(name), self._gangs().find(name)
        if gang is None:
            self._settled.pop(name, None)
        elif _size(gang) != before:
            self._look_later(name, _size(gang))
        else:
            if len(self._settled) >= _MOST_KEPT:
                # Deleted gangs would otherwise stay in the set.
                self._settled.clear()
            self._settled[name] = before
            self._report(name)


def _size(gang: Gang) -> int:
    return len(gang.waiting) + len(gang.running)
