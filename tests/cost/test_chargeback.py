"""Charges by all modes add up to the invoice; the modes differ in who pays what."""

from __future__ import annotations

from decimal import Decimal
from itertools import product

import pytest

from build.scripted_months import STEP_MS, STEPS, scripted_month
from shoal.cost.chargeback import (
    CHARGE_MODES,
    IDLE_MODES,
    PLATFORM,
    ChargePolicy,
    charged_dimension,
    charges,
    shown_charges,
)
from shoal.cost.price_curves import constant
from shoal.cost.prices.price_file import CardRate
from shoal.cost.records import DeviceShare, Holder, Holding, Machine, Records, Use
from shoal.cost.statement import CostRow, dimension, statement, total, whole_period
from shoal.units.calendar_windows import HOUR_MS, TimeWindow
from shoal.units.errors import UserError
from shoal.units.money import cents

TEAMS = [
    CostRow("Research", 0, "allocated-active", Decimal(480_000), Decimal(480_000), used_amount=Decimal(312_000)),
    CostRow("Production", 0, "allocated-active", Decimal(320_000), Decimal(320_000), used_amount=Decimal(272_000)),
    CostRow("Experimentation", 0, "allocated-active", Decimal(200_000), Decimal(200_000), used_amount=Decimal(90_000)),
]
"""12,000, 8,000 and 5,000 GPU-hours at 40 dollars, used by 65, 85 and 45 percent."""


def _amounts(rows: list[CostRow], policy: ChargePolicy) -> dict[str, Decimal]:
    return {one.group: one.amount.normalize() for one in charges(rows, policy)}


def test_charging_by_use_reproduces_the_table_and_leaves_the_rest_uncharged() -> None:
    assert _amounts(TEAMS, ChargePolicy("usage")) == {
        "Research": 312_000,
        "Production": 272_000,
        "Experimentation": 90_000,
        "": 326_000,
    }


def test_charging_by_request_charges_what_is_held() -> None:
    found = _amounts(TEAMS, ChargePolicy())
    assert found["Research"] == 480_000
    assert found[""] == 0


FREE = [*TEAMS, CostRow("", 0, "unallocated", Decimal(90_000)), CostRow("", 0, "unhealthy", Decimal(10_000))]


@pytest.mark.parametrize(
    ("idle", "research", "other"),
    [
        ("none", "480000", {"": 100_000}),
        ("platform", "480000", {PLATFORM: 100_000}),
        ("even", "513333.33", {}),
        ("weighted", "528000", {}),
    ],
)
def test_what_nobody_holds_is_divided_as_asked(idle: str, research: str, other: dict[str, int]) -> None:
    policy = next(ChargePolicy(idle=one) for one in IDLE_MODES if one == idle)
    found = _amounts(FREE, policy)
    assert cents(found["Research"]) == Decimal(research)
    assert {name: amount for name, amount in found.items() if name in ("", PLATFORM)} == other


def test_the_holder_of_a_quota_pays_for_what_it_leaves_free() -> None:
    rows = [
        CostRow("a", 0, "allocated-idle", Decimal(100), Decimal(100), gpu_hours=Decimal(100)),
        CostRow("b", 0, "allocated-idle", Decimal(20), Decimal(20), gpu_hours=Decimal(20)),
        CostRow("", 0, "unallocated", Decimal(80), gpu_hours=Decimal(80)),
        # Of nodes without GPUs.
        CostRow("", 0, "unallocated", Decimal(7)),
    ]
    quotas = {"a": Decimal(100), "b": Decimal(80), "c": Decimal(20)}
    assert _amounts(rows, ChargePolicy("quota", quota_hours=quotas)) == {"a": 100, "b": 80, "c": 20, "": 7}
    # Of quotas for more than there is, the free part is divided; a quota for less pays no more than itself.
    quotas = {name: hours * 2 for name, hours in quotas.items()}
    assert cents(_amounts(rows, ChargePolicy("quota", quota_hours=quotas))["c"]) == Decimal("11.43")
    quotas = {"c": Decimal(20)}
    assert _amounts(rows, ChargePolicy("quota", quota_hours=quotas)) == {"a": 100, "b": 20, "c": 20, "": 67}


