"""Distributes pods as evenly as possible over as few domains as possible, for gangs whose members all communicate.

With `preferred` at level L, the pods should be even on the domains one level further down (or on L itself where slices
end there) and stay below one domain of level L-1. The measure is the *minimum*: the most that every used domain can
get. The order of preference is the highest minimum, then the fewest domains of L, then the tightest. Where no domain of
L-1 holds all pods, the pods are assigned in the usual way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from shoal.engine.queues.tas.flavor_topology import Column
from shoal.engine.queues.tas.order import PodSetPart
from shoal.engine.queues.tas.pod_counts import DomainPodCounts

MOST_SUMS = 50_000
"""Combinations that are looked at for the tightest set; beyond that the last domain alone is chosen tightly."""

Domains = NDArray[np.intp]
Evenness = Callable[[int], float]


@dataclass(slots=True, eq=False)
class SiblingDomains:
    """Domains of the preferred level below one parent, pruned of what is smaller than the minimum."""

    minimum: int
    fewest: int
    domains: Domains
    units: Column
    below: Domains
    """Domains of the level that is balanced."""
    below_units: Column


def balance(pod_counts: DomainPodCounts, need: int) -> tuple[int, list[PodSetPart]] | None:
    """The depth at which pods are even, and the pods of each domain; None for the usual way."""
    depth = pod_counts.ask.depth
    lower = depth + 1 if depth < pod_counts.ask.slice_depth else depth
    families = [family for span in _spans(pod_counts) if (family := _family(pod_counts, lower, span, need)) is not None]
    if not families:
        return None
    best = max(families, key=lambda family: (family.minimum, -family.fewest))
    chosen = _tightest(best.domains, best.units, need, lambda domain: _evenness(pod_counts, lower, best, domain))
    units = pod_counts.level(lower).units
    if lower != depth:
        bounds = pod_counts.forest.bounds[depth]
        inside = np.concatenate([np.arange(bounds[domain], bounds[domain + 1]) for domain in sorted(chosen)])
        inside = inside[units[inside] >= best.minimum]
        chosen = _tightest(inside, units[inside], need, lambda _: 0.0)
    return lower, _evenly(chosen, units, need, best.minimum)


def _spans(pod_counts: DomainPodCounts) -> list[tuple[int, int]]:
    """Domains of the preferred level, by their parent: first, and after the last."""
    depth, forest = pod_counts.ask.depth, pod_counts.forest
    if depth == 0:
        return [(0, len(forest.paths[0]))]
    above = forest.bounds[depth - 1]
    return list(pairwise(above))


def _family(pod_counts: DomainPodCounts, lower: int, span: tuple[int, int], need: int) -> SiblingDomains | None:
    """None where the need does not fit."""
    first, after = span
    below = np.arange(first, after)
    starts = below
    if lower != pod_counts.ask.depth:
        starts = pod_counts.forest.starts[pod_counts.ask.depth][first:after]
        below = np.arange(starts[0], pod_counts.forest.bounds[pod_counts.ask.depth][after])
    units = pod_counts.level(lower).units[below]
    count = _fewest(units, need)
    if not count:
        return None
    minimum = min(int(np.sort(units)[-count]), need // count)
    if not minimum:
        return None
    pruned = np.where(units >= minimum, units, 0)
    tops = np.add.reduceat(pruned, starts - starts[0])
    used, left = tops > 0, pruned > 0
    domains = np.arange(first, after)[used]
    return SiblingDomains(minimum, _fewest(tops, need), domains, tops[used], below[left], pruned[left])


def _fewest(units: Column, need: int) -> int:
    """How many domains it takes; 0 where all are not enough."""
    sums = np.sort(units)[::-1].cumsum()
    return 0 if not len(sums) or sums[-1] < need else int(np.searchsorted(sums, need)) + 1


def _evenness(pod_counts: DomainPodCounts, lower: int, family: SiblingDomains, domain: int) -> float:
    """Entropy of the free capacities inside a domain."""
    inside = family.below_units
    if lower != pod_counts.ask.depth:
        bounds = pod_counts.forest.bounds[pod_counts.ask.depth]
        inside = inside[(family.below >= bounds[domain]) & (family.below < bounds[domain + 1])]
        shares = inside / inside.sum()
        return -float((shares * np.log(shares)).sum())
    return 0.0


def _tightest(domains: Domains, units: Column, need: int, evenness: Evenness) -> list[int]:
    """The fewest that hold the need; of those the least capacity in all, then the most even inside."""
    count = _fewest(units, need)
    if count == 1:
        enough = units >= need
        tied = domains[enough & (units == units[enough].min())].tolist()
        return [tied[0] if len(tied) == 1 else max(tied, key=lambda domain: (evenness(domain), -domain))]
    if count * len(domains) * int(units.max()) > MOST_SUMS:
        order = np.argsort(-units, kind="stable")
        rest = order[count - 1 :]
        left = need - int(units[order[: count - 1]].sum())
        last = rest[units[rest] >= left][-1]
        return [*map(int, domains[order[: count - 1]]), int(domains[last])]
    return _least_sum(list(zip(domains.tolist(), units.tolist(), strict=True)), count, need, evenness)


def _least_sum(pod_counts: list[tuple[int, int]], count: int, need: int, evenness: Evenness) -> list[int]:
    # sums[k][total] = (evenness, domains): the most even choice of k domains with that total.
    sums: list[dict[int, tuple[float, list[int]]]] = [{0: (0.0, [])}, *({} for _ in range(count))]
    for domain, capacity in pod_counts:
        even = evenness(domain)
        for used in range(count, 0, -1):
            for total, (so_far, chosen) in sums[used - 1].items():
                known = sums[used].get(total + capacity)
                if known is None or known[0] + 1e-9 < so_far + even:
                    sums[used][total + capacity] = (so_far + even, [*chosen, domain])
    return min((total, chosen) for total, (_, chosen) in sums[count].items() if total >= need)[1]


def _evenly(domains: list[int], units: Column, need: int, minimum: int) -> list[PodSetPart]:
    each = min(minimum, need // len(domains))
    left = need - each * len(domains)
    parts = []
    for domain in sorted(domains, key=lambda domain: (-int(units[domain]), domain)):
        more = min(left, int(units[domain]) - each)
        left -= more
        parts.append(PodSetPart(domain, each + more, 0))
    return parts
