"""What there is of each gang, kept up as pods come, are let in and go: who belongs to which work.

Rejected: one list of pods for each gang, cut up anew whenever somebody asks. Works are what stands in line, and have to
be the same ones from round to round.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from shoal.controllers.kai.work import BEYOND, Origin, Work
from shoal.engine.events import PodArrived, PodBound


class Works:
    """`created_s` tells when a pod was created."""

    def __init__(self, created_s: Callable[[str], float]) -> None:
        self._created_s = created_s
        self.all: dict[str, Work] = {}
        self.dirty: dict[str, None] = {}
        self._of: dict[str, str] = {}
        """Pod -> work."""
        self._gangs: dict[str, dict[str, Work]] = {}
        """By name of the origin."""

    def of_pod(self, pod: str) -> Work | None:
        return self.all.get(self._of.get(pod, ""))

    def of_origin(self, name: str) -> list[Work]:
        return list(self._gangs.get(name, {}).values())

    def any_of(self, name: str) -> Work | None:
        """One of the origin's."""
        return next(iter(self._gangs.get(name, {}).values()), None)

    def arrive(self, event: PodArrived, origin: Origin) -> None:
        self.leave(event.key)
        self._join(event, origin)

    def bound(self, event: PodBound, origin: Origin) -> None:
        work = self.of_pod(event.key)
        if work is None:
            work = self._place_for_bound(event, origin)
        work.waiting.pop(event.key, None)
        work.there[event.key] = event
        if not work.admitted_s:
            work.admitted_s = event.who.since_s
        self._note(event.key, work)
        if event.leaving and self._is_short(work):
            self._sort_again(origin)

    def let_in(self, work: Work, now_s: float) -> list[PodArrived]:
        """All of it that waits. Who makes a gang whole again is one with it from now on."""
        pods = list(work.waiting.values())
        core = work.gang.get(work.origin.name)
        if core is None or work.is_beyond:
            core = work
        work.waiting.clear()
        for pod in pods:
            core.there[pod.key] = pod
            self._note(pod.key, core)
        if core is not work:
            self._remove(work)
        else:
            work.admitted_s, work.evicted_s = now_s, None
        return pods

    def leave(self, pod: str) -> None:
        work = self.of_pod(pod)
        self._of.pop(pod, None)
        if work is None:
            return
        work.waiting.pop(pod, None)
        was_there = work.there.pop(pod, None) is not None
        self.dirty[work.key] = None
        if not work.there:
            work.admitted_s, work.evicted_s = 0.0, None
        if not work.waiting and not work.there:
            self._remove(work)
        if self._is_short(work) if was_there else not work.is_beyond and len(work.gang) > 1:
            self._sort_again(work.origin)

    def again(self, origin: Origin) -> None:
        """The group says something else of itself."""
        for work in self.of_origin(origin.name):
            work.origin = origin
            self.dirty[work.key] = None
        self._sort_again(origin)

    def clear(self) -> None:
        """Nothing is known of anybody."""
        for known in (self.all, self.dirty, self._of, self._gangs):
            known.clear()

    # Inside

    def _is_short(self, work: Work) -> bool:
        """Whether who waits may be needed now, beyond the minimum or for it."""
        return f"{work.origin.name}{BEYOND}" in work.gang or bool(work.origin.lacks(work.standing()))

    def _sort_again(self, origin: Origin) -> None:
        """Who waits may be needed by now, or not any more."""
        works = self.of_origin(origin.name)
        waiting = [pod for work in works for pod in work.waiting.values()]
        if not waiting:
            return
        for work in works:
            work.waiting.clear()
            if not work.there:
                self._remove(work)
        waiting.sort(key=lambda pod: (self._created_s(pod.key), pod.key))
        for pod in waiting:
            self._join(pod, origin)

    def _join(self, event: PodArrived, origin: Origin) -> None:
        work = self._place_for(event, origin)
        work.waiting[event.key] = event
        self._note(event.key, work)

    def _note(self, pod: str, work: Work) -> None:
        self._of[pod] = work.key
        self.dirty[work.key] = None

    def _place_for_bound(self, event: PodBound, origin: Origin) -> Work:
        core = self.all.get(origin.name)
        if core is None or origin.needs(event, core.there.values()):
            return self._make(origin.name, origin, event.key)
        return self._beyond(event.key, origin)

    def _place_for(self, event: PodArrived, origin: Origin) -> Work:
        core = self.all.get(origin.name)
        if core is None or not core.there or core.is_ending:
            is_needed = core is None or origin.needs(event, core.waiting.values())
            return self._make(origin.name, origin, event.key) if is_needed else self._beyond(event.key, origin)
        fillers = self.all.get(f"{origin.name}{BEYOND}")
        beside = chain(core.standing(), fillers.waiting.values() if fillers is not None else ())
        if origin.minimum is not None and origin.needs(event, beside):
            return self._make(f"{origin.name}{BEYOND}", origin, event.key)
        return self._beyond(event.key, origin)

    def _beyond(self, pod: str, origin: Origin) -> Work:
        return self._make(f"{origin.name}{BEYOND}{pod.partition('/')[2]}", origin, pod)

    def _make(self, key: str, origin: Origin, pod: str) -> Work:
        found = self.all.get(key)
        if found is None:
            gang = self._gangs.setdefault(origin.name, {})
            found = self.all[key] = gang[key] = Work(key, origin, gang, self._created_s(pod), {}, {})
        found.origin = origin
        return found

    def _remove(self, work: Work) -> None:
        self.dirty[work.key] = None
        if self.all.get(work.key) is not work:
            return
        del self.all[work.key], work.gang[work.key]
        if not work.gang:
            self._gangs.pop(work.origin.name, None)
