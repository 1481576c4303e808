"""Prices the work that a disruption would lose, so that nothing is disrupted for less than it costs.

A node that is disrupted loses its price for as long as the longest of its pods must work again: what it did since its
last checkpoint, and the time until it works again. A consolidation must save that much within a given time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from shoal.autoscale.disruption.candidates import Candidate, offering_of
from shoal.autoscale.nodes.interruption_risk import losses_of, lost_hours
from shoal.autoscale.nodes.plan import NewNode
from shoal.autoscale.nodes.planning_input import pod_key

_HOUR_S: Final = 3600.0


class LostWork(msgspec.Struct, frozen=True):
    """What pods would lose if they were evicted now."""

    lost_s: Mapping[str, float] = {}
    """Seconds of work by pod, the time to start again included; a pod that is not listed loses nothing."""
    pays_off_within_s: float = _HOUR_S
    """In this time a consolidation must save what it loses."""

    def price(self, removed: Iterable[Candidate]) -> float:
        """Of the work that is lost if these nodes are disrupted."""
        total = 0.0
        for candidate in removed:
            longest = max((self.lost_s.get(pod_key(pod), 0.0) for pod in candidate.rescheduled), default=0.0)
            total += (candidate.price or 0.0) * longest / _HOUR_S
        return total

    def objection(self, removed: Iterable[Candidate], saved_per_hour: float) -> str | None:
        """Why the nodes are not worth disrupting; None if they are."""
        lost = self.price(removed)
        if lost <= saved_per_hour * self.pays_off_within_s / _HOUR_S:
            return None
        return f"its pods would lose work worth ${lost:,.2f}, and ${saved_per_hour:,.2f} per hour would be saved"


def riskier(
    removed: Sequence[Candidate], replacements: Sequence[NewNode], saved_per_hour: float, gangs: Mapping[str, str]
) -> str | None:
    """Why nodes that are interrupted more often save nothing; None if they save more than the interruptions cost.
    Without this, a node that was chosen because it is not interrupted would be replaced by a cheaper one that is.
    """
    after = sum(node.risk_price for node in replacements)
    if not after:
        return None
    pods = [pod for candidate in removed for pod in candidate.rescheduled]
    losses = dict(zip((pod_key(pod) for pod in pods), losses_of(pods, gangs), strict=True))
    before = 0.0
    for candidate in removed:
        offering = offering_of(candidate.node.existing, candidate.instance_type)
        if offering is not None:
            before += offering.risk_price(lost_hours(losses[pod_key(pod)] for pod in candidate.rescheduled))
    if saved_per_hour > after - before:
        return None
    return (
        f"interruptions of the new node would lose work worth ${after - before:,.2f} per hour more, and "
        f"${saved_per_hour:,.2f} per hour would be saved"
    )
