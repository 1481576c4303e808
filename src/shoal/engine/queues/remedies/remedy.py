"""Represents a remedy: which fields of which objects change, their old and new values, and the effect."""

from __future__ import annotations

from enum import StrEnum

import msgspec

Setting = int | str | None
"""A field's value; amounts in the engine's units. None where nothing is set."""


class RemedyKind(StrEnum):
    """The cheapest first: what its owner can do alone, then what others have to give, then what has to be bought."""

    CORRECT = "Correct"
    """An obstacle whatever else is changed; reported without a trial."""
    TURN = "Turn"
    """Nothing has to change."""
    FLAVOR = "Flavor"
    FEWER_PODS = "FewerPods"
    BORROWING = "BorrowingLimit"
    LENDING = "LendingLimit"
    RECLAIM = "ReclaimWithinCohort"
    """The queue takes back its quota that others borrow."""
    FREED = "Freed"
    ENDED = "Ended"
    PRIORITY = "Priority"
    QUOTA = "Quota"


class Effect(StrEnum):
    """What a cycle that looks at the workload first would do; the best first."""

    ADMITTED = "Admitted"
    ADMITTED_BY_QUOTA = "AdmittedByQuota"
    """Its pods, as they would be, were not tried on nodes."""
    PREEMPTS = "Preempts"
    """Other workloads are preempted for it."""
    UNTRIED = "Untried"


class FieldChange(msgspec.Struct, frozen=True):
    """One field of one object."""

    object: str
    """Its kind: ClusterQueue, Cohort, Workload, ..."""
    name: str
    field: str
    """As the API spells it; empty where the object itself is missing. `borrowed` and `used` are what a queue has of
    others and in all."""
    before: Setting = None
    after: Setting = None
    resource: str = ""
    flavor: str = ""
    part: str = ""
    """Of a workload: the pod set."""
    holders: tuple[str, ...] = ()
    """Workloads whose end gives the amount back, in the order in which they yield."""

    @property
    def size(self) -> float:
        """How much that is, compared with what was there."""
        if not isinstance(self.after, int):
            return 1.0
        before = self.before if isinstance(self.before, int) else 0
        return abs(self.after - before) / max(1, abs(before))


class Remedy(msgspec.Struct, frozen=True):
    """Changes that go together: if `is_least`, none of them could be left out, none could be smaller."""

    kind: RemedyKind
    effect: Effect
    changes: tuple[FieldChange, ...] = ()
    message: str = ""
    """The obstacle, where it is not a field."""
    is_least: bool = True
    """Whether it was tried that less does not do; the search may have been cut short before."""

    @property
    def cost(self) -> tuple[int, int, int, float, str]:
        """Remedies are sorted by it."""
        size = sum(change.size for change in self.changes)
        names = " ".join(f"{change.name} {change.flavor} {change.resource}" for change in self.changes)
        return (_KINDS[self.kind], _EFFECTS[self.effect], len(self.changes), size, names)


_KINDS = {kind: index for index, kind in enumerate(RemedyKind)}
_EFFECTS = {effect: index for index, effect in enumerate(Effect)}
