"""The ledger: rows that are written again change nothing, unknown time is a gap, and a tenant's data can be removed."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

from shoal.client.item import item_of
from shoal.cost.price_curves import constant
from shoal.cost.records import DeviceShare, Holder, Holding, Machine, Span, Wait
from shoal.cost.statement import dimension, statement, whole_period
from shoal.store.history.file_tables import open_for_writing
from shoal.store.history.history import UsageHistory, open_history, read_history
from shoal.store.history.ledger import LedgerChanges
from shoal.store.history.memory_tables import MemoryTables
from shoal.store.history.pod_rows import holder_of, read_pod, wait_of
from shoal.units.calendar_windows import TimeWindow

MACHINE = Machine("m", 100, devices=("g0",))


@pytest.fixture(params=["memory", "file"])
def history(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[UsageHistory]:
    made = UsageHistory(MemoryTables() if request.param == "memory" else open_for_writing(tmp_path))
    yield made
    made.close()


def _held(pod: str, start: int, end: int | None, namespace: str = "n") -> Holding:
    holder = Holder(pod, namespace, team="t", labels=(("app", "x"),))
    return Holding(holder, "m", start, start, end, (DeviceShare("g0"),))


def test_what_is_open_is_found_again_by_the_next_recorder(history: UsageHistory) -> None:
    held, done = _held("p", 150, None), _held("q", 110, 140)
    wait = Wait(held.holder, 105, None, 1)
    history.ledger.write(LedgerChanges(200, {"m": MACHINE}, {"p": held, "q": done}, {"p": wait}))
    found = history.ledger.open()
    assert (found.machines, found.holdings, found.waits) == ({"m": MACHINE}, {"p": held}, {"p": wait})
    assert history.ledger.recorded_ms() == 200


def test_writing_a_row_again_changes_nothing(history: UsageHistory) -> None:
    changes = LedgerChanges(200, {"m": MACHINE}, {"p": _held("p", 150, None)})
    history.ledger.write(changes)
    before = history.ledger.holdings(0, 1000)
    history.ledger.write(changes)
    assert history.ledger.holdings(0, 1000) == before
    assert len(history.ledger.machines(0, 1000)) == 1


def test_time_before_the_history_and_after_what_was_recorded_is_a_gap(history: UsageHistory) -> None:
    assert history.ledger.gaps(0, 1000) == [Span(0, 1000)]
    history.ledger.write(LedgerChanges(200))
    history.ledger.write(LedgerChanges(800, gap=Span(300, 400)))
    assert history.ledger.gaps(0, 1000) == [Span(0, 200), Span(300, 400), Span(800, 1000)]
    assert history.ledger.gaps(250, 290) == []
    assert history.ledger.gaps(0, 100) == [Span(0, 100)]
    assert history.ledger.gaps(900, 1000) == [Span(900, 1000)]


def test_a_forgotten_namespace_leaves_neither_names_nor_free_time(history: UsageHistory) -> None:
    waits = {"p": Wait(Holder("p", "n"), 1, 2, 1), "q": Wait(Holder("q", "other"), 1, 2, 1)}
    holdings = {"p": _held("p", 100, 150), "q": _held("q", 150, 200, "other")}
    history.ledger.write(LedgerChanges(200, {"m": MACHINE}, holdings, waits))
    period = whole_period(TimeWindow(100, 200))

    def amounts(by: str) -> dict[str, Decimal]:
        rows = statement(history.records(100, 200), {"m": constant(Decimal(36_000))}, period, dimension(by))
        return {f"{row.group} {row.kind}": row.amount for row in rows if row.amount}

    assert amounts("namespace").keys() == {"n allocated-unmeasured", "other allocated-unmeasured"}
    assert history.ledger.forget("n") == 2
    assert amounts("namespace").keys() == {" allocated-unmeasured", "other allocated-unmeasured"}
    assert amounts("team").keys() == {" allocated-unmeasured", "t allocated-unmeasured"}
    assert [wait.holder.namespace for wait in history.ledger.waits(0, 1000)] == ["other"]


def test_what_ended_before_the_retention_is_deleted_and_what_is_open_is_not(history: UsageHistory) -> None:
    holdings = {"old": _held("old", 1, 10), "new": _held("new", 5, 20), "open": _held("open", 1, None)}
    history.ledger.write(LedgerChanges(200, holdings=holdings))
    history.ledger.delete_before(15)
    assert history.ledger.holdings(0, 1000).keys() == {"new", "open"}


def test_time_whose_rows_were_deleted_is_unknown_and_not_free(history: UsageHistory) -> None:
    held = {"p": _held("p", 100, 150), "q": _held("q", 150, 200)}
    history.ledger.write(LedgerChanges(100, {"m": MACHINE}, held))
    history.ledger.write(LedgerChanges(200, gap=Span(150, 170)))
    assert (history.ledger.since_ms(), history.ledger.deleted_ms()) == (100, None)
    history.ledger.delete_before(160)
    assert (history.ledger.since_ms(), history.ledger.deleted_ms()) == (160, 160)
    assert history.ledger.gaps(100, 200) == [Span(100, 160), Span(160, 170)]
    curves, period = {"m": constant(Decimal(36_000))}, whole_period(TimeWindow(100, 200))
    rows = statement(history.records(100, 200), curves, period, dimension("namespace"))
    assert {row.kind: row.amount for row in rows if row.amount} == {
        "allocated-unmeasured": Decimal("0.5"),
        "unknown": Decimal("0.5"),
    }


def test_a_deletion_before_the_history_began_changes_nothing(history: UsageHistory) -> None:
    history.ledger.delete_before(50)
    assert history.ledger.since_ms() is None
    history.ledger.write(LedgerChanges(100))
    history.ledger.delete_before(50)
    assert (history.ledger.since_ms(), history.ledger.deleted_ms()) == (100, None)


def test_a_deletion_by_a_clock_that_was_ahead_leaves_later_time_known(history: UsageHistory) -> None:
    history.ledger.write(LedgerChanges(100, {"m": MACHINE}))
    history.ledger.delete_before(10_000)
    history.ledger.write(LedgerChanges(200))
    history.ledger.write(LedgerChanges(300))
    assert (history.ledger.since_ms(), history.ledger.deleted_ms()) == (200, 200)
    assert history.ledger.gaps(0, 300) == [Span(0, 200)]


def test_usual_requests_and_those_that_wait_are_wanted(history: UsageHistory) -> None:
    waits = {f"p{at}": Wait(Holder(f"p{at}"), at, at + 1, 1) for at in range(300)}
    waits["rare"] = Wait(Holder("rare"), 40, 60, 8)
    waits["more"] = Wait(Holder("more"), 50, 80, 8)
    history.ledger.write(LedgerChanges(400, waits=waits))
    wanted = history.records(0, 400).wanted
    assert [(one.gpus, one.start_ms, one.end_ms) for one in wanted if one.gpus == 8] == [(8, 40, 80)]
    assert [one.start_ms for one in wanted if one.gpus == 1] == [0, None]


def test_a_history_is_read_while_it_is_written(tmp_path: Path) -> None:
    writer = open_history(tmp_path)
    writer.ledger.write(LedgerChanges(200, {"m": MACHINE}))
    reader = read_history(tmp_path)
    assert reader.ledger.machines(0, 1000) == [MACHINE]
    reader.close()
    writer.close()


@pytest.mark.parametrize(
    ("requests", "gpus"), [({"cpu": "100E"}, "1"), ({"memory": "100E"}, "1"), ({"cpu": "1"}, "1000E")]
)
def test_a_pod_that_requests_exabytes_can_be_written(tmp_path: Path, requests: dict[str, str], gpus: str) -> None:
    containers = [{"name": "c", "resources": {"requests": requests, "limits": {"nvidia.com/gpu": gpus}}}]
    meta = {"name": "p", "namespace": "t", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    obj = {"metadata": meta, "spec": {"containers": containers}, "status": {"phase": "Pending"}}
    pod = read_pod(item_of(msgspec.json.encode(obj)))
    history = open_history(tmp_path)
    recorded = wait_of(pod, holder_of(pod, {}), 0)
    assert recorded is not None
    history.ledger.write(LedgerChanges(1, waits={"u": recorded}))
    (wait,) = history.ledger.waits(0, 10**15)
    assert wait.holder.pod == "p"
