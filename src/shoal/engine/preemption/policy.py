"""Orders victims by the cost of their eviction, under each policy that a cluster may choose.

A set of victims costs, compared from left to right: budgets broken; the highest level among them; the sum of their
weights; how much work is lost in all, which for those that never save is all the time they have run. Orders differ in
what a level and a weight are, so that search, trimming and proof are one piece of code. Rejected: a comparison of whole
sets per order, which no bound can be computed from.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import msgspec

from shoal.engine.pods import PodAllocation

_EVERY_PRIORITY = 1 << 31
"""Added to each priority as kube-scheduler does, so that one pod more is never cheaper than one pod less."""
_PODS_BEFORE_GPUS = 1 << 24
_ALL_OF_TIME_S = float(1 << 33)


class Order(StrEnum):
    """Which victims are preferred."""

    LOWEST_PRIORITY = "lowest-priority-first"
    """The lowest top priority, then the smallest sum of priorities: kube-scheduler's order."""
    FEWEST = "fewest-victims"
    """The fewest pods, then the fewest GPUs."""
    FEWEST_GPUS = "fewest-gpus"
    """The fewest GPUs, then the fewest pods."""
    NEWEST = "newest-first"
    """The lowest highest priority, then the latest start, then the fewest: the reverse of the scheduling order."""
    FIFO = "fifo"
    """The earliest start, then the fewest."""
    LEAST_LOST_WORK = "least-lost-work"
    """The least time since work was last saved, times GPUs."""


class VictimPolicy(msgspec.Struct, frozen=True):
    """How a round makes room for those that may ask others to yield."""

    order: Order = Order.LOWEST_PRIORITY
    min_runtime_s: float = 0.0
    """Pods that have run for less are not preempted."""
    may_break_budgets: bool = False
    """Whether disruption budgets give way when there is no other way, as kube-scheduler has it."""
    surplus_only: bool = False
    """Whether gangs yield no more than what they have above their minima, as Volcano has it."""
    most_moves: int = 16
    """Pods that consolidation may move for one claimant."""


class Price(NamedTuple):
    """What a set of victims costs."""

    broken: int
    """Pods that yield against a budget."""
    level: float
    weight: int
    late: int
    """Time lost in all; pods that are newer, or have saved their work, are cheaper."""


NOTHING = Price(0, float("-inf"), 0, 0)


def level_and_weight(
    order: Order, now_s: float, allocation: PodAllocation, priority: int, started_s: float
) -> tuple[float, int]:
    """A pod's part in the price; priority and start are its gang's, if it has one."""
    match order:
        case Order.LOWEST_PRIORITY:
            return float(priority), priority + _EVERY_PRIORITY
        case Order.FEWEST:
            return 0.0, _PODS_BEFORE_GPUS + allocation.charge.gpu_milli
        case Order.FEWEST_GPUS:
            return 0.0, (allocation.charge.gpu_milli << 16) + 1
        case Order.NEWEST:
            # The older of equal priority is the higher level; two to the 33rd seconds are all of time.
            return priority + 1.0 - started_s / _ALL_OF_TIME_S, 1
        case Order.FIFO:
            return started_s, 1
        case Order.LEAST_LOST_WORK:
            lost_ms = round(1000 * allocation.who.lost_s(now_s))
            return 0.0, lost_ms * max(allocation.charge.gpu_milli, 1)
