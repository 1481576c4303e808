"""Finds the cheapest victims on one node: the forced ones if they are enough; else what remains when all are taken and
then spared one by one; else, where candidates are few, the best of all sets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from shoal.engine.preemption.cheapest_victims import MOST_ITEMS, CheapestVictims
from shoal.engine.preemption.trim import trim
from shoal.engine.preemption.victims import Victims


class RowBounds(Protocol):
    """What is known of a row by counting."""

    def on(self, row: int) -> list[int]: ...

    def forced(self, row: int, on: list[int]) -> list[int]: ...

    def may_fit(self, row: int, on: list[int], spared: set[int]) -> bool: ...


class NodeVictims:
    """The search on one row; it leaves those chosen who had been chosen before."""

    def __init__(self, victims: Victims, bounds: RowBounds, row: int, fits: Callable[[int], bool]) -> None:
        self._victims = victims
        self._bounds = bounds
        self._row = row
        self._fits = fits

    def free_capacity(self) -> list[int] | None:
        """The cheapest way to make room here, or None; its victims are taken."""
        victims, row = self._victims, self._row
        on = self._bounds.on(row)
        forced = victims.together(self._bounds.forced(row, on))
        if forced is None:
            return None
        victims.take(forced)
        if self._fits(row):
            return forced
        victims.spare(forced)
        found = self._among(on)
        if found is not None:
            victims.take(found)
        return found

    def _among(self, on: list[int]) -> list[int] | None:
        victims = self._victims
        before = set(victims.chosen)
        victims.take_all(on)
        found = None
        if self._proves():
            trim(victims, self._proves, before)
            found = [index for index in victims.chosen if index not in before]
        victims.spare([index for index in victims.chosen if index not in before])
        if len(on) > MOST_ITEMS:
            return found
        return CheapestVictims(
            victims, on, lambda spared: self._bounds.may_fit(self._row, on, spared), self._proves, found
        ).found()

    def _proves(self) -> bool:
        return self._fits(self._row)