def _held(pod: str, team: str, device: str, *, preempted: bool = False, borrowed: int = 0) -> Holding:
    use = Use(0, 10 * HOUR_MS, 1_000_000, 500_000)
    holder = Holder(pod, "n", team=team, queue=team)
    return Holding(
        holder,
        "m",
        0,
        0,
        None,
        (DeviceShare(device),),
        uses=(use,),
        is_preempted=preempted,
        borrowed_ppm=borrowed,
    )


def _rows() -> list[CostRow]:
    machine = Machine("m", 0, devices=("g0", "g1", "g2", "g3"), model="H100")
    held = (_held("p", "a", "g0"), _held("q", "a", "g1", preempted=True), _held("r", "b", "g2", borrowed=250_000))
    period = whole_period(TimeWindow(0, 10 * HOUR_MS))
    by = charged_dimension(dimension("team"))
    return statement(Records((machine,), held), {"m": constant(Decimal(4))}, period, by)


def test_preempted_work_is_refunded_and_borrowed_quota_has_a_discount_if_asked() -> None:
    assert _amounts(_rows(), ChargePolicy()) == {"a": 20, "b": 10, "": 10}
    asked = ChargePolicy(refunds_preempted=True, borrowed_discount_ppm=400_000)
    assert _amounts(_rows(), asked) == {"a": 10, "b": 9, "": 21}


def test_a_rate_card_charges_hours_at_the_most_special_rate_and_the_platform_has_the_difference() -> None:
    card = (
        CardRate(per_gpu_hour=Decimal(1)),
        CardRate(per_gpu_hour=Decimal(3), model="H100"),
        CardRate(per_gpu_hour=Decimal(2), model="H100", queue="b"),
    )
    assert _amounts(_rows(), ChargePolicy("rate-card", rate_card=card)) == {"a": 60, "b": 20, "": -40}


def test_a_group_may_contain_any_character() -> None:
    machine = Machine("m", 0, devices=("g0",), model="H\x1f100")
    holder = Holder("p", "n", job="a\x1fb\x1f1\x1f0\x1fq", queue="\x1fq\x1f")
    held = Holding(holder, "m", 0, 0, None, (DeviceShare("g0"),))
    period = whole_period(TimeWindow(0, HOUR_MS))
    rows = statement(
        Records((machine,), (held,)), {"m": constant(Decimal(4))}, period, charged_dimension(dimension("job"))
    )
    assert _amounts(rows, ChargePolicy(refunds_preempted=True)) == {"n/a\x1fb\x1f1\x1f0\x1fq": 4, "": 0}


def test_a_model_without_a_rate_is_asked_for() -> None:
    with pytest.raises(UserError, match=r"rateCard: \[\{model: H100"):
        charges(_rows(), ChargePolicy("rate-card", rate_card=(CardRate(per_gpu_hour=Decimal(1), model="T4"),)))


@pytest.mark.parametrize(("mode", "idle"), list(product(CHARGE_MODES, IDLE_MODES)))
def test_charges_add_up_to_the_invoice_in_every_mode(mode: str, idle: str) -> None:
    month = scripted_month(3)
    window = TimeWindow(0, STEPS * STEP_MS)
    rows = statement(month.records, month.curves, whole_period(window), charged_dimension(dimension("team")))
    policy = ChargePolicy(
        next(one for one in CHARGE_MODES if one == mode),
        next(one for one in IDLE_MODES if one == idle),
        borrowed_discount_ppm=300_000,
        refunds_preempted=True,
        rate_card=(CardRate(per_gpu_hour=Decimal("2.5")),),
        quota_hours={"red": Decimal(5000), "blue": Decimal(10)},
    )
    found = charges(rows, policy)
    assert sum(amount for _, amount in shown_charges(found)) == cents(total(rows))
