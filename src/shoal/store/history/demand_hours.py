"""The demand for GPUs in each hour of a window, from the history: what pods held, and what pods waited for."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, tzinfo
from typing import Final

from shoal.autoscale.demand.forecast import HOURS, MOST_WEEKS, DemandHour
from shoal.cost.records import FULL_SHARE
from shoal.store.history.ledger import Ledger

HOUR_MS: Final = 3_600_000


def recorded_demand(ledger: Ledger, namespace: str, zone: tzinfo) -> list[DemandHour]:
    """Of the namespace, in the last weeks up to the last whole hour that was recorded; empty if there is none. An hour
    with any unknown time is unknown."""
    until = ledger.recorded_ms()
    if until is None:
        return []
    end = until - until % HOUR_MS
    start = max(end - (MOST_WEEKS + 1) * HOURS * HOUR_MS, 0)
    changes: dict[int, float] = defaultdict(float)
    for holding in ledger.holdings(start, end).values():
        if holding.holder.namespace == namespace:
            gpus = sum(each.share for each in holding.devices) / FULL_SHARE
            _add(changes, max(holding.start_ms, start), holding.end_ms, gpus)
    for wait in ledger.waits(start, end):
        if wait.holder.namespace == namespace:
            _add(changes, max(wait.start_ms, start), wait.end_ms, wait.gpus + wait.share / FULL_SHARE)
    unknown = set[int]()
    for gap in ledger.gaps(start, end):
        last = end if gap.end_ms is None else min(gap.end_ms, end)
        unknown.update(range(max(gap.start_ms, start) // HOUR_MS, -(-last // HOUR_MS)))
    return _hours(changes, range(start // HOUR_MS, end // HOUR_MS), unknown, zone)


def _add(changes: dict[int, float], start_ms: int, end_ms: int | None, gpus: float) -> None:
    if gpus:
        changes[start_ms] += gpus
        if end_ms is not None:
            changes[end_ms] -= gpus


def _hours(changes: dict[int, float], hours: range, unknown: set[int], zone: tzinfo) -> list[DemandHour]:
    """The highest level of each hour."""
    moments = sorted(changes)
    level, at, found = 0.0, 0, []
    for hour in hours:
        highest = level if at >= len(moments) or moments[at] > hour * HOUR_MS else 0.0
        while at < len(moments) and moments[at] < (hour + 1) * HOUR_MS:
            level += changes[moments[at]]
            at += 1
            highest = max(highest, level)
        local = datetime.fromtimestamp(hour * 3600, zone)
        gpus = None if hour in unknown else round(highest, 6)
        found.append(DemandHour(local.weekday() * 24 + local.hour, gpus))
    return found
