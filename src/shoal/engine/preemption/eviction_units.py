"""Determines which pods must be evicted together: a gang first gives up single pods above its minimum, then all pods.

A gang below its minimum does no useful work, so preemption must not reduce it below that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from shoal.engine.groups import GroupFacts
from shoal.engine.pod_identity import PodIdentity


@dataclass(slots=True)
class EvictionUnit:
    """The running pods of one gang, as candidates."""

    facts: GroupFacts
    size: int
    """Running pods, whether candidates or not."""
    stays: bool = False
    """It may not be evicted as a whole."""
    members: dict[int, PodIdentity] = field(default_factory=dict)
    """Candidates among them, the newest first."""
    others: list[PodIdentity] = field(default_factory=list)
    evicted: set[int] = field(default_factory=set)
    """Members that are evicted in the open trial."""
    weight: int = 0
    """Of all members."""
    late: int = 0

    @property
    def may_be_evicted(self) -> bool:
        """Whether the whole gang may be evicted."""
        return len(self.members) == self.size and not self.stays

    @property
    def is_evicted(self) -> bool:
        """Whether the whole gang is evicted in the open trial."""
        return len(self.evicted) == self.size

    @property
    def most_spare(self) -> int:
        """At most how many further pods could be evicted while the gang keeps running."""
        return 0 if self.facts.is_evicted_whole else max(self.size - len(self.evicted) - self.facts.minimum, 0)

    def runs_without(self, evicted: AbstractSet[int]) -> bool:
        """Whether the gang has all it needs when exactly these members are gone."""
        facts = self.facts
        if facts.is_evicted_whole or self.size - len(evicted) < facts.minimum:
            return False
        if not (facts.parts or facts.roles):
            return True
        left = [*self.others, *(who for index, who in self.members.items() if index not in evicted)]
        roles = Counter(who.role for who in left)
        return all(roles[role] >= least for role, least in facts.roles) and parts_have_what_they_need(
            facts, Counter(who.part for who in left)
        )


def parts_have_what_they_need(facts: GroupFacts, pods: Counter[str]) -> bool:
    """Whether enough of the parts directly below the gang have their minima, counted from the leaves up."""
    if not facts.parts:
        return True
    minimum = {part.name: part.minimum for part in facts.parts}
    below: dict[str, list[str]] = {}
    for part in facts.parts:
        below.setdefault(part.parent if part.parent in minimum else "", []).append(part.name)

    def has(name: str) -> bool:
        met = sum(map(has, below[name])) if name in below else pods[name]
        return met >= minimum[name]

    top = below[""]
    return sum(map(has, top)) >= (len(top) if facts.parts_minimum is None else facts.parts_minimum)
