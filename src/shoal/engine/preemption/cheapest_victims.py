"""Finds the cheapest set of victims by trying all sets where candidates are few, to improve a greedy choice.

Depth first over the candidates, the dearest first: spare it if that leaves a way, else let it yield. A branch ends when
it costs as much as what has been found, or when even all undecided candidates could not make enough capacity.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.engine.preemption.policy import Price
from shoal.engine.preemption.victims import Victims

MOST_ITEMS = 16
_MOST_STEPS = 3000


class CheapestVictims:
    """One search; no victim is taken when it starts, nor when it ends."""

    def __init__(
        self,
        victims: Victims,
        items: list[int],
        possible: Callable[[set[int]], bool],
        proves: Callable[[], bool],
        found: list[int] | None,
    ) -> None:
        """`possible` gets the spared candidates and may wrongly return true; `proves` tries it on the facts."""
        self._victims = victims
        self._items = sorted(items, key=lambda index: victims.price([index]), reverse=True)
        self._possible = possible
        self._proves = proves
        self._best = found
        self._price: Price | None = None if found is None else victims.price(found)
        self._steps = 0

    def found(self) -> list[int] | None:
        """The cheapest set; the one it was given if no other is cheaper."""
        self._go(0, [], set())
        return self._best

    def _go(self, place: int, yielding: list[int], spared: set[int]) -> None:
        self._steps += 1
        victims = self._victims
        going = victims.together(yielding)
        if self._steps > _MOST_STEPS or going is None or not spared.isdisjoint(going):
            return
        price = victims.price(going)
        if (self._price is not None and price >= self._price) or not self._possible(spared):
            return
        items = self._items
        chosen = set(going)
        while place < len(items) and items[place] in chosen:
            place += 1
        if place == len(items):
            victims.take(going)
            if self._proves():
                self._best, self._price = going, price
            victims.spare(going)
            return
        self._go(place + 1, yielding, spared | {items[place]})
        self._go(place + 1, [*yielding, items[place]], spared)
