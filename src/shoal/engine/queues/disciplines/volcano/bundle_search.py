"""Finds the bundles that must go for a job: so many of the first ones that it fits, then those that are needed.

The plain search tries on the ledger how many bundles suffice, and then spares one after the other, the last ones first.
Here the count decides first, at little cost: where it does not suffice, no trial can succeed. In most cases one trial
confirms the bundles that the count names. Otherwise trials go on from the evictions of the trial before, and bundles
are spared many at a time. The results are those of the plain search as long as a job that fits somewhere also fits
when more pods leave.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

from shoal.engine.queues.disciplines.volcano.after_departures import AfterDepartures, ViewMark
from shoal.engine.queues.disciplines.volcano.bundles import Bundle
from shoal.engine.queues.disciplines.volcano.counted_room import CountedRoom

First = Callable[[int], list[Bundle]]
"""So many bundles of a domain, or all there are."""
NewRoom = Callable[[], CountedRoom]
"""The count before any bundle has left."""


class BundleTrials:
    """Trials of one job. Bundles stay evicted from one trial to the next where both begin with the same ones."""

    def __init__(self, view: AfterDepartures, job: str, place: Callable[[], bool]) -> None:
        """`place`: places all that the job lacks; a failure leaves no trace."""
        self._view = view
        self._job = job
        self._place = place
        self._evicted: list[tuple[Bundle, ViewMark]] = []
        """The bundles with the marks before them."""

    def fits(self, bundles: Sequence[Bundle], others: Sequence[Bundle] = ()) -> bool:
        """Whether the job fits without these bundles and the others. They stay evicted, nothing is placed."""
        self._evict(bundles, others)
        mark = self._view.mark()
        fits = self._place()
        self._view.rollback(mark)
        return fits

    def decide(self, bundles: Sequence[Bundle]) -> bool:
        """Evict the bundles and place the job; all is as it was if it does not fit."""
        self._evict(bundles, ())
        if self._place():
            return True
        self.undo()
        return False

    def undo(self, kept: int = 0) -> None:
        """Take back the evictions after the first bundles."""
        if len(self._evicted) > kept:
            self._view.rollback(self._evicted[kept][1])
            del self._evicted[kept:]

    def _evict(self, bundles: Sequence[Bundle], others: Sequence[Bundle]) -> None:
        wanted = [*bundles, *others]
        evicted = self._evicted
        most = min(len(evicted), len(wanted))
        self.undo(next((at for at in range(most) if evicted[at][0] is not wanted[at]), most))
        for bundle in wanted[len(evicted) :]:
            evicted.append((bundle, self._view.mark()))
            for pod in bundle.pods:
                self._view.evict(pod, self._job)


class BundleSearch:
    """The search for one job in one domain."""

    def __init__(self, first: First, trials: BundleTrials, new_room: NewRoom) -> None:
        self._first = first
        self._trials = trials
        self._new_room = new_room

    def found(self) -> bool:
        """Whether bundles were found, evicted, and the job placed; otherwise all is as it was."""
        room = self._new_room()
        least = self._least_by_count(room)
        if not least:
            return False
        if self._trials.decide(_needed_by_count(self._first(least), room)):
            return True
        prefix = self._least_prefix(least)
        return bool(prefix) and self._trials.decide(self._needed(prefix))

    def _least_by_count(self, room: CountedRoom) -> int:
        """How many bundles must go at least; 0 if all are not enough. They have left the room afterwards."""
        bundles = self._first(1)
        gone = 0
        while True:
            for bundle in bundles[gone:]:
                room.leave(bundle.pods)
                gone += 1
                if room.suffices:
                    return gone
            bundles = self._first(2 * gone)
            if len(bundles) == gone:
                return 0

    def _least_prefix(self, least: int) -> list[Bundle]:
        """The first bundles that suffice. `least`: no fewer can."""
        trials = self._trials

        def suffices(count: int) -> bool:
            return count >= least and trials.fits(bundles[:count])

        bundles = self._first(1)
        most = len(bundles)
        while not suffices(most):
            # Bundles are judged on the facts of now.
            trials.undo()
            bundles = self._first(2 * most)
            if len(bundles) == most:
                return []
            most = len(bundles)
        fewer = most // 2 + 1
        return bundles[: fewer + bisect_left(range(fewer, most), True, key=suffices)]

    def _needed(self, bundles: Sequence[Bundle]) -> list[Bundle]:
        """Those of the bundles that must go, if all of them suffice."""
        trials, room = self._trials, self._new_room()
        for bundle in bundles:
            room.leave(bundle.pods)
        needed = [bundles[-1]]
        open_until = len(bundles) - 1
        while open_until:
            least = open_until
            while least:
                room.stay(bundles[least - 1].pods)
                if not room.suffices:
                    room.leave(bundles[least - 1].pods)
                    break
                least -= 1
            if least < open_until and not trials.fits(bundles[:least], needed):
                counts = range(least + 1, open_until)
                enough = counts.start + bisect_left(
                    counts, True, key=lambda count: trials.fits(bundles[:count], needed)
                )
                for bundle in bundles[least:enough]:
                    room.leave(bundle.pods)
                least = enough
            open_until = max(least - 1, 0)
            if least:
                needed.insert(0, bundles[open_until])
        return needed


def _needed_by_count(bundles: Sequence[Bundle], room: CountedRoom) -> list[Bundle]:
    """`room`: all the bundles have left it."""
    needed = [bundles[-1]]
    for bundle in reversed(bundles[:-1]):
        room.stay(bundle.pods)
        if not room.suffices:
            room.leave(bundle.pods)
            needed.append(bundle)
    needed.reverse()
    return needed
