"""Worked examples, from their inputs; where a published figure does not follow from them, what does follow."""

from __future__ import annotations

from decimal import Decimal

import pytest

from shoal.cost.prices.on_premises import HOURS_PER_YEAR
from shoal.cost.right_size import cheaper_model, is_underused, slice_for
from shoal.cost.savings import (
    Saving,
    commitment_level,
    consolidation_saving,
    cost_per_model,
    effective_gpus,
    gpus_for_services,
    idle_by_memory,
    idle_cost,
    mig_saving,
    per_month,
    reservation_saving,
    spot_saving,
    waste,
)
from shoal.cost.targets import PRESETS, breaches
from shoal.data.gpus import find_model
from shoal.data.mig import layout_of_product


def _numbers(*amounts: Decimal) -> tuple[float, ...]:
    """To compare with numbers in the source; all of them are exact in binary."""
    return tuple(float(one) for one in amounts)


def test_idle_memory_of_a_gpu_costs_25_dollars_an_hour_and_600_a_day() -> None:
    assert idle_by_memory(Decimal(80), Decimal(30), Decimal(40)) == 25
    assert idle_by_memory(Decimal(80), Decimal(30), Decimal(40)) * 24 == 600


def test_a_gpu_that_computes_all_the_time_is_not_idle_by_both_measures() -> None:
    found = idle_cost(Decimal(30) / 80, Decimal(1), Decimal(40))
    assert _numbers(found.by_memory, found.by_utilisation, found.by_both) == (25, 0, 0)


def test_fifty_services_in_slices_need_eight_gpus_and_save_1680_dollars_an_hour() -> None:
    assert gpus_for_services(50, 7) == 8
    found = mig_saving(50, 7, Decimal(40))
    assert _numbers(found.before, found.after, found.amount) == (2000, 320, 1680)
    assert per_month(found).amount == 1_226_400
    assert per_month(found, Decimal(720)).amount == 1_209_600


def test_two_of_eighty_gigabytes_waste_97_5_percent_and_seven_slices_fit() -> None:
    layout = layout_of_product("H100-80GB-HBM3")
    assert layout is not None
    found = slice_for(layout, Decimal(80), Decimal(2))
    assert found is not None
    assert (found.profile, found.per_gpu, found.wasted_percent) == ("1g.10gb", 7, Decimal("97.5"))


@pytest.mark.parametrize(
    ("used", "activity", "profile"),
    [(25, "0", "3g.40gb"), (2, "0", "1g.10gb"), (11, "0", "1g.20gb"), (11, "0.2", "2g.20gb"), (2, "0.5", "4g.40gb")],
)
def test_the_smallest_slice_with_the_memory_and_the_compute_is_recommended(
    used: int, activity: str, profile: str
) -> None:
    layout = layout_of_product("H100-80GB-HBM3")
    assert layout is not None
    found = slice_for(layout, Decimal(80), Decimal(used), Decimal(activity))
    assert found is not None
    assert found.profile == profile
    if used == 25:
        assert found.wasted_percent == Decimal("68.75")


def test_what_needs_a_whole_gpu_gets_no_slice() -> None:
    layout = layout_of_product("H100-80GB-HBM3")
    assert layout is not None
    assert slice_for(layout, Decimal(80), Decimal(60)) is None
    assert slice_for(layout, Decimal(80), Decimal(2), Decimal("0.9")) is None


def test_a_lightly_used_large_gpu_has_a_cheaper_model() -> None:
    h100, l4 = find_model("H100-SXM5-80GB"), find_model("L4")
    assert h100 is not None
    assert l4 is not None
    found = cheaper_model(h100, Decimal(14), Decimal("0.05"))
    assert found is not None
    assert found.memory_gb >= 14
    assert cheaper_model(h100, Decimal(79), Decimal("0.95")) is None
    assert cheaper_model(l4, Decimal(24), Decimal(1)) is None


def test_a_thousand_gpu_hours_on_spot_save_32000_dollars() -> None:
    found = spot_saving(Decimal(1000), Decimal(40), Decimal(8))
    assert _numbers(found.before, found.after, found.amount, found.percent) == (40_000, 8000, 32_000, 80)


@pytest.mark.parametrize(
    ("gpus", "fewer", "hours", "saved"), [(8, 4, 16, 76_800), (8, 4, 15, 72_000), (8, 6, 15, 108_000)]
)
def test_consolidation_saves_what_its_real_hours_give(gpus: int, fewer: int, hours: int, saved: int) -> None:
    assert consolidation_saving(gpus, fewer, Decimal(hours), Decimal(40)).amount == saved


