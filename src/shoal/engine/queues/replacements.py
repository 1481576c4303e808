"""Records which workload replaces which: of two workloads for the same job the newer one is charged. The older one is
kept uncharged until it finishes, and is charged again if the newer one releases its quota.

A workload has at most one replacement, of the same owner. A finished workload leaves no record.
"""

from __future__ import annotations

from typing import NamedTuple

from shoal.engine.queues.clusterqueue import AdmittedWorkload
from shoal.engine.queues.facts import WorkloadFacts


class ReplacedWorkload(NamedTuple):
    held: AdmittedWorkload
    was_charged: bool
    """A trial may have unseated it before."""


class Replacements:
    __slots__ = ("_aside", "_of", "_place")

    def __init__(self) -> None:
        self._of: dict[str, tuple[str, str]] = {}
        """Workload -> the holder that took its place, and whose work it is."""
        self._place: dict[str, str] = {}
        """The same from the other side. Its facts may name another one by now."""
        self._aside: dict[str, ReplacedWorkload] = {}
        """By that holder."""

    def __len__(self) -> int:
        return len(self._of) + len(self._aside)

    def is_replaced(self, facts: WorkloadFacts) -> bool:
        """Whether another one of the same work has its place."""
        found = self._of.get(facts.key)
        return found is not None and found[1] == facts.owner

    def knows(self, key: str) -> bool:
        """Whether another workload has replaced it."""
        return key in self._of

    def has_place(self, facts: WorkloadFacts) -> bool:
        """Whether it has the place that it names."""
        return bool(facts.replaces) and self._of.get(facts.replaces) == (facts.key, facts.owner)

    def takes(self, facts: WorkloadFacts, before: AdmittedWorkload | None) -> bool:
        """Whether it has the place of another one from now on; `before` is that one, as far as it is charged."""
        if not facts.replaces or facts.replaces == facts.key:
            return False
        if before is not None and before.facts.owner != facts.owner:
            return False
        mine = facts.key, facts.owner
        is_mine = self._of.setdefault(facts.replaces, mine) == mine
        if is_mine:
            self._place[facts.key] = facts.replaces
        return is_mine

    def put_aside(self, held: AdmittedWorkload, *, was_charged: bool) -> None:
        self._aside[self._of[held.key][0]] = ReplacedWorkload(held, was_charged)

    def not_so(self, key: str) -> None:
        """The supposed replacement belongs to another owner."""
        if key in self._of:
            del self._place[self._of.pop(key)[0]]

    def gives_up(self, key: str, *, is_over: bool) -> AdmittedWorkload | None:
        """One that is kept aside, or would be, holds nothing any more; what it held."""
        found = self._aside.pop(self._of[key][0], None)
        if is_over:
            self.not_so(key)
            self.give_back(key)
        return None if found is None else found.held

    def give_back(self, key: str) -> ReplacedWorkload | None:
        """An admitted workload replaces none any more; returns the one that it had replaced."""
        before = self._place.pop(key, None)
        if before is not None:
            del self._of[before]
        return self._aside.pop(key, None)
