"""Assigns pods to admission units as pods arrive, are admitted, and are deleted.

Rejected: one list of pods per gang, split on each read. The units are the entries of the queue, and must keep their
identity from round to round.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from shoal.engine.events import PodArrived, PodBound
from shoal.engine.queues.disciplines.kai.admission_unit import SURPLUS, AdmissionUnit, GangSpec


class AdmissionUnits:
    """`created_s` returns when a pod was created."""

    def __init__(self, created_s: Callable[[str], float]) -> None:
        self._created_s = created_s
        self.all: dict[str, AdmissionUnit] = {}
        self.dirty: dict[str, None] = {}
        self._of: dict[str, str] = {}
        """Pod -> unit key."""
        self._gangs: dict[str, dict[str, AdmissionUnit]] = {}
        """By gang name."""

    def of_pod(self, pod: str) -> AdmissionUnit | None:
        return self.all.get(self._of.get(pod, ""))

    def of_gang(self, name: str) -> list[AdmissionUnit]:
        return list(self._gangs.get(name, {}).values())

    def any_of(self, name: str) -> AdmissionUnit | None:
        """Any unit of the gang."""
        return next(iter(self._gangs.get(name, {}).values()), None)

    def add_waiting(self, event: PodArrived, spec: GangSpec) -> None:
        self.remove(event.key)
        self._join(event, spec)

    def add_bound(self, event: PodBound, spec: GangSpec) -> None:
        unit = self.of_pod(event.key)
        if unit is None:
            unit = self._unit_for_bound(event, spec)
        unit.waiting.pop(event.key, None)
        unit.active[event.key] = event
        if not unit.admitted_s:
            unit.admitted_s = event.who.since_s
        self._mark(event.key, unit)
        if event.terminating and self._is_below_minimum(unit):
            self._reassign(spec)

    def admit(self, unit: AdmissionUnit, now_s: float) -> list[PodArrived]:
        """Admits the waiting pods of the unit. Replacements join the main unit of their gang."""
        pods = list(unit.waiting.values())
        core = unit.gang.get(unit.spec.name)
        if core is None or unit.is_surplus:
            core = unit
        unit.waiting.clear()
        for pod in pods:
            core.active[pod.key] = pod
            self._mark(pod.key, core)
        if core is not unit:
            self._remove(unit)
        else:
            unit.admitted_s, unit.evicted_s = now_s, None
        return pods

    def remove(self, pod: str) -> None:
        unit = self.of_pod(pod)
        self._of.pop(pod, None)
        if unit is None:
            return
        unit.waiting.pop(pod, None)
        was_active = unit.active.pop(pod, None) is not None
        self.dirty[unit.key] = None
        if not unit.active:
            unit.admitted_s, unit.evicted_s = 0.0, None
        if not unit.waiting and not unit.active:
            self._remove(unit)
        if self._is_below_minimum(unit) if was_active else not unit.is_surplus and len(unit.gang) > 1:
            self._reassign(unit.spec)

    def update_spec(self, spec: GangSpec) -> None:
        """The requirements of the group changed."""
        for unit in self.of_gang(spec.name):
            unit.spec = spec
            self.dirty[unit.key] = None
        self._reassign(spec)

    def clear(self) -> None:
        """Removes all units."""
        for known in (self.all, self.dirty, self._of, self._gangs):
            known.clear()

    # internals

    def _is_below_minimum(self, unit: AdmissionUnit) -> bool:
        """Whether waiting pods may now belong to the minimum of the gang."""
        return f"{unit.spec.name}{SURPLUS}" in unit.gang or bool(unit.spec.missing(unit.staying_pods()))

    def _reassign(self, spec: GangSpec) -> None:
        """Assigns the waiting pods of the gang anew, because its minimum may need other ones."""
        units = self.of_gang(spec.name)
        waiting = [pod for unit in units for pod in unit.waiting.values()]
        if not waiting:
            return
        for unit in units:
            unit.waiting.clear()
            if not unit.active:
                self._remove(unit)
        waiting.sort(key=lambda pod: (self._created_s(pod.key), pod.key))
        for pod in waiting:
            self._join(pod, spec)

    def _join(self, event: PodArrived, spec: GangSpec) -> None:
        unit = self._unit_for(event, spec)
        unit.waiting[event.key] = event
        self._mark(event.key, unit)

    def _mark(self, pod: str, unit: AdmissionUnit) -> None:
        self._of[pod] = unit.key
        self.dirty[unit.key] = None

    def _unit_for_bound(self, event: PodBound, spec: GangSpec) -> AdmissionUnit:
        core = self.all.get(spec.name)
        if core is None or spec.requires(event, core.active.values()):
            return self._make(spec.name, spec, event.key)
        return self._make_surplus(event.key, spec)

    def _unit_for(self, event: PodArrived, spec: GangSpec) -> AdmissionUnit:
        core = self.all.get(spec.name)
        if core is None or not core.active or core.is_terminating:
            is_needed = core is None or spec.requires(event, core.waiting.values())
            return self._make(spec.name, spec, event.key) if is_needed else self._make_surplus(event.key, spec)
        replacements = self.all.get(f"{spec.name}{SURPLUS}")
        beside = chain(core.staying_pods(), replacements.waiting.values() if replacements is not None else ())
        if spec.minimum is not None and spec.requires(event, beside):
            return self._make(f"{spec.name}{SURPLUS}", spec, event.key)
        return self._make_surplus(event.key, spec)

    def _make_surplus(self, pod: str, spec: GangSpec) -> AdmissionUnit:
        return self._make(f"{spec.name}{SURPLUS}{pod.partition('/')[2]}", spec, pod)

    def _make(self, key: str, spec: GangSpec, pod: str) -> AdmissionUnit:
        found = self.all.get(key)
        if found is None:
            gang = self._gangs.setdefault(spec.name, {})
            found = self.all[key] = gang[key] = AdmissionUnit(key, spec, gang, self._created_s(pod), {}, {})
        found.spec = spec
        return found

    def _remove(self, unit: AdmissionUnit) -> None:
        self.dirty[unit.key] = None
        if self.all.get(unit.key) is not unit:
            return
        del self.all[unit.key], unit.gang[unit.key]
        if not unit.gang:
            self._gangs.pop(unit.spec.name, None)
