"""Which pod of an admitted pod set goes into which of its domains, for pods whom their node selectors have to tell.

Promises: never more pods in a domain than the admission says; a pod with an index of its own gets the domain that the
index stands for, so that ranks that talk to each other are near each other; a pod whose own selector names a domain
gets that one or none; nothing is remembered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from shoal.api.kueue.topology_assignments import TopologyAssignment
from shoal.units.numbers import whole_of

Domain = tuple[str, ...]


class Seeker(msgspec.Struct, frozen=True):
    """A pod that is not over."""

    name: str
    node_selector: Mapping[str, str]
    index: str = ""
    is_held: bool = True
    """It has no domain yet."""

    @property
    def rank(self) -> int | None:
        return whole_of(self.index)

    def may_be_in(self, levels: Sequence[str], domain: Domain) -> bool:
        """Selectors of pods that are there can be added to, not changed."""
        own = self.node_selector
        return all(own.get(level, value) == value for level, value in zip(levels, domain, strict=False))


def shared_out(assignment: TopologyAssignment, seekers: Sequence[Seeker]) -> Iterator[tuple[str, dict[str, str]]]:
    """Names of held ones with what their node selectors say more: by index as far as they have one, else wherever
    there is room."""
    domains, levels = list(assignment.domains()), assignment.levels
    room = Counter(dict(domains))
    room.subtract(tuple(one.node_selector.get(level, "") for level in levels) for one in seekers if not one.is_held)
    ranked = [domain for domain, count in domains for _ in range(count)]
    later = []
    for one in sorted((one for one in seekers if one.is_held), key=lambda one: (one.rank or 0, one.name)):
        own = ranked[one.rank] if one.rank is not None and one.rank < len(ranked) else None
        if own is not None and room[own] > 0 and one.may_be_in(levels, own):
            room[own] -= 1
            yield one.name, dict(zip(levels, own, strict=False))
        else:
            later.append(one)
    # Who has chosen comes first: the others can take what is left.
    for one in sorted(later, key=lambda one: {*one.node_selector}.isdisjoint(levels)):
        free = next((domain for domain, _ in domains if room[domain] > 0 and one.may_be_in(levels, domain)), None)
        if free is not None:
            room[free] -= 1
            yield one.name, dict(zip(levels, free, strict=False))
