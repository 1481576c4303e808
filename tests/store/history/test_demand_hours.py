"""The demand of each hour is the most that pods of the namespace held and waited for at one time."""

from __future__ import annotations

from datetime import UTC
from zoneinfo import ZoneInfo

from shoal.autoscale.demand.forecast import DemandHour
from shoal.cost.records import FULL_SHARE, DeviceShare, Holder, Holding, Span, Wait
from shoal.store.history.demand_hours import HOUR_MS, recorded_demand
from shoal.store.history.ledger import Ledger, LedgerChanges
from shoal.store.history.memory_tables import MemoryTables

# Monday, 23 November 2026, 0 h UTC.
MONDAY_MS = 1795392000000


def at(hours: float) -> int:
    return MONDAY_MS + round(hours * HOUR_MS)


def held(pod: str, start: float, end: float | None, share: int = FULL_SHARE, namespace: str = "team") -> Holding:
    devices = (DeviceShare("g0", share),)
    return Holding(Holder(pod, namespace), "m", at(start), at(start), None if end is None else at(end), devices)


def demand(holdings: list[Holding], waits: list[Wait], until: float, gap: Span | None = None) -> list[DemandHour]:
    ledger = Ledger(MemoryTables())
    ledger.write(LedgerChanges(at(0)))
    named = {each.holder.pod: each for each in holdings}
    ledger.write(LedgerChanges(at(until), {}, named, {each.holder.pod: each for each in waits}, gap))
    return [each for each in recorded_demand(ledger, "team", UTC) if each.gpus is not None]


def test_the_highest_demand_of_an_hour_counts_also_where_it_is_short() -> None:
    found = demand([held("a", 0, 3), held("b", 1.2, 1.4), held("c", 1.3, None, FULL_SHARE // 2)], [], 4.5)
    assert found == [DemandHour(0, 1.0), DemandHour(1, 2.5), DemandHour(2, 1.5), DemandHour(3, 0.5)]


def test_pods_that_wait_are_demand_and_other_namespaces_are_not() -> None:
    waits = [Wait(Holder("w", "team"), at(0.5), at(2), gpus=8), Wait(Holder("v", "other"), at(0), at(2), gpus=8)]
    found = demand([held("a", 2, 3), held("o", 0, 3, namespace="other")], waits, 3)
    assert found == [DemandHour(0, 8.0), DemandHour(1, 8.0), DemandHour(2, 1.0)]


def test_an_hour_with_unknown_time_is_unknown() -> None:
    found = demand([held("a", 0, None)], [], 4, Span(at(1.5), at(2.1)))
    assert found == [DemandHour(0, 1.0), DemandHour(3, 1.0)]


def test_hours_of_the_week_are_those_of_the_time_zone() -> None:
    ledger = Ledger(MemoryTables())
    ledger.write(LedgerChanges(at(0)))
    ledger.write(LedgerChanges(at(2)))
    known = [each.hour for each in recorded_demand(ledger, "team", ZoneInfo("Asia/Tokyo")) if each.gpus is not None]
    assert known == [9, 10]


def test_nothing_recorded_gives_no_hours() -> None:
    assert recorded_demand(Ledger(MemoryTables()), "team", UTC) == []
