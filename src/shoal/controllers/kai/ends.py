"""Work that has to yield: its pods are ended, and asked for again until they are gone.

An end may be refused for the moment, by a disruption budget or by a server that is busy; whoever waits for the room has
nobody else to remember it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shoal.controllers.kai.stale_gangs import StaleGangs
from shoal.controllers.kai.work import Work
from shoal.controllers.kai.works import Works
from shoal.engine.cluster import Cluster
from shoal.engine.plan import Evict
from shoal.engine.reasons import Code

AGAIN_S = 30.0
"""After this an end that did not come is asked for again."""


class Ends:
    def __init__(self, works: Works, cluster: Cluster, has_succeeded: Callable[[str], bool]) -> None:
        """`has_succeeded`: whether a pod of the gang namespace/name has."""
        self._works = works
        self._cluster = cluster
        self.stale = StaleGangs(works, has_succeeded)
        self._evicting: dict[str, tuple[float, str]] = {}
        """Work -> when to ask for its end again, and for whose sake."""

    def awaited(self) -> set[str]:
        """For whose sake others end."""
        return {whose for _, whose in self._evicting.values()}

    def forget(self, work: str) -> None:
        self._evicting.pop(work, None)

    def end(self, work: Work, beneficiary: str, now_s: float, code: Code = Code.PREEMPTED) -> list[Evict]:
        self._evicting[work.key] = now_s + AGAIN_S, beneficiary
        pods = self._cluster.pods
        return [Evict(pod, beneficiary, code) for pod in work.there if pod in pods and not pods[pod].leaving]

    def end_with_rest(self, work: Work, beneficiary: str, now_s: float) -> list[Evict]:
        """With what else the gang has, where that is too little to go on with."""
        done = self.end(work, beneficiary, now_s)
        others = [other for other in work.gang.values() if other is not work and other.there]
        if others and work.origin.lacks(pod for other in others for pod in other.there.values()):
            for other in others:
                other.evicted_s = now_s
                self._works.dirty[other.key] = None
                done += self.end(other, beneficiary, now_s)
        return done

    def due(self, now_s: float) -> list[Evict]:
        """Of those whose end did not come, and of gangs of which too little is left."""
        again = [(key, whose) for key, (due_s, whose) in self._evicting.items() if now_s >= due_s]
        works: Mapping[str, Work] = self._works.all
        done = [ended for key, whose in again if key in works for ended in self.end(works[key], whose, now_s)]
        for gang in self.stale.due(now_s):
            for work in gang:
                work.evicted_s = now_s
                self._works.dirty[work.key] = None
                done += self.end(work, work.origin.name, now_s, Code.GANG_TOO_SMALL)
        return done

    def yielding(self) -> dict[str, str]:
        """Pods that have to yield, and for whose sake."""
        works = self._works.all
        return {pod: whose for key, (_, whose) in self._evicting.items() if key in works for pod in works[key].there}

    def begin_anew(self, yielding: Mapping[str, str], now_s: float) -> None:
        """Works are other ones by now, and nobody knows who has heard of his end: all are asked again."""
        self._evicting.clear()
        for pod, whose in yielding.items():
            work = self._works.of_pod(pod)
            if work is not None and pod in work.there:
                work.evicted_s = now_s
                self._evicting[work.key] = now_s, whose

    def moments(self) -> list[float | None]:
        return [*(due_s for due_s, _ in self._evicting.values()), self.stale.next_s()]
