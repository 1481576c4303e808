"""Records the victims chosen so far in a trial: which are evicted together, their cost, and how the choice is undone.

Every choice is made on the ledger for real and can be taken back in any order, so that the question whether the
preemptor fits is answered by the facts and not by an estimate.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from shoal.engine.cluster import Cluster
from shoal.engine.ledger import Ledger
from shoal.engine.pods import PodAllocation
from shoal.engine.preemption.budgets import Allowances
from shoal.engine.preemption.candidates import AGE_BITS, Candidates, Mask
from shoal.engine.preemption.policy import Price
from shoal.engine.preemption.unevictable_gangs import UnevictableGangs

_NUMBER = (1 << AGE_BITS) - 1


class Victims:
    """Candidates that yield in the open trial."""

    __slots__ = ("_cluster", "_firm", "_held", "_ledger", "allowances", "breaking", "candidates", "thrifty")

    def __init__(self, cluster: Cluster, ledger: Ledger, candidates: Candidates) -> None:
        self._cluster = cluster
        self._ledger = ledger
        self.candidates = candidates
        self.allowances = Allowances(cluster, candidates.keys)
        self.breaking = False
        """Whether budgets may be broken in this trial."""
        self.thrifty = False
        """Whether pods with a budget count as expensive in this trial: budgets are kept for where they are needed."""
        self._held: dict[int, PodAllocation] = {}
        self._firm = UnevictableGangs(candidates, self.allowances)

    @property
    def chosen(self) -> list[int]:
        """The victims, in the order in which they were chosen."""
        return list(self._held)

    def together(self, wanted: Iterable[int]) -> list[int] | None:
        """These candidates and all that are evicted with them; None if that is not allowed."""
        candidates = self.candidates
        evicted, unit_of = candidates.evicted, candidates.unit
        going: dict[int, None] = {}
        members_of: dict[int, set[int]] = {}
        for index in wanted:
            if evicted.item(index):
                continue
            going[index] = None
            place = unit_of.item(index)
            if place >= 0:
                members_of.setdefault(place, set()).add(index)
        for place, members in members_of.items():
            unit = candidates.units[place]
            if self._spares(place, unit.evicted | members):
                continue
            if not unit.may_be_evicted:
                return None
            for member in unit.members:
                if not evicted.item(member):
                    going[member] = None
        if not self.breaking and self.allowances.broken_by(going):
            return None
        return list(going)

    def suits(self, going: Iterable[int]) -> bool:
        """Whether exactly these may be evicted, out of all victims of this trial."""
        members_of: dict[int, set[int]] = {}
        for index in going:
            place = self.candidates.unit.item(index)
            if place >= 0:
                members_of.setdefault(place, set()).add(index)
        units = self.candidates.units
        return all(
            len(members) == units[place].size or self._spares(place, members) for place, members in members_of.items()
        )

    def price(self, going: Iterable[int]) -> Price:
        """What these cost beside those chosen already."""
        candidates = self.candidates
        going = list(going)
        broken = self.allowances.broken_by(going) if self.breaking else 0
        if self.thrifty:
            broken += sum(map(self.allowances.covers, going))
        level, weight, late = float("-inf"), 0, 0
        members_of: dict[int, int] = {}
        for index in going:
            place = candidates.unit.item(index)
            if place >= 0:
                members_of[place] = members_of.get(place, 0) + 1
        for index in going:
            level = max(level, candidates.level.item(index))
            weight += candidates.weight.item(index)
            age = candidates.late[index]
            place = candidates.unit.item(index)
            if place >= 0:
                unit = candidates.units[place]
                if len(unit.evicted) + members_of[place] < unit.size:
                    # Pods that a gang can spare come before single pods.
                    age &= _NUMBER
            late += age
        return Price(broken, level, weight, late)

    def take(self, going: list[int]) -> None:
        """Evict these candidates in the trial."""
        candidates = self.candidates
        for index in going:
            key = candidates.keys[index]
            self._held[index] = self._cluster.pods[key]
            self._ledger.evict(key)
            self._note(index, 1)
        self._firm.look(going)

    def take_all(self, wanted: Iterable[int]) -> None:
        """Evict as many of these as allowed, each with the pods that must be evicted together with it."""
        for index in wanted:
            going = self.together([index])
            if going is not None:
                self.take(going)

    def spare(self, going: list[int]) -> None:
        """Undo the eviction of these victims. Nothing may have been placed since."""
        for index in going:
            self._ledger.reinstate(self.candidates.keys[index], self._held.pop(index))
            self._note(index, -1)
        self._firm.look(going)

    def forget(self, going: list[int]) -> None:
        """Forget these victims: the ledger was rolled back to before their eviction."""
        for index in going:
            del self._held[index]
            self._note(index, -1)
        self._firm.look(going)

    def confirm(self) -> list[int]:
        """Keep the chosen victims, whatever is tried next."""
        chosen = self.chosen
        self._held.clear()
        for index in chosen:
            place = self.candidates.unit.item(index)
            if place >= 0:
                unit = self.candidates.units[place]
                del unit.members[index]
                unit.evicted.discard(index)
                unit.size -= 1
        return chosen

    def parts(self, chosen: Iterable[int]) -> list[list[int]]:
        """Victims that could be spared separately, the most valuable first: whole evicted gangs, and single pods."""
        candidates = self.candidates
        parts: dict[tuple[int, int], list[int]] = {}
        for index in chosen:
            place = candidates.unit.item(index)
            whole = place >= 0 and candidates.units[place].is_evicted
            parts.setdefault((place, -1) if whole else (-1, index), []).append(index)
        return sorted(parts.values(), key=self._value, reverse=True)

    def now(self, eligible: Mask) -> Mask:
        """The eligible candidates without those that are evicted and those that cannot be evicted any more."""
        mask = eligible & ~self.candidates.evicted
        if self.breaking:
            return mask & ~self._firm.anyway[self.candidates.unit]
        return mask & ~self._firm.by_budgets[self.candidates.unit] & ~self.allowances.barred

    def is_elastic(self, part: list[int]) -> bool:
        """Whether these are a whole gang that could spare some of its pods."""
        place = self.candidates.unit.item(part[0])
        if len(part) == 1 or place < 0:
            return False
        facts = self.candidates.units[place].facts
        return not facts.is_evicted_whole and facts.minimum < len(part)

    def rows_touched(self, going: list[int]) -> NDArray[np.int64]:
        """Rows of these pods and of the other members of their gangs, whose price changes with them."""
        candidates = self.candidates
        touched = set(going)
        for place in set(candidates.unit[going].tolist()) - {-1}:
            touched.update(candidates.units[place].members)
        return np.unique(candidates.row[list(touched)])

    def _value(self, part: list[int]) -> tuple[float, int, int]:
        candidates = self.candidates
        return (
            max(candidates.level.item(index) for index in part),
            sum(candidates.weight.item(index) for index in part),
            sum(candidates.late[index] for index in part),
        )

    def _spares(self, place: int, evicted: set[int]) -> bool:
        """Whether the gang may lose exactly these."""
        alone = self.candidates.alone
        return all(alone.item(index) for index in evicted) and self.candidates.units[place].runs_without(evicted)

    def _note(self, index: int, sign: int) -> None:
        candidates = self.candidates
        candidates.evicted[index] = sign > 0
        self.allowances.take(index, sign)
        place = candidates.unit.item(index)
        if place >= 0:
            unit = candidates.units[place]
            if sign > 0:
                unit.evicted.add(index)
            else:
                unit.evicted.discard(index)
            candidates.unit_weight[place] -= sign * candidates.weight.item(index)
            candidates.unit_late[place] -= sign * candidates.late[index]
            candidates.unit_spare[place] = unit.most_spare
