"""Works made anew from what is said of pods and what the facts have: after a fault nobody knows how far it came.

Rejected: mending what a fault may have left undone. Whatever breaks next would leave something else.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.controllers.brain.parts import Holder
from shoal.controllers.kai.work import Origin
from shoal.controllers.kai.works import Works
from shoal.engine.events import PodArrived, PodBound, PodGone

OriginOf = Callable[[PodArrived | PodBound], Origin | None]
"""None for pods that are nobody's here."""


def hear_anew(works: Works, brain: Holder, origin_of: OriginOf, now_s: float) -> None:
    """Who has a place is in; everybody else waits, also who was let in and looks for one."""
    works.clear()
    there = brain.cluster.pods
    known = [(event, origin) for event in brain.world.told() if (origin := origin_of(event)) is not None]
    for event, origin in known:
        if event.key in there and isinstance(event, PodBound):
            works.bound(event, origin)
    for event, origin in known:
        if event.key in there and isinstance(event, PodArrived):
            works.arrive(event, origin)
    for work in list(works.all.values()):
        if work.waiting:
            works.let_in(work, now_s)
    for event, origin in known:
        if event.key not in there and isinstance(event, PodArrived):
            brain.intake.apply(PodGone(event.key))
            works.arrive(event, origin)
