"""Finds the smallest amounts that admit a workload: several settings are raised together, each as little as possible.

For each setting the search ends between an amount that suffices and the next smaller one that does not, both tried. The
result is minimal even where more is not always better. With several settings this holds for each one while the others
stay unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from shoal.engine.queues.remedies.hypothetical_facts import HypotheticalFacts
from shoal.engine.queues.remedies.remedy import Effect, FieldChange, Remedy, RemedyKind
from shoal.engine.queues.remedies.trials import Trials

_BEST_FIRST = tuple(Effect)


@dataclass(frozen=True, slots=True)
class MinimumSearch:
    """One setting: its range, its effect in a trial, and its message."""

    most: int
    apply: Callable[[HypotheticalFacts, int], None]
    reported: Callable[[int], FieldChange]


def smallest(
    trials: Trials, kind: RemedyKind, dials: Sequence[MinimumSearch], *, only_admission: bool = False
) -> Remedy | None:
    """The dials turned as little as is needed; None where turning all of them as far as they go does not help."""
    if not dials or any(dial.most <= 0 for dial in dials):
        return None
    search = _MinimumSearch(trials, dials)
    found = search.turn_down()
    if found is None or not any(search.amounts) or (only_admission and found is Effect.PREEMPTS):
        return None
    changes = tuple(dial.reported(amount) for dial, amount in zip(dials, search.amounts, strict=True) if amount)
    return Remedy(kind, found, changes)


@dataclass(slots=True)
class _MinimumSearch:
    trials: Trials
    dials: Sequence[MinimumSearch]
    amounts: list[int] = field(init=False)
    _known: dict[tuple[int, ...], Effect | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.amounts = [dial.most for dial in self.dials]

    def turn_down(self) -> Effect | None:
        target = self._effect(self.amounts)
        if target is None:
            return None
        is_new = True
        while is_new:
            before = list(self.amounts)
            for index in range(len(self.dials)):
                self._turn_down_one(index, target)
            is_new = len(self.dials) > 1 and before != self.amounts
        # Less may do better: a smaller size that fits, where all of it has others yield.
        return self._effect(self.amounts)

    def _turn_down_one(self, index: int, target: Effect) -> None:
        """From an amount that does to one of which the next smaller does not."""
        high = self.amounts[index]
        if high == 0 or not self._does(index, high - 1, target):
            return
        high -= 1
        low = -1
        if high > 0:
            if self._does(index, 0, target):
                high = 0
            else:
                low = 0
        while high - low > 1:
            middle = (low + high) // 2
            if self._does(index, middle, target):
                high = middle
            else:
                low = middle
        self.amounts[index] = high

    def _does(self, index: int, amount: int, target: Effect) -> bool:
        amounts = [*self.amounts[:index], amount, *self.amounts[index + 1 :]]
        found = self._effect(amounts)
        return found is not None and _BEST_FIRST.index(found) <= _BEST_FIRST.index(target)

    def _effect(self, amounts: Sequence[int]) -> Effect | None:
        key = tuple(amounts)
        if key not in self._known:
            self._known[key] = self.trials.effect(lambda scene: self._turn(scene, key))
        return self._known[key]

    def _turn(self, scene: HypotheticalFacts, amounts: Sequence[int]) -> None:
        for dial, amount in zip(self.dials, amounts, strict=True):
            if amount:
                dial.apply(scene, amount)
