"""Rebuilds the admission units from the pods and the facts, after a fault left them in an unknown state.

Rejected: repairing what a fault may have left undone. The next fault would leave something else.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.controllers.scheduling_loop.protocols import SchedulerState
from shoal.engine.events import PodArrived, PodBound, PodGone
from shoal.engine.queues.disciplines.kai.admission_unit import GangSpec
from shoal.engine.queues.disciplines.kai.admission_units import AdmissionUnits

GangSpecOf = Callable[[PodArrived | PodBound], GangSpec | None]
"""None for pods that do not use a KAI queue."""


def rebuild_units(units: AdmissionUnits, scheduling: SchedulerState, spec_of: GangSpecOf, now_s: float) -> None:
    """Pods with a node are admitted; all others wait, including admitted pods that still look for a node."""
    units.clear()
    placed_pods = scheduling.cluster.pods
    known = [(event, spec) for event in scheduling.watched.reported() if (spec := spec_of(event)) is not None]
    for event, spec in known:
        if event.key in placed_pods and isinstance(event, PodBound):
            units.add_bound(event, spec)
    for event, spec in known:
        if event.key in placed_pods and isinstance(event, PodArrived):
            units.add_waiting(event, spec)
    for unit in list(units.all.values()):
        if unit.waiting:
            units.admit(unit, now_s)
    for event, spec in known:
        if event.key not in placed_pods and isinstance(event, PodArrived):
            scheduling.intake.apply(PodGone(event.key))
            units.add_waiting(event, spec)
