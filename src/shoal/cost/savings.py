"""Calculators of savings: what a change would cost less, from prices and hours that the caller gives.

No price and no utilisation is built in; an hour of a GPU costs what the caller says. A month has 730 hours unless the
caller says otherwise. Ratios and percentages are separate: what is three times cheaper costs 67 % less.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import msgspec

from shoal.cost.prices.on_premises import HOURS_PER_MONTH, HOURS_PER_YEAR


class Saving(msgspec.Struct, frozen=True):
    before: Decimal
    after: Decimal

    @property
    def amount(self) -> Decimal:
        return self.before - self.after

    @property
    def percent(self) -> Decimal:
        return 100 * self.amount / self.before if self.before else Decimal(0)

    @property
    def ratio(self) -> Decimal | None:
        """How many times cheaper."""
        return self.before / self.after if self.after else None

    def times(self, factor: Decimal) -> Saving:
        return Saving(self.before * factor, self.after * factor)


class IdleCost(msgspec.Struct, frozen=True):
    """The idle part of a price, by each measure and by the one that finds less idle: a GPU that computes all the time
    is not idle because its memory is half empty."""

    by_memory: Decimal
    by_utilisation: Decimal

    @property
    def by_both(self) -> Decimal:
        return min(self.by_memory, self.by_utilisation)


def idle_by_memory(allocated: Decimal, used: Decimal, per_hour: Decimal) -> Decimal:
    """Of the hourly price of what is allocated."""
    return (allocated - used) / allocated * per_hour


def idle_cost(memory_used: Decimal, utilisation: Decimal, per_hour: Decimal) -> IdleCost:
    """The first two are parts of 1."""
    return IdleCost((1 - memory_used) * per_hour, (1 - utilisation) * per_hour)


def gpus_for_services(services: int, slices: int) -> int:
    return -(-services // slices)


def mig_saving(services: int, slices: int, per_hour: Decimal) -> Saving:
    """Per hour: a GPU for each service, against a slice for each."""
    return Saving(services * per_hour, gpus_for_services(services, slices) * per_hour)


def per_month(saving: Saving, hours: Decimal = HOURS_PER_MONTH) -> Saving:
    return saving.times(hours)


def spot_saving(gpu_hours: Decimal, on_demand: Decimal, spot: Decimal) -> Saving:
    return Saving(gpu_hours * on_demand, gpu_hours * spot)


def consolidation_saving(gpus: int, fewer: int, hours_per_day: Decimal, per_hour: Decimal, days: int = 30) -> Saving:
    """In the hours off peak, `fewer` GPUs are given back."""
    hours = hours_per_day * days
    return Saving(gpus * hours * per_hour, (gpus - fewer) * hours * per_hour)


def reservation_saving(nodes: int, on_demand: Decimal, reserved: Decimal, hours: Decimal = HOURS_PER_YEAR) -> Saving:
    return Saving(nodes * on_demand * hours, nodes * reserved * hours)


def cost_per_model(invested: Decimal, models: int) -> Decimal:
    return invested / models


class Waste(msgspec.Struct, frozen=True):
    spent: Decimal
    idle: Decimal
    """At the utilisation of today."""
    idle_at_target: Decimal
    """The same number of GPUs at the target."""
    same_work: Decimal
    """Today's work on so many GPUs that they reach the target."""

    @property
    def saved(self) -> Decimal:
        return self.spent - self.same_work


def waste(spent: Decimal, utilisation: Decimal, target: Decimal) -> Waste:
    """`spent`: on all GPUs in the period; `utilisation`, `target`: parts of 1."""
    return Waste(spent, spent * (1 - utilisation), spent * (1 - target), spent * utilisation / target)


def effective_gpus(total: int, scheduling_efficiency_percent: int) -> int:
    return total * scheduling_efficiency_percent // 100


class CommitmentLevel(msgspec.Struct, frozen=True):
    nodes: int
    """So many are cheaper committed; what exceeds them is cheaper by the hour."""
    cost: Decimal
    on_demand_only: Decimal


def commitment_level(load: Sequence[int], committed: Decimal, by_hour: Decimal) -> CommitmentLevel:
    """`load`: nodes in use in each hour; the prices are per node and hour. One more node is committed while it is used
    in so many hours that paying for all of them is cheaper."""
    hours = len(load)
    nodes = 0
    for below, level in enumerate(sorted(load)):
        if (hours - below) * by_hour <= hours * committed:
            break
        nodes = level
    above = sum(max(0, one - nodes) for one in load)
    return CommitmentLevel(nodes, nodes * committed * hours + above * by_hour, sum(load) * by_hour)
