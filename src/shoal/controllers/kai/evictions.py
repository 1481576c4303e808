"""Evicts the pods of preempted units, and requests each eviction again until the pods are gone.

An eviction may be refused for the moment, by a PodDisruptionBudget or by a busy server; nothing else would repeat it.

The pods of gangs that have had fewer pods than their minimum for a minute are evicted as well. The remaining pods hold
devices without progress, and replacements may never come: the queue may be full by now, or the job may create no more
pods. KAI waits for replacements just as long, and evicts the rest. A gang with a succeeded pod is not stale: it is
about to finish.

Rejected: an annotation on the group with the time, as KAI writes it, so that a restart does not begin the minute anew.
It would be one write for each gang that is restarted, to save a minute after a restart of Shoal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shoal.engine.cluster import Cluster
from shoal.engine.plan import Evict
from shoal.engine.queues.disciplines.kai.admission_unit import AdmissionUnit
from shoal.engine.queues.disciplines.kai.admission_units import AdmissionUnits
from shoal.engine.reasons import Code

RETRY_S = 30.0
"""The time after which an eviction without effect is repeated."""


class KaiEvictions:
    def __init__(self, units: AdmissionUnits, cluster: Cluster, has_succeeded: Callable[[str], bool]) -> None:
        """`has_succeeded` returns whether a pod of the gang (namespace/name) has succeeded."""
        self._units = units
        self._cluster = cluster
        self.stale = StaleGangs(units, has_succeeded)
        self._evicting: dict[str, tuple[float, str]] = {}
        """Unit -> when to repeat the eviction, and for which group."""

    def awaited(self) -> set[str]:
        """The groups for which other pods are being evicted."""
        return {beneficiary for _, beneficiary in self._evicting.values()}

    def forget(self, unit: str) -> None:
        self._evicting.pop(unit, None)

    def evict(self, unit: AdmissionUnit, beneficiary: str, now_s: float, code: Code = Code.PREEMPTED) -> list[Evict]:
        self._evicting[unit.key] = now_s + RETRY_S, beneficiary
        pods = self._cluster.pods
        return [Evict(pod, beneficiary, code) for pod in unit.active if pod in pods and not pods[pod].is_terminating]

    def evict_with_gang(self, unit: AdmissionUnit, beneficiary: str, now_s: float) -> list[Evict]:
        """Evicts the unit, and the rest of its gang if that would be below the minimum."""
        evictions = self.evict(unit, beneficiary, now_s)
        others = [other for other in unit.gang.values() if other is not unit and other.active]
        if others and unit.spec.missing(pod for other in others for pod in other.active.values()):
            for other in others:
                other.evicted_s = now_s
                self._units.dirty[other.key] = None
                evictions += self.evict(other, beneficiary, now_s)
        return evictions

    def due(self, now_s: float) -> list[Evict]:
        """Repeated evictions, and evictions of stale gangs."""
        again = [(key, beneficiary) for key, (due_s, beneficiary) in self._evicting.items() if now_s >= due_s]
        units: Mapping[str, AdmissionUnit] = self._units.all
        evictions = [
            eviction
            for key, beneficiary in again
            if key in units
            for eviction in self.evict(units[key], beneficiary, now_s)
        ]
        for gang in self.stale.due(now_s):
            for unit in gang:
                unit.evicted_s = now_s
                self._units.dirty[unit.key] = None
                evictions += self.evict(unit, unit.spec.name, now_s, Code.GANG_TOO_SMALL)
        return evictions

    def preempted(self) -> dict[str, str]:
        """The preempted pods, and for which group."""
        units = self._units.all
        return {
            pod: beneficiary
            for key, (_, beneficiary) in self._evicting.items()
            if key in units
            for pod in units[key].active
        }

    def rebuild(self, preempted: Mapping[str, str], now_s: float) -> None:
        """Repeats all evictions after the units were rebuilt: the scheduler may not have received some of them."""
        self._evicting.clear()
        for pod, beneficiary in preempted.items():
            unit = self._units.of_pod(pod)
            if unit is not None and pod in unit.active:
                unit.evicted_s = now_s
                self._evicting[unit.key] = now_s, beneficiary

    def due_times(self) -> list[float | None]:
        return [*(due_s for due_s, _ in self._evicting.values()), self.stale.next_s()]


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