def test_a_reservation_of_ten_nodes_saves_2837364_dollars_a_year() -> None:
    found = reservation_saving(10, Decimal("98.32"), Decimal("65.93"))
    assert _numbers(found.before, found.after, found.amount) == (8_612_832, 5_775_468, 2_837_364)
    assert round(found.percent) == 33
    assert round(reservation_saving(10, Decimal("98.32"), Decimal("45.66")).percent) == 54


def test_seven_models_on_each_gpu_cost_a_seventh_and_another_basis_is_another_ratio() -> None:
    assert cost_per_model(Decimal(120_000), 4) == 30_000
    assert int(cost_per_model(Decimal(120_000), 28)) == 4285
    found = Saving(Decimal(2000), Decimal(450))
    assert found.ratio is not None
    assert round(found.ratio, 2) == Decimal("4.44")
    assert found.percent == Decimal("77.5")


def test_waste_is_computed_from_price_and_utilisation() -> None:
    found = waste(50 * Decimal(40) * HOURS_PER_YEAR, Decimal("0.20"), Decimal("0.75"))
    assert _numbers(found.spent, found.idle) == (17_520_000, 14_016_000)
    small = waste(50 * Decimal(5) * HOURS_PER_YEAR, Decimal("0.20"), Decimal("0.75"))
    assert _numbers(small.idle, small.idle_at_target, small.same_work) == (1_752_000, 547_500, 584_000)
    assert round(100 * found.saved / found.spent) == 73
    assert round(waste(Decimal(100), Decimal("0.40"), Decimal("0.75")).saved) == 47


def test_prices_are_inputs() -> None:
    assert Decimal("98.32") / 8 == Decimal("12.29")
    assert 50 * Decimal("35.6") * 730 == Decimal("1299400.0")
    assert 50 * Decimal("98.32") * 730 == Decimal("3588680.00")


def test_effective_gpus_are_rounded_down() -> None:
    assert effective_gpus(32, 92) == 29
    assert 32 - effective_gpus(32, 92) == 3


@pytest.mark.parametrize(("utilisation", "flagged"), [("0.29", True), ("0.30", False), ("0", True)])
def test_gpus_below_thirty_percent_are_flagged(utilisation: str, flagged: bool) -> None:
    assert is_underused(Decimal(utilisation)) is flagged


def test_the_baseline_is_committed_and_the_burst_is_not() -> None:
    load = [4] * 16 + [10] * 8
    found = commitment_level(load, Decimal(6), Decimal(10))
    assert found.nodes == 4
    assert found.cost == 4 * 6 * 24 + 6 * 8 * 10
    assert found.on_demand_only == sum(load) * 10
    assert min(level * 6 * 24 + sum(max(0, one - level) for one in load) * 10 for level in range(11)) == found.cost


def test_a_commitment_that_is_hardly_cheaper_is_worth_it_only_for_what_always_runs() -> None:
    assert commitment_level([1, 2, 2, 2], Decimal("9.9"), Decimal(10)).nodes == 1
    assert commitment_level([], Decimal(1), Decimal(2)).nodes == 0
    assert commitment_level([0, 5, 0, 0], Decimal(3), Decimal(10)).nodes == 0


def test_missed_targets_are_marked_with_their_reading() -> None:
    values = {
        "fleet-utilisation": Decimal("0.40"),
        "pod-memory": Decimal("0.85"),
        "research-wait-p95": Decimal("2.5"),
        "production-wait-p95": Decimal("0.1"),
        "pod-idle": Decimal("0.25"),
    }
    found = {one.figure: one.reading for one in breaches(values)}
    assert found.keys() == {"fleet-utilisation", "research-wait-p95", "pod-idle"}
    assert all(found.values())
    assert breaches({"fleet-utilisation": Decimal("0.9")})[0].wanted == "at most 0.85"
    assert not breaches({})


def test_the_presets_for_budgets_are_three() -> None:
    assert [(one.name, one.layout, one.per_gpu, one.spot_percent, one.utilisation) for one in PRESETS] == [
        ("cost-optimised", "1g.10gb", 7, 90, (70, 85)),
        ("balanced", "2g.20gb", 3, 50, (60, 75)),
        ("performance", "whole GPUs", 1, 0, (40, 60)),
    ]
