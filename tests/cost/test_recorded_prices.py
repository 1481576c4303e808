"""Prices that were recorded with machines: an edit of the price file changes no closed month, unless it has a date."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from shoal.cost.prices.billing import billing
from shoal.cost.prices.machine_prices import machine_prices
from shoal.cost.prices.price_file import PriceFile, read_price_file
from shoal.cost.prices.recorded_prices import PriceRecorder
from shoal.cost.records import Machine
from shoal.store.history.file_tables import open_for_writing
from shoal.store.history.ledger import Ledger, LedgerChanges
from shoal.store.history.tables import StoredRow
from shoal.units.calendar_windows import HOUR_MS, TimeWindow

TODAY = date(2026, 8, 1)
NODE = Machine("n", 0, instance_type="dgx", devices=("g",))
P5 = Machine("p", 0, instance_type="p5.48xlarge", devices=("g",))
DAY_MS = 24 * HOUR_MS


def _file(*machines: dict[str, Any], **parts: Any) -> PriceFile:
    return read_price_file({"machines": list(machines), **parts}, "prices.yaml")


def _dgx(per_hour: str | int, since: str = "") -> dict[str, Any]:
    return {"instanceType": "dgx", "perHour": per_hour, **({"from": since} if since else {})}


def _recorded(machine: Machine, *seen: tuple[int, PriceFile]) -> Machine:
    """By one recorder after the other, each with its price file."""
    row = machine
    for at_ms, file in seen:
        row = PriceRecorder(file).priced(machine, row, at_ms)
    return row


def _prices(machine: Machine) -> list[tuple[int, Decimal]]:
    return [(one.from_ms, one.per_hour) for one in machine.prices]


def _cost(machine: Machine, file: PriceFile, start_h: int, end_h: int) -> Decimal:
    window = TimeWindow(start_h * HOUR_MS, end_h * HOUR_MS)
    return billing([machine], machine_prices([machine], file, TODAY), file, window).invoice([machine], window)


def test_an_edit_without_a_date_changes_no_time_that_was_recorded() -> None:
    old, new = _file(_dgx(40)), _file(_dgx(45))
    row = _recorded(NODE, (0, old), (10 * HOUR_MS, old), (20 * HOUR_MS, new))
    assert [one.per_hour for one in row.prices] == [40, 45]
    assert _cost(row, new, 0, 20) == 800
    assert _cost(row, new, 20, 30) == 450
    # A price that is deleted was known.
    assert _cost(row, PriceFile(), 0, 20) == 800
    assert not machine_prices([row], new, TODAY).notes


def test_a_price_with_a_date_holds_as_the_file_says() -> None:
    row = _recorded(NODE, (0, _file(_dgx(40))))
    corrected = _file(_dgx(40), _dgx(30, "1970-01-02"))
    assert _cost(row, corrected, 0, 48) == 24 * 40 + 24 * 30


def test_a_price_with_a_date_is_recorded_when_it_begins() -> None:
    recorder = PriceRecorder(_file(_dgx(40), _dgx(30, "1970-01-02")))
    row = recorder.priced(NODE, None, HOUR_MS)
    assert recorder.has_begun(HOUR_MS)
    assert not recorder.has_begun(DAY_MS - 1)
    assert recorder.priced(NODE, row, DAY_MS - 1) == row
    assert recorder.has_begun(DAY_MS)
    row = recorder.priced(NODE, row, DAY_MS + 10)
    assert _prices(row) == [(0, Decimal(40)), (DAY_MS, Decimal(30))]
    assert not recorder.has_begun(DAY_MS + 11)


def test_a_price_file_replaces_what_the_catalogue_said() -> None:
    row = _recorded(P5, (0, PriceFile()))
    assert row.prices[0].is_listed
    assert _cost(row, _file({"instanceType": "p5.48xlarge", "perHour": 40}), 0, 10) == 400
    row = msgspec.structs.replace(row, prices=(msgspec.structs.replace(row.prices[0], per_hour=Decimal(98)),))
    assert _cost(row, PriceFile(), 0, 10) == 980


def test_a_second_edit_changes_no_time_for_which_the_first_replaced_the_catalogue() -> None:
    first, second = (_file({"instanceType": "p5.48xlarge", "perHour": price}) for price in (40, 45))
    row = _recorded(P5, (0, PriceFile()), (10 * HOUR_MS, first))
    before = _cost(row, first, 0, 20)
    row = _recorded(row, (20 * HOUR_MS, second))
    assert before == _cost(row, second, 0, 20) == 800
    # A list price after that of a file is its own.
    row = _recorded(P5, (0, first), (10 * HOUR_MS, PriceFile()))
    assert _cost(row, PriceFile(), 10, 11) == row.prices[1].per_hour


def test_prices_of_another_currency_are_not_added_up() -> None:
    row = _recorded(NODE, (0, _file(_dgx(40), currency="EUR")))
    assert machine_prices([row], PriceFile(), TODAY).unknown
    assert _cost(row, _file(_dgx(50)), 0, 1) == 50


def test_an_edit_that_does_not_count_yet_is_noted() -> None:
    row = _recorded(NODE, (0, _file(_dgx("40.00"))))
    (note,) = machine_prices([row], _file(_dgx(45)), TODAY).notes
    assert "the price of dgx is recorded as 40 an hour, the price file says 45 without a date" in note
    assert "write from:" in note


def test_a_note_about_an_edit_names_no_node() -> None:
    """Tenants read it, and a thousand nodes of one model are one line."""
    own = {"model": "H100-SXM5-80GB", "purchase": 8760, "years": 1, "watts": 0}
    bare = [Machine(f"secret-{at}", 0, model="H100-SXM5-80GB", devices=("g",)) for at in range(3)]
    rows = [_recorded(one, (0, _file(onPremises=[own]))) for one in bare]
    (note,) = machine_prices(rows, _file(onPremises=[{**own, "purchase": 17520}]), TODAY).notes
    assert "secret" not in note
    rows = [_recorded(Machine("secret", 0), (0, _file({"node": "secret", "perHour": 1})))]
    (note,) = machine_prices(rows, _file({"node": "secret", "perHour": 2}), TODAY).notes
    assert "secret" not in note


def test_a_label_that_is_added_later_changes_no_time_that_was_recorded() -> None:
    recorder = PriceRecorder(_file(_dgx(40), {"pool": "new", "perHour": 30}))
    row = recorder.priced(NODE, None, 0)
    labelled = msgspec.structs.replace(NODE, pool="new")
    assert _prices(recorder.priced(labelled, row, DAY_MS)) == [(0, Decimal(40)), (DAY_MS, Decimal(30))]


def test_a_recorded_price_ends_where_power_is_measured_instead() -> None:
    own = {"pool": "dc", "purchase": 8760, "years": 1, "perKwh": 1}
    node = Machine("n", 0, pool="dc", devices=("g",))
    measured = _file(onPremises=[own])
    row = _recorded(node, (0, _file(onPremises=[{**own, "watts": 1000}])), (10 * HOUR_MS, measured))
    assert _recorded(row, (11 * HOUR_MS, measured)) == row
    # An entry that is deleted ends nothing.
    assert len(_recorded(NODE, (0, _file(_dgx(40))), (10 * HOUR_MS, PriceFile())).prices) == 1
    prices = machine_prices([row], measured, TODAY, {("n", 0): Decimal(3000)})
    window = TimeWindow(0, 20 * HOUR_MS)
    assert billing([row], prices, measured, window).invoice([row], window) == 10 * (1 + 1) + 10 * (1 + 3)
    assert not prices.notes


def test_what_a_node_says_first_counts_from_its_start() -> None:
    recorder = PriceRecorder(_file(_dgx(40)))
    bare = Machine("n", 100)
    row = recorder.priced(bare, None, 200)
    assert row.prices == ()
    row = recorder.priced(msgspec.structs.replace(bare, instance_type="dgx"), row, 60_000)
    assert _prices(row) == [(100, Decimal(40))]


def test_a_price_that_depends_on_measured_power_is_not_recorded() -> None:
    own = {"pool": "dc", "purchase": 8760, "years": 1, "perKwh": "0.1"}
    pooled = msgspec.structs.replace(NODE, pool="dc")
    assert _recorded(pooled, (0, _file(onPremises=[own]))).prices == ()
    assert len(_recorded(pooled, (0, _file(onPremises=[{**own, "watts": 1000}]))).prices) == 1


def test_commitments_use_the_price_that_was_recorded_of_their_type() -> None:
    old, new = _file(_dgx(40)), _file(_dgx(60))
    first = msgspec.structs.replace(_recorded(NODE, (0, old)), end_ms=10 * HOUR_MS)
    later = msgspec.structs.replace(NODE, name="m", start_ms=10 * HOUR_MS)
    second = PriceRecorder(new).priced(later, None, 10 * HOUR_MS)
    block = {"name": "r", "instanceType": "other", "count": 1, "perHour": 1, "until": "1970-01-01"}
    plan = {"name": "s", "perHour": 0, "rates": {"dgx": "1"}}
    file = _file(_dgx(60), reservations=[block], savingsPlans=[plan])
    window = TimeWindow(0, 20 * HOUR_MS)
    found = billing([first, second], machine_prices([first, second], file, TODAY), file, window)
    assert found.invoice([first, second], window) == 400 + 600


def test_rows_of_earlier_versions_are_read_and_get_their_prices_from_the_next_recorder(tmp_path: Path) -> None:
    tables = open_for_writing(tmp_path)
    try:
        fields = msgspec.msgpack.decode(msgspec.msgpack.encode(NODE))
        assert len(fields) == 16
        tables.put("machine", [StoredRow("uid", 0, None, "", msgspec.msgpack.encode(fields[:15]))])
        ledger = Ledger(tables)
        (old,) = ledger.machines(0, 10)
        assert old == NODE
        assert _cost(old, _file(_dgx(40)), 0, 10) == 400
        row = PriceRecorder(_file(_dgx(40))).priced(NODE, old, 5 * HOUR_MS)
        ledger.write(LedgerChanges(5 * HOUR_MS, {"uid": row}))
        assert ledger.machines(0, 10) == [row]
        assert _cost(row, _file(_dgx(45)), 0, 10) == 400
    finally:
        tables.close()


@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.integers(1, 4), st.booleans(), st.one_of(st.none(), st.integers(0, 5))),
        min_size=1,
        max_size=8,
    ),
    st.integers(0, 3),
)
def test_a_closed_interval_costs_what_the_price_in_force_said_when_it_was_recorded(
    steps: list[tuple[int, int, bool, int | None]], start_h: int
) -> None:
    """Steps are hours, then a new price, with a restart, and perhaps also a price with a day. The oracle adds the
    hours, one by one, at the price that the file of that hour gave; a price with a date that a file has stays in all
    later files, as users correct the past with it."""
    row: Machine | None = None
    node = msgspec.structs.replace(NODE, start_ms=start_h * HOUR_MS)
    dated: dict[int, int] = {}
    at, known, recorder, file = start_h, [0] * 200, PriceRecorder(PriceFile()), PriceFile()
    undated = 7
    for hours, price, is_new, day in steps:
        if is_new:
            undated = 10 + price
        if is_new and day is not None and not dated:
            dated[day * 24] = 90 + price
        if is_new or row is None:
            file = _file(_dgx(undated), *(_dgx(rate, f"1970-01-{1 + hour // 24:02}") for hour, rate in dated.items()))
            recorder = PriceRecorder(file)
        row = recorder.priced(node, row, at * HOUR_MS)
        for hour in range(at, at + hours):
            known[hour] = undated
        at += hours
        row = recorder.priced(node, row, at * HOUR_MS - 1)
    assert row is not None
    expected = sum(
        next((rate for since, rate in dated.items() if hour >= since), known[hour]) for hour in range(start_h, at)
    )
    assert _cost(row, file, start_h, at) == expected
    if not dated:
        assert _cost(row, _file(_dgx(1)), start_h, at) == expected
