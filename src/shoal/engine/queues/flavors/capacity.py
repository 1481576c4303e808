"""Determines whether quota has capacity for a request in one flavor, now or after preemption.

Three limits in this order: what the tree could give at most (beyond that a request never fits), what it can give now,
and what preemption may take. Preemption is thought of only where the request is within the queue's own quota or that of
a cohort below the root, or where the queue may preempt while it borrows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.facts import FlavorResource, WorkloadFacts
from shoal.engine.queues.flavors.modes import Mode, Oracle
from shoal.engine.queues.quota_tree import lowest_that_fits
from shoal.units.quantity import Format, Quantity


class FlavorCapacity(NamedTuple):
    """How well a request suits a flavor."""

    mode: Mode
    borrow: int
    """The borrowing level."""
    reason: str = ""
    """Why not at once."""
    is_hopeless: bool = False
    """More than the tree could ever give."""


@dataclass(slots=True, eq=False)
class FlavorRequest:
    """On whose behalf quota is asked for."""

    queue: ClusterQueue
    facts: WorkloadFacts
    oracle: Oracle
    fair_sharing: bool

    def capacity(self, fr: FlavorResource, assumed: int, amount: int) -> FlavorCapacity:
        """`assumed` is what earlier pod sets of the workload were given."""
        queue = self.queue
        total = assumed + amount
        available = max(0, queue.available(fr))
        if total <= available:
            return FlavorCapacity(Mode.FIT, lowest_that_fits(queue, fr, total)[0])
        if total > queue.subtree.get(fr, 0) and total > (most := queue.potential(fr)):
            return FlavorCapacity(Mode.NO_FIT, 0, _too_much(fr, assumed, amount, most), is_hopeless=True)
        flavor, resource = fr
        missing = shown(resource, total - available)
        reason = f"insufficient unused quota for {resource} in flavor {flavor}, {missing} more needed"
        if (
            total <= queue.nominal.get(fr, 0)
            or self._preempts_while_borrowing()
            or lowest_that_fits(queue, fr, total)[1]
        ):
            mode, borrow = self.oracle(queue, self.facts, fr, total)
            return FlavorCapacity(mode, borrow, reason)
        return FlavorCapacity(Mode.NO_FIT, 0, reason)

    def _preempts_while_borrowing(self) -> bool:
        rules = self.queue.facts.preemption
        return rules.borrow != "Never" or (self.fair_sharing and rules.reclaim != "Never")


def shown(resource: str, amount: int) -> str:
    """An amount as people write it."""
    if resource == "cpu":
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource == "memory" or resource.startswith(("ephemeral-storage", "hugepages-")):
        return str(Quantity.of(amount, Format.BINARY))
    return str(amount)


def _too_much(fr: FlavorResource, assumed: int, amount: int, most: int) -> str:
    flavor, resource = fr
    return (
        f"insufficient quota for {resource} in flavor {flavor}, previously considered podsets requests "
        f"({shown(resource, assumed)}) + current podset request ({shown(resource, amount)}) "
        f"> maximum capacity ({shown(resource, most)})"
    )
