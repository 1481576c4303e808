"""The measured power of nodes, and what the energy of one's own machines costs by it."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from shoal.cost.prices.machine_prices import machine_prices
from shoal.cost.prices.price_file import OnPremises, PriceFile
from shoal.cost.records import Machine
from shoal.store.history.history import UsageHistory
from shoal.store.history.memory_tables import MemoryTables
from shoal.store.history.sample_blocks import METRICS
from shoal.store.history.samples import MINUTE_MS, DeviceSample
from shoal.units.calendar_windows import HOUR_MS

START = 1_790_812_800_000
MIDDLE, END = START + HOUR_MS, START + 2 * HOUR_MS
OWN = OnPremises(model="H100-SXM5-80GB", purchase=Decimal(0), years=Decimal(5), per_kwh=Decimal(1))
FILE = PriceFile(on_premises=(OWN,))


def measure(history: UsageHistory, device: str, start_ms: int, watts: float) -> None:
    power = METRICS.index("power")
    for minute in range(30):
        values = [None] * power + [watts] + [None] * (len(METRICS) - power - 1)
        history.samples.add(start_ms + minute * MINUTE_MS, [DeviceSample(device, values)])


def node(device: str, start_ms: int, end_ms: int | None) -> Machine:
    return Machine("n", start_ms, end_ms, model="H100-SXM5-80GB", devices=(device,))


def prices(history: UsageHistory, *machines: Machine) -> dict[int, Decimal]:
    """By the start of the machine: what an hour costs, at 1 for a kilowatt-hour."""
    watts = history.measured_watts(machines, START, END)
    found = machine_prices(machines, FILE, date(2026, 11, 27), watts)
    return {start: rates[0][1] for (_, start), rates in found.by_machine.items()}


@pytest.mark.parametrize("second", ["b", "a"])
def test_each_of_two_nodes_of_one_name_pays_for_its_own_power(second: str) -> None:
    """`second`: another GPU, or one that is called the same."""
    history = UsageHistory(MemoryTables())
    measure(history, "a", START, 300)
    measure(history, second, MIDDLE, 700)
    found = prices(history, node("a", START, MIDDLE), node(second, MIDDLE, None))
    assert found == {START: Decimal("0.3"), MIDDLE: Decimal("0.7")}


def test_a_node_that_was_not_measured_has_no_price_by_the_power_of_one_of_its_name() -> None:
    history = UsageHistory(MemoryTables())
    measure(history, "a", START, 300)
    machines = node("a", START, MIDDLE), node("b", MIDDLE, None)
    watts = history.measured_watts(machines, START, END)
    missing = machine_prices(machines, FILE, date(2026, 11, 27), watts).unknown
    assert [(one.machine, one.reason) for one in missing] == [
        ("n", "has neither watts in the price file nor measured power")
    ]
