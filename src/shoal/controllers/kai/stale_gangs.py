"""Finds gangs that have had fewer pods than their minimum for a minute, whose other pods should be evicted.

The remaining pods hold devices without progress, and replacements may never come: the queue may be full by now, or the
job may create no more pods. KAI waits for replacements just as long, and evicts the rest. A gang with a succeeded pod
is not stale: it is about to finish.

Rejected: an annotation on the group with the time, as KAI writes it, so that a restart does not begin the minute anew.
It would be one write for each gang that is restarted, to save a minute after a restart of Shoal.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.engine.queues.disciplines.kai.admission_unit import AdmissionUnit
from shoal.engine.queues.disciplines.kai.admission_units import AdmissionUnits

STALE_AFTER_S = 60.0


class StaleGangs:
    def __init__(self, units: AdmissionUnits, has_succeeded: Callable[[str], bool]) -> None:
        """`has_succeeded` returns whether a pod of the gang (namespace/name) has succeeded."""
        self._units = units
        self._has_succeeded = has_succeeded
        self._since_s: dict[str, float] = {}

    def check(self, name: str, now_s: float) -> None:
        """Checks a gang that changed."""
        if self._is_below_minimum(name):
            self._since_s.setdefault(name, now_s)
        else:
            self._since_s.pop(name, None)

    def due(self, now_s: float) -> list[list[AdmissionUnit]]:
        """The remaining units of each gang whose time is over; each gang is returned once."""
        found = []
        for name in [name for name, since_s in self._since_s.items() if now_s >= since_s + STALE_AFTER_S]:
            del self._since_s[name]
            if not self._has_succeeded(name):
                found.append([unit for unit in self._units.of_gang(name) if unit.active])
        return found

    def next_s(self) -> float | None:
        return min((since_s + STALE_AFTER_S for since_s in self._since_s.values()), default=None)

    def _is_below_minimum(self, name: str) -> bool:
        unit = self._units.any_of(name)
        if unit is None or unit.evicted_s is not None or not unit.spec.is_known:
            return False
        return any(True for _ in unit.staying_pods()) and bool(unit.spec.missing(unit.staying_pods()))
