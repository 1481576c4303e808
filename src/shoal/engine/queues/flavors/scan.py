"""Searches the flavors of one resource group, for pod sets that take the same one.

Flavors are tried in order. A flavor that is good enough ends the search; otherwise the best
of all is taken. The reasons against the other flavors are kept for the message.

A flavor that can take the workload at once and without borrowing always ends the search. For the others the cluster
queue says whether to look further (`flavorFungibility`), and at the end whether it would rather borrow or rather
preempt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from shoal.engine.queues.facts import Amounts, Fungibility, PodSet, ResourceGroup, Usage
from shoal.engine.queues.flavors.capacity import FlavorCapacity, FlavorRequest
from shoal.engine.queues.flavors.eligibility import why_barred
from shoal.engine.queues.flavors.modes import Mode
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.state import Queues


@dataclass(slots=True, eq=False)
class ScanResult:
    """Where a search ended."""

    flavor: str = ""
    suits: FlavorCapacity | None = None
    """As the worst of its resources does; None where no flavor was found."""
    each: dict[str, FlavorCapacity] = field(default_factory=dict)
    """By resource."""
    last: int = 0
    """The last flavor that was looked at."""
    reasons: list[str] = field(default_factory=list)
    why: Wait = Wait.NO_FLAVOR
    """Why none was found: what the one that came closest lacked."""


@dataclass(slots=True, eq=False)
class Scanner:
    """What all searches for one workload have in common."""

    queues: Queues
    asker: FlavorRequest
    barred: frozenset[str]
    usage: Usage
    """What earlier pod sets were given; it grows while this is used."""

    def scan(self, group: ResourceGroup, wanted: Amounts, pod_sets: Sequence[PodSet], start: int) -> ScanResult:
        """The flavor to take for these amounts."""
        rules = self.asker.queue.facts.fungibility
        found = ScanResult()
        reasons = found.reasons
        for index in range(start, len(group.flavors)):
            name = group.flavors[index].name
            found.last = index
            refusal = self._refusal(name, pod_sets)
            if refusal:
                reasons.append(refusal)
                continue
            suits, each = self._weigh(name, wanted, reasons)
            if suits.mode is Mode.NO_FIT:
                if found.why is not Wait.QUOTA:
                    found.why = Wait.EXCEEDS_MAX_QUOTA if suits.is_hopeless else Wait.QUOTA
                continue
            is_last = not should_try_next(suits, rules)
            if is_last or found.suits is None or is_better(suits, found.suits, rules):
                found.flavor, found.suits, found.each = name, suits, each
            if is_last:
                break
        return found

    def _weigh(
        self, name: str, wanted: Amounts, reasons: list[str]
    ) -> tuple[FlavorCapacity, dict[str, FlavorCapacity]]:
        """The worst of the resources, and each of them up to one that does not fit."""
        worst: FlavorCapacity | None = None
        each: dict[str, FlavorCapacity] = {}
        for resource, amount in wanted.items():
            fr = (name, resource)
            capacity = each[resource] = self.asker.capacity(fr, self.usage.get(fr, 0), amount)
            if capacity.reason:
                reasons.append(capacity.reason)
            if capacity.mode is Mode.NO_FIT:
                return capacity, each
            if worst is None or is_better(worst, capacity, self.asker.queue.facts.fungibility):
                worst = capacity
        return worst or FlavorCapacity(Mode.FIT, 0), each

    def _refusal(self, name: str, pod_sets: Sequence[PodSet]) -> str:
        if name in self.barred:
            return f"flavor {name} is ruled out"
        for pod_set in pod_sets:
            refusal = why_barred(self.queues, self.asker.queue, name, pod_set)
            if refusal:
                return refusal
        return ""


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
