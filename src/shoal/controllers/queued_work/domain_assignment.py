"""Assigns the pods of an admitted pod set to its topology domains, for schedulers that follow node selectors only.

Guarantees: a domain never gets more pods than the admission assigns to it; a pod with an index gets the domain of that
index, so that pods with neighboring ranks are near each other; a pod whose own selector names a domain gets that domain
or none; all state is in the pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from shoal.api.kueue.topology_assignments import TopologyAssignment
from shoal.units.numbers import whole_of

Domain = tuple[str, ...]


class DomainCandidate(msgspec.Struct, frozen=True):
    """A pod that has not ended."""

    name: str
    node_selector: Mapping[str, str]
    index: str = ""
    is_held: bool = True
    """It has no domain yet."""

    @property
    def rank(self) -> int | None:
        return whole_of(self.index)

    def may_use(self, levels: Sequence[str], domain: Domain) -> bool:
        """The API server allows additions to the node selector of a gated pod, but no changes."""
        own = self.node_selector
        return all(own.get(level, value) == value for level, value in zip(levels, domain, strict=False))


def assign_domains(
    assignment: TopologyAssignment, candidates: Sequence[DomainCandidate]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Names of held pods with the labels to add to their node selectors: by index where the pods have one, else in any
    domain that has places left."""
    domains, levels = list(assignment.domains()), assignment.levels
    left = Counter(dict(domains))
    left.subtract(tuple(one.node_selector.get(level, "") for level in levels) for one in candidates if not one.is_held)
    by_rank = [domain for domain, count in domains for _ in range(count)]
    unranked = []
    for one in sorted((one for one in candidates if one.is_held), key=lambda one: (one.rank or 0, one.name)):
        own = by_rank[one.rank] if one.rank is not None and one.rank < len(by_rank) else None
        if own is not None and left[own] > 0 and one.may_use(levels, own):
            left[own] -= 1
            yield one.name, dict(zip(levels, own, strict=False))
        else:
            unranked.append(one)
    # Pods that select a domain come first: the others can use any domain that is left.
    for one in sorted(unranked, key=lambda one: {*one.node_selector}.isdisjoint(levels)):
        free = next((domain for domain, _ in domains if left[domain] > 0 and one.may_use(levels, domain)), None)
        if free is not None:
            left[free] -= 1
            yield one.name, dict(zip(levels, free, strict=False))
