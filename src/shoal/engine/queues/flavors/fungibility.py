"""Decides when the search over flavors stops, and which of two flavors is preferred.

A flavor that can take the workload at once and without borrowing always ends the search. For the others the cluster
queue says whether to look further (`flavorFungibility`), and at the end whether it would rather borrow or rather
preempt.
"""

from __future__ import annotations

from shoal.engine.queues.facts import Fungibility
from shoal.engine.queues.flavors.capacity import FlavorCapacity
from shoal.engine.queues.flavors.modes import Mode


def should_try_next(found: FlavorCapacity, rules: Fungibility) -> bool:
    """Whether the next flavor is tried as well."""
    if found.mode is Mode.FIT:
        return found.borrow > 0 and rules.when_can_borrow == "TryNextFlavor"
    if found.mode <= Mode.NO_CANDIDATES or rules.when_can_preempt == "TryNextFlavor":
        return True
    return found.borrow > 0 and rules.when_can_borrow == "TryNextFlavor"


def is_better(one: FlavorCapacity, other: FlavorCapacity, rules: Fungibility) -> bool:
    """A flavor that leads nowhere never wins over one that leads somewhere, however little it would borrow."""
    both_lead_somewhere = one.mode > Mode.NO_CANDIDATES and other.mode > Mode.NO_CANDIDATES
    if both_lead_somewhere and rules.preference == "PreemptionOverBorrowing" and one.borrow != other.borrow:
        return one.borrow < other.borrow
    if one.mode is not other.mode:
        return one.mode > other.mode
    return one.mode is not Mode.NO_FIT and one.borrow < other.borrow
