"""Which price a machine has, from when on, and what is asked where none is known."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from shoal.cost.price_curves import constant
from shoal.cost.prices.billing import billing
from shoal.cost.prices.commitments import blended, hourly_price
from shoal.cost.prices.machine_prices import decision_rate, machine_prices, missing_note
from shoal.cost.prices.on_premises import per_gpu_hour
from shoal.cost.prices.price_file import PriceFile, Reservation, SavingsPlan, read_price_file
from shoal.cost.records import Machine, Records
from shoal.cost.statement import dimension, statement, total, whole_period
from shoal.units.calendar_windows import HOUR_MS, TimeWindow
from shoal.units.errors import UserError, Where

TODAY = date(2026, 8, 1)
P5 = Machine("n", 0, instance_type="p5.48xlarge", model="H100-SXM5-80GB", devices=tuple(f"g{i}" for i in range(8)))
OCTOBER = 1_790_812_800_000


def _file(**parts: Any) -> PriceFile:
    return read_price_file(parts, "prices.yaml")


def _rate(machine: Machine, file: PriceFile, at_ms: int = 0) -> Decimal:
    found = machine_prices([machine], file, TODAY)
    assert not found.unknown
    return found.curves()[machine.name].rate(at_ms)


def test_the_catalogue_prices_a_machine_that_no_file_names() -> None:
    assert _rate(P5, PriceFile()) == Decimal("55.04")


def test_the_most_special_entry_holds() -> None:
    entries = [
        {"instanceType": "p5.48xlarge", "perHour": 40},
        {"pool": "gold", "perHour": "39.5"},
        {"node": "n", "perHour": 38.25},
    ]
    pooled = Machine("m", 0, instance_type="p5.48xlarge", pool="gold")
    file = _file(machines=entries)
    assert [_rate(one, file) for one in (P5, pooled, Machine("o", 0, instance_type="p5.48xlarge"))] == [
        Decimal("38.25"),
        Decimal("39.5"),
        Decimal(40),
    ]


def test_a_price_with_a_day_holds_from_that_day_and_the_list_price_before() -> None:
    file = _file(machines=[{"instanceType": "p5.48xlarge", "perHour": "50", "from": "2026-10-01"}])
    assert [_rate(P5, file, at) for at in (OCTOBER - 1, OCTOBER)] == [Decimal("55.04"), Decimal(50)]


def test_an_unknown_instance_type_is_asked_for_and_not_guessed() -> None:
    found = machine_prices([Machine("n1", 0, instance_type="dgx-h100", model="H100-SXM5-80GB")], PriceFile(), TODAY)
    assert not found.by_machine
    with pytest.raises(UserError, match=r"dgx-h100.*machines: \[\{instanceType: dgx-h100, perHour: AMOUNT\}\]"):
        found.check(Where(path="--prices"))


def test_a_machine_without_an_instance_type_is_asked_for_by_its_name() -> None:
    found = machine_prices([Machine("box", 0)], PriceFile(), TODAY)
    assert found.unknown[0].asked() == "machines: [{node: box, perHour: AMOUNT}]"


def test_a_spot_machine_has_the_price_of_its_hour_and_never_the_list_price() -> None:
    spot = Machine("s", 0, instance_type="p5.48xlarge", capacity="spot", region="us-west-2")
    assert machine_prices([spot], PriceFile(), TODAY).unknown[0].is_spot
    history = [
        {"instanceType": "p5.48xlarge", "region": "us-west-2", "perHour": "12.70"},
        {"instanceType": "p5.48xlarge", "region": "us-west-2", "perHour": "16.13", "from": "2026-10-01"},
        {"instanceType": "p5.48xlarge", "perHour": "99"},
    ]
    file = _file(spot=history)
    assert [_rate(spot, file, at) for at in (0, OCTOBER)] == [Decimal("12.70"), Decimal("16.13")]


def test_a_price_that_begins_after_the_machine_is_asked_for() -> None:
    file = _file(machines=[{"instanceType": "dgx", "perHour": 1, "from": "2026-10-01"}])
    found = machine_prices([Machine("n", 0, instance_type="dgx")], file, TODAY)
    assert found.unknown[0].reason == "has no price before 2026-10-01"


def test_a_price_list_in_another_currency_is_not_used() -> None:
    assert machine_prices([P5], _file(currency="EUR"), TODAY).unknown


def test_an_old_list_price_is_noted_and_a_fresh_one_is_not() -> None:
    assert machine_prices([P5], PriceFile(), date(2026, 12, 1)).notes
    assert not machine_prices([P5], PriceFile(), TODAY).notes


def test_a_machine_of_ones_own_costs_its_purchase_its_power_and_the_rest_of_a_year() -> None:
    own = {
        "model": "H100-SXM5-80GB",
        "purchase": 35040,
        "years": 4,
        "watts": 1000,
        "pue": "1.5",
        "perKwh": "0.20",
        "otherPerYear": "876",
    }
    machine = Machine("n", 0, instance_type="dgx-h100", model="NVIDIA-H100-80GB-HBM3", devices=("a", "b"))
    assert _rate(machine, _file(onPremises=[own])) == 2 * (1 + Decimal("0.1") + Decimal("0.3"))


def test_measured_power_is_used_where_the_file_gives_no_watts() -> None:
    own = {"pool": "dc", "purchase": 8760, "years": 1, "perKwh": "0.1"}
    file = _file(onPremises=[own])
    machine = Machine("n", 0, pool="dc", devices=("a", "b"))
    assert machine_prices([machine], file, TODAY).unknown
    found = machine_prices([machine], file, TODAY, {("n", 0): Decimal(2000)})
    assert found.curves()["n"].rate(0) == 2 * (1 + Decimal("0.1"))
    assert per_gpu_hour(file.on_premises[0]) is None


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"machines": [{"instanceType": "a", "perHour": "1e3"}]}, r"machines\[0\].perHour"),
        ({"machines": [{"instanceType": "a", "perHour": -1}]}, "negative"),
        ({"machines": [{"instanceType": "a", "perHour": -1.5}]}, "is not an amount"),
        ({"machines": [{"instanceType": "a", "pool": "b", "perHour": 1}]}, "has to name one of"),
        ({"machines": [{"perHour": 1}]}, "has to name one of"),
        ({"machines": [{"instanceType": "a", "perHour": 1, "from": "soon"}]}, "is not a time"),
        ({"machines": [{"instanceType": "a", "price": 1}]}, "price"),
        ({"machines": {"instanceType": "a"}}, "is not a list"),
        ({"machine": []}, "machine"),
        ({"currency": "euro"}, "is not a currency"),
        ({"onPremises": [{"model": "a", "purchase": 1, "years": 0}]}, "more than 0"),
        ({"reservations": [{"name": "r", "instanceType": "a", "count": 0}]}, "at least 1"),
        ({"reservations": [{"name": "r", "instanceType": "a", "count": 1, "upfront": 1}]}, "from and until"),
    ],
)
def test_a_wrong_price_file_is_refused_with_the_field(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        _file(**parts)


def test_reservations_are_used_first_then_the_plan_that_saves_most_then_the_list_price() -> None:
    machines = [Machine(f"a{i}", 0, instance_type="a") for i in range(3)] + [Machine("b0", 0, instance_type="b")]
    reserved = Reservation(name="r", instance_type="a", count=1, per_hour=Decimal(6))
    plan = SavingsPlan(name="sp", per_hour=Decimal(8), rates={"a": Decimal(7), "b": Decimal(2)})
    lists = {"a": constant(Decimal(10)), "b": constant(Decimal(4))}
    found = blended(machines, lists, ([reserved], [plan]), TimeWindow(0, HOUR_MS))
    # b saves half, so it takes 2 of the 8; of a 6/7 of an hour is left for the plan, and 8/7 at the list price.
    of_a = Decimal(6) + Decimal(6) + 10 * (2 - Decimal(6) / 7)
    assert found.rates["b"][0][1] == Decimal(2)
    assert abs(found.rates["a"][0][1] - of_a / 3) < Decimal("1e-20")
    assert not found.unused


def test_what_of_a_commitment_is_not_used_is_a_line_of_its_own() -> None:
    machines = [Machine("a0", 0, HOUR_MS // 2, instance_type="a")]
    reserved = Reservation(name="r", instance_type="a", count=2, per_hour=Decimal(6))
    plan = SavingsPlan(name="sp", per_hour=Decimal(8), rates={"a": Decimal(7)})
    found = blended(machines, {"a": constant(Decimal(10))}, ([reserved], [plan]), TimeWindow(0, HOUR_MS))
    assert found.rates["a"] == [(0, Decimal(6))]
    assert found.unused == [(0, "r", Decimal(9)), (0, "sp", Decimal(8))]


def test_a_reservation_counts_only_between_its_moments_and_spreads_what_was_paid_upfront() -> None:
    reserved = Reservation(
        name="r", instance_type="a", count=1, upfront=Decimal(20), per_hour=Decimal(1), from_ms=0, until_ms=2 * HOUR_MS
    )
    assert hourly_price(reserved) == Decimal(11)
    machines = [Machine("a0", 0, instance_type="a")]
    found = blended(machines, {"a": constant(Decimal(10))}, ([reserved], []), TimeWindow(0, 3 * HOUR_MS))
    assert [rate for _, rate in found.rates["a"]] == [Decimal(11), Decimal(11), Decimal(10)]


def test_the_invoice_has_the_machines_the_unused_commitments_and_shared_costs() -> None:
    file = _file(
        reservations=[{"name": "r", "instanceType": "p5.48xlarge", "count": 2, "perHour": 30}],
        sharedCosts=[{"name": "support", "perMonth": 730}],
    )
    window = TimeWindow(0, 10 * HOUR_MS)
    found = billing([P5], machine_prices([P5], file, TODAY), file, window)
    assert found.invoice([P5], window) == 300 + 300 + 10


def test_a_decision_price_of_reserved_machines_is_nothing_and_is_no_billing_price() -> None:
    assert decision_rate(P5, Decimal(55), is_committed=True) == 0
    assert decision_rate(P5, Decimal(55), is_committed=False) == 55


def test_machines_without_a_price_are_named_together_by_what_is_missing() -> None:
    odd = [Machine(f"n{at}", 0, instance_type="odd") for at in range(10)]
    box = Machine("box", 0, capacity="spot", instance_type="p5.48xlarge")
    found = machine_prices([P5, *odd, box], PriceFile(), TODAY)
    assert list(found.curves()) == ["n"]
    note = missing_note(found.unknown)
    assert "nodes n0, n1, n2, n3, n4, n5, n6, n7 and 2 more (odd, has no price)" in note
    assert "node box (spot p5.48xlarge, has no price)" in note
    assert "machines: [{instanceType: odd, perHour: AMOUNT}]" in note
    assert missing_note(found.unknown, names_nodes=False).startswith(
        "price missing: 10 nodes (odd, has no price); 1 node"
    )
    assert missing_note([]) == ""


def test_a_name_that_is_used_again_costs_what_each_of_its_nodes_costs() -> None:
    file = _file(machines=[{"instanceType": "small", "perHour": 1}, {"instanceType": "large", "perHour": 100}])
    small = Machine("n", 0, 10 * HOUR_MS, "small", devices=("g",))
    large = Machine("n", 10 * HOUR_MS, None, "large", devices=("h",))
    window = TimeWindow(0, 20 * HOUR_MS)
    for machines in ([small, large], [large, small]):
        found = billing(machines, machine_prices(machines, file, TODAY), file, window)
        assert found.invoice(machines, window) == 10 + 1000
        assert [found.curves["n"].rate(hour * HOUR_MS) for hour in (0, 9, 10, 19)] == [1, 1, 100, 100]
        rows = statement(Records(tuple(machines)), found.curves, whole_period(window), dimension("node"))
        assert total(rows) == 1010


def test_commitments_cover_the_nodes_of_their_type_also_where_a_name_is_used_again() -> None:
    file = _file(
        machines=[{"instanceType": "small", "perHour": 1}, {"instanceType": "large", "perHour": 100}],
        reservations=[
            {"name": "r", "instanceType": "large", "count": 1, "perHour": 60, "from": "1970-01-01T10:00:00Z"}
        ],
    )
    machines = [
        Machine("n", 0, 5 * HOUR_MS, "small"),
        Machine("n", 5 * HOUR_MS, 15 * HOUR_MS, "large"),
        Machine("n", 15 * HOUR_MS, None, "small"),
    ]
    window = TimeWindow(0, 15 * HOUR_MS)
    found = billing(machines, machine_prices(machines, file, TODAY), file, window)
    assert [found.curves["n"].rate(hour * HOUR_MS) for hour in (0, 5, 10, 15)] == [1, 100, 60, 1]
    assert found.invoice(machines, window) == 5 * 1 + 5 * 100 + 5 * 60


def test_a_name_of_which_an_earlier_node_has_no_price_is_left_out_as_a_whole() -> None:
    before = Machine("n", 0, 10, instance_type="odd")
    found = machine_prices([before, msgspec.structs.replace(P5, start_ms=10)], PriceFile(), TODAY)
    assert found.by_machine == {}
    assert found.unknown[0].machines == ("n",)


def test_the_invoice_and_the_commitments_leave_out_machines_without_a_price() -> None:
    odd = Machine("x", 0, instance_type="odd")
    window = TimeWindow(OCTOBER, OCTOBER + HOUR_MS)
    prices = machine_prices([P5, odd], PriceFile(), TODAY)
    bill = billing([P5, odd], prices, PriceFile(), window)
    assert bill.invoice([P5, odd], window) == Decimal("55.04")
    prices.check(Where())
