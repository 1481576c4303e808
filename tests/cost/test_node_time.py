"""Every moment of every part of a machine has one class, and the classes add up to the price of the machine."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from shoal.cost.device_shares import limited_share, mig_share, replica_share
from shoal.cost.node_time import usable_share
from shoal.cost.price_curves import PriceCurve, constant
from shoal.cost.records import (
    FULL_SHARE,
    BrokenDevice,
    DeviceShare,
    Holder,
    Holding,
    Machine,
    MachineCondition,
    Records,
    Span,
    Use,
    WantedRequest,
)
from shoal.cost.statement import dimension, shown, statement, total, whole_period
from shoal.data.mig import layout_of_product
from shoal.units.calendar_windows import HOUR_MS, TimeWindow

HOUR = HOUR_MS
MACHINE = Machine(name="m", start_ms=0, devices=("g0", "g1"), model="none")
"""Two GPUs, and neither CPUs nor memory: GPUs have the whole price."""
RATE = Decimal(2)
"""A dollar for each GPU and hour."""


def _by_class(records: Records, hours: int = 10, rate: PriceCurve | None = None) -> dict[str, Decimal]:
    curves = {one.name: rate or constant(RATE) for one in records.machines}
    period = whole_period(TimeWindow(0, hours * HOUR))
    rows = statement(records, curves, period, lambda _, machine: "")
    return {row.kind: row.amount.normalize() for row in rows if row.amount}


def _held(start: int, running: int | None, end: int | None, share: int = FULL_SHARE, device: str = "g0") -> Holding:
    return Holding(
        Holder(pod=f"p{start}", namespace="n", team="t"),
        "m",
        start * HOUR,
        None if running is None else running * HOUR,
        None if end is None else end * HOUR,
        (DeviceShare(device, share),),
    )


def test_a_machine_that_holds_nothing_is_unallocated() -> None:
    assert _by_class(Records((MACHINE,))) == {"unallocated": Decimal(20)}


def test_a_holding_is_startup_until_its_containers_run_and_unmeasured_without_a_record_of_its_use() -> None:
    records = Records((MACHINE,), (_held(1, 3, 7),))
    assert _by_class(records) == {
        "startup": Decimal(2),
        "allocated-unmeasured": Decimal(4),
        "unallocated": Decimal(14),
    }


def test_a_holding_without_an_end_goes_on_to_the_end_of_the_window() -> None:
    assert _by_class(Records((MACHINE,), (_held(4, None, None),)))["startup"] == Decimal(6)


def test_use_divides_the_time_of_a_holding_into_active_and_idle() -> None:
    use = Use(2 * HOUR, 6 * HOUR, active_ppm=750_000, used_ppm=300_000)
    held = _held(0, 0, 10)
    records = Records((MACHINE,), (Holding(held.holder, "m", 0, 0, 10 * HOUR, held.devices, uses=(use,)),))
    assert _by_class(records) == {
        "allocated-active": Decimal(3),
        "allocated-idle": Decimal(1),
        "allocated-unmeasured": Decimal(6),
        "unallocated": Decimal(10),
    }
    rows = statement(records, {"m": constant(RATE)}, whole_period(TimeWindow(0, 10 * HOUR)), dimension("team"))
    assert sum(row.used_amount for row in rows) == Decimal("1.2")


def test_a_broken_device_is_unhealthy_also_while_a_pod_holds_it() -> None:
    machine = Machine("m", 0, devices=("g0", "g1"), broken=(BrokenDevice("g0", 2 * HOUR, 5 * HOUR),))
    found = _by_class(Records((machine,), (_held(0, 0, 10),)))
    assert (found["unhealthy"], found["allocated-unmeasured"]) == (Decimal(3), Decimal(7))


def test_booting_is_overhead_and_a_machine_that_is_not_ready_is_unhealthy() -> None:
    conditions = (MachineCondition("booting", 0, HOUR), MachineCondition("not-ready", 4 * HOUR, 6 * HOUR))
    machine = Machine("m", 0, devices=("g0", "g1"), conditions=conditions)
    assert _by_class(Records((machine,), (_held(1, 1, 10),))) == {
        "overhead": Decimal(2),
        "unhealthy": Decimal(4),
        "allocated-unmeasured": Decimal(7),
        "unallocated": Decimal(7),
    }


def test_a_pod_of_the_cluster_is_overhead() -> None:
    held = _held(0, 0, 10)
    system = Holding(Holder(pod="ds", is_overhead=True), "m", 0, 0, 10 * HOUR, held.devices)
    assert _by_class(Records((MACHINE,), (system,)))["overhead"] == Decimal(10)


def test_a_free_part_that_no_request_can_use_is_fragmented() -> None:
    half = _held(0, 0, 10, FULL_SHARE // 2)
    wanted = (WantedRequest(gpus=1),)
    assert _by_class(Records((MACHINE,), (half,), wanted)) == {
        "allocated-unmeasured": Decimal(5),
        "fragmented": Decimal(5),
        "unallocated": Decimal(10),
    }


def test_a_request_for_two_gpus_leaves_a_single_free_one_fragmented_while_it_waits() -> None:
    wanted = (WantedRequest(gpus=2, start_ms=2 * HOUR, end_ms=6 * HOUR),)
    found = _by_class(Records((MACHINE,), (_held(0, 0, 10),), wanted))
    assert (found["fragmented"], found["unallocated"]) == (Decimal(4), Decimal(6))


def test_a_free_gpu_without_free_cpus_beside_it_is_fragmented() -> None:
    wanted = [WantedRequest(gpus=1, cpu_milli=8000)]
    assert usable_share([FULL_SHARE], 7999, 0, wanted) == 0
    assert usable_share([FULL_SHARE], 8000, 0, wanted) == FULL_SHARE


def test_free_time_is_unknown_while_nothing_was_recorded_and_held_time_stays_held() -> None:
    found = _by_class(Records((MACHINE,), (_held(0, 0, 10),), gaps=(Span(3 * HOUR, 5 * HOUR),)))
    assert (found["unknown"], found["unallocated"]) == (Decimal(2), Decimal(8))
    assert found["allocated-unmeasured"] == Decimal(10)


def test_cpu_and_memory_have_their_part_of_the_price() -> None:
    machine = Machine(
        "m", 0, devices=("g0",), cpu_milli=10_000, memory_mib=1000, reserved_cpu_milli=1000, reserved_memory_mib=100
    )
    held = Holding(Holder("p", team="a"), "m", 0, 0, None, (DeviceShare("g0"),), 5000, 500)
    rows = statement(
        Records((machine,), (held,)), {"m": constant(Decimal(10))}, whole_period(TimeWindow(0, HOUR)), dimension("team")
    )
    by_kind = {row.kind: row for row in rows}
    mine = by_kind["allocated-unmeasured"]
    assert mine.gpu_amount == Decimal(7)
    assert mine.cpu_amount + mine.memory_amount == Decimal("1.5")
    assert by_kind["overhead"].amount == Decimal("0.3")
    assert total(rows) == Decimal(10)


def test_a_price_that_changes_counts_from_its_moment() -> None:
    curve = PriceCurve([(0, Decimal(2)), (4 * HOUR, Decimal(6))])
    assert _by_class(Records((MACHINE,), (_held(3, 3, 6),)), rate=curve) == {
        "allocated-unmeasured": Decimal(7),
        "unallocated": Decimal(37),
    }


def test_time_outside_the_window_and_outside_the_life_of_the_machine_costs_nothing() -> None:
    machine = Machine("m", 2 * HOUR, 5 * HOUR, devices=("g0", "g1"))
    assert _by_class(Records((machine,), (_held(0, 0, None),))) == {
        "allocated-unmeasured": Decimal(3),
        "unallocated": Decimal(3),
    }
    assert _by_class(Records((Machine("m", 20 * HOUR, devices=("g0",)),))) == {}


def test_shares_that_exceed_a_device_are_cut() -> None:
    records = Records((MACHINE,), (_held(0, 0, 10, FULL_SHARE), _held(2, 2, 10, FULL_SHARE // 2)))
    assert sum(_by_class(records).values()) == Decimal(20)


def test_rows_in_cents_add_up_to_the_total_in_cents() -> None:
    records = Records((MACHINE,), (_held(1, 2, 8, FULL_SHARE // 7), _held(0, 3, 9, FULL_SHARE // 3)))
    period = whole_period(TimeWindow(0, 10 * HOUR))
    rows = statement(records, {"m": constant(Decimal("98.32"))}, period, dimension("pod"))
    assert sum(row.amount for row in shown(rows)) == Decimal("983.20")


@pytest.mark.parametrize(
    ("profile", "memory", "compute"),
    [("1g.10gb", "1/8", "1/7"), ("3g.40gb", "4/8", "3/7"), ("7g.80gb", "8/8", "7/7"), ("1g.20gb", "2/8", "1/7")],
)
def test_a_mig_instance_is_counted_by_memory_or_by_compute_slices(profile: str, memory: str, compute: str) -> None:
    layout = layout_of_product("H100-80GB-HBM3")
    assert layout is not None
    by_memory, by_compute = mig_share(layout, profile), mig_share(layout, profile, "compute")
    assert (by_memory, by_compute) == (int(FULL_SHARE * Fraction(memory)), int(FULL_SHARE * Fraction(compute)))
    assert mig_share(layout, "9g.999gb") is None


def test_a_replica_and_a_limited_share_are_parts_of_a_device() -> None:
    assert replica_share(4) * 4 == FULL_SHARE
    assert limited_share(25, 40_960, 81_920) == FULL_SHARE // 2
    assert limited_share(0, 0, 81_920) == FULL_SHARE
