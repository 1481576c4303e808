"""Computes the dominant resource share of a node: what it borrowed of its scarcest resource, relative to what its tree
can lend.

What a node uses beyond the quota of its own subtree, over what its parent could lend if nothing were in use, times
1000; the resource where that is most is the dominant one. Weights divide it: a queue of weight 2 may borrow twice as
much for the same share. The root of a tree, and a queue without cohort, borrow nothing.

Computed anew each time, and only for resources that are borrowed. Rejected: keeping shares up to date with usage; every
trial removal would change them for a whole branch, and most are never looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, inf
from typing import NamedTuple

from shoal.engine.queues.facts import FlavorResource
from shoal.engine.queues.quota_tree import CohortNode

MOST = (1 << 63) - 1
"""What a status shows for infinite."""
NOTHING: Mapping[FlavorResource, int] = {}


class WeightedShare(NamedTuple):
    ratio: float
    """In thousandths, before the weight."""
    weight: float
    dominant: str
    borrows: bool

    @property
    def key(self) -> tuple[bool, float]:
        """Shares compare by it. With weight 0 a borrower has more than all others; among such the ratio counts."""
        if self.weight == 0:
            return (self.borrows, self.ratio)
        return (False, self.ratio / self.weight)

    @property
    def precise(self) -> float:
        if self.weight == 0:
            return inf if self.borrows else 0.0
        return self.ratio / self.weight

    @property
    def weighted(self) -> int:
        """As a status shows it."""
        return MOST if self.precise == inf else ceil(self.precise)


def less(one: WeightedShare, other: WeightedShare) -> bool:
    return one.key < other.key


def share_of(node: CohortNode, extra: Mapping[FlavorResource, int] = NOTHING) -> WeightedShare:
    """The node's share with what it uses now, and `extra` on top."""
    parent = node.parent
    if parent is None:
        return WeightedShare(0.0, node.weight, "", borrows=False)
    usage = node.usage
    borrowed: dict[str, int] = {}
    for fr, quota in node.subtree.items():
        beyond = usage.get(fr, 0) + extra.get(fr, 0) - quota
        if beyond > 0:
            borrowed[fr[1]] = borrowed.get(fr[1], 0) + beyond
    if not borrowed:
        return WeightedShare(0.0, node.weight, "", borrows=False)
    lendable = dict.fromkeys(borrowed, 0)
    for fr in node.root.subtree:
        if fr[1] in lendable:
            lendable[fr[1]] += parent.potential(fr)
    ratio, dominant = max(
        ((borrowed[name] * 1000.0 / most, name) for name, most in sorted(lendable.items()) if most > 0),
        default=(0.0, ""),
        key=_ratio,
    )
    return WeightedShare(ratio, node.weight, dominant, borrows=True)


def _ratio(candidate: tuple[float, str]) -> float:
    return candidate[0]
