"""Finds workloads whose end would free enough capacity, where released quota is not enough: for domains, or places on
nodes.

All of them are tried first. Then halving finds how many of those that yield first are enough, and as many of them as
possible are spared, large parts before single ones, the firmest first. In the end none of those named could be left
out; if the search is cut short on the way, the intermediate result is reported as such.
"""

from __future__ import annotations

from collections.abc import Sequence

from shoal.engine.queues.clusterqueue import AdmittedWorkload
from shoal.engine.queues.remedies.hypothetical_facts import HypotheticalFacts, softness
from shoal.engine.queues.remedies.remedy import Effect, FieldChange, Remedy, RemedyKind
from shoal.engine.queues.remedies.trials import SpentError, Trials


def ended(trials: Trials) -> Remedy | None:
    """The workloads of any queue that would have to end; None where all of them would not be enough."""
    # Its own work is not ended for it.
    own = trials.waiting.facts.replaces
    all_candidates = sorted((held for held in trials.queues.held.values() if held.key != own), key=softness)
    if not all_candidates or not _does(trials, all_candidates):
        return None
    narrowed = _Narrowed(trials, all_candidates)
    is_least = True
    try:
        narrowed.cut()
        narrowed.spare()
    except SpentError:
        is_least = False
    changes = tuple(FieldChange("Workload", key, "active") for key in sorted(held.key for held in narrowed.needed))
    return Remedy(RemedyKind.ENDED, Effect.ADMITTED, changes, is_least=is_least)


class _Narrowed:
    """Workloads whose end is enough, fewer with every trial that says so."""

    def __init__(self, trials: Trials, enough: Sequence[AdmittedWorkload]) -> None:
        self._trials = trials
        self.needed = list(enough)

    def cut(self) -> None:
        """So many of the first that one less is not enough."""
        low, high = 0, len(self.needed)
        while high - low > 1:
            middle = (low + high) // 2
            if _does(self._trials, self.needed[:middle]):
                self.needed = self.needed[:middle]
                high = middle
            else:
                low = middle

    def spare(self) -> None:
        """Who is not needed: large parts are spared first, single ones until none can be."""
        part = max(1, len(self.needed) // 2)
        while True:
            is_spared = self._spare_parts(part)
            if part == 1 and not is_spared:
                return
            part = max(1, part // 2)

    def _spare_parts(self, size: int) -> bool:
        is_spared = False
        start = len(self.needed)
        while start > 0:
            begin = max(0, start - size)
            rest = self.needed[:begin] + self.needed[start:]
            if rest and _does(self._trials, rest):
                self.needed, is_spared = rest, True
            start = begin
        return is_spared


def _does(trials: Trials, workloads: Sequence[AdmittedWorkload]) -> bool:
    def apply(scene: HypotheticalFacts) -> None:
        for held in workloads:
            scene.end(held)

    return trials.effect(apply) is Effect.ADMITTED
