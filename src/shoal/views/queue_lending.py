"""Shows which queues lend quota, and which use it.

A cohort's deficits (what its children use beyond their own, less what it borrows itself) are met from its own quota
first and then by the children that have some idle, in proportion; what a cohort lends, its children lend. All
borrowed quota has a lender, unless a quota was cut below its use.
"""

from __future__ import annotations

from shoal.engine.queues.facts import FlavorResource, Usage
from shoal.engine.queues.quota_tree import Cohort, CohortNode
from shoal.engine.queues.state import Queues


def lending_of(queues: Queues) -> dict[CohortNode, Usage]:
    """By node, what it lends to the outside; a root does not lend."""
    lent: dict[CohortNode, Usage] = {}
    for cohort in queues.cohorts.values():
        if cohort.parent is None:
            for fr in cohort.subtree:
                _meet(cohort, fr, 0, lent)
    return lent


def _meet(cohort: Cohort, fr: FlavorResource, outside: int, lent: dict[CohortNode, Usage]) -> None:
    """Divide what is needed of a cohort, inside and outside, among those who have it."""
    needed = outside + sum(_beyond(child, fr) for child in cohort.children)
    if cohort.parent is not None:
        needed -= _beyond(cohort, fr)
    needed = max(0, needed - cohort.nominal.get(fr, 0))
    idle = [(child, _idle(child, fr)) for child in cohort.children]
    total = sum(amount for _, amount in idle)
    needed = min(needed, total)
    met = seen = 0
    for child, amount in idle:
        # Rounded on the running sum, so that the parts add up.
        seen += amount
        part = needed * seen // total - met if total else 0
        met += part
        if part:
            lent.setdefault(child, {})[fr] = part
        if isinstance(child, Cohort):
            _meet(child, fr, part, lent)


def _beyond(node: CohortNode, fr: FlavorResource) -> int:
    return max(0, node.usage.get(fr, 0) - node.subtree.get(fr, 0))


def _idle(node: CohortNode, fr: FlavorResource) -> int:
    """Of what it would lend."""
    subtree = node.subtree.get(fr, 0)
    return max(0, subtree - max(node.kept.get(fr, 0), node.usage.get(fr, 0)))
