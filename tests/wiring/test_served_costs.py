"""Metrics of prices and budgets beside the recorder, and OpenCost's API of a process with a history."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from pathlib import Path

from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.cost.cost_settings import CostSettings
from shoal.cost.prices.price_file import Budget, MachinePrice, OnPremises, PriceFile
from shoal.cost.records import DeviceShare, Holder, Holding, Machine
from shoal.store.history.allocation_reader import AllocationReader
from shoal.store.history.budget_reader import read_budgets
from shoal.store.history.history import open_history, read_history
from shoal.store.history.ledger import Ledger, LedgerChanges
from shoal.store.history.sample_blocks import METRICS
from shoal.store.history.sample_reader import SampleReader
from shoal.store.history.samples import DeviceSample, Samples
from shoal.units.calendar_windows import HOUR_MS
from shoal.units.errors import UserError
from shoal.wiring.served_costs import PriceFigures

START = 1_793_491_200_000
"""2026-11-01T00:00:00Z."""
MACHINE = Machine("n1", START, None, "box", model="H100-SXM5-80GB", devices=("g0", "g1"))
FILE = PriceFile(
    machines=(MachinePrice(per_hour=Decimal(10), instance_type="box"),),
    budgets=(Budget(per_month=Decimal(100), team="red"), Budget(per_month=Decimal(10_000), namespace="lab")),
)


def recorded(folder: Path) -> None:
    held = Holding(Holder("p", "lab", team="red"), "n1", START, START, None, (DeviceShare("g0"),))
    history = open_history(folder)
    history.ledger.write(LedgerChanges(START, {"n": MACHINE}, {"p": held}))
    history.ledger.write(LedgerChanges(START + 24 * HOUR_MS))
    history.close()


def test_budgets_are_those_of_the_month_of_the_last_record(tmp_path: Path) -> None:
    recorded(tmp_path)
    red, lab = read_budgets(tmp_path, CostSettings(FILE), 0).lines
    # One of two GPUs at 10 an hour for a day; November has 30 days.
    assert (red.subject, red.spent, red.state) == ("team red", Decimal(120), "exceeded")
    assert round(red.forecast) == 120 * 30
    assert (lab.subject, lab.state) == ("namespace lab", "kept")
    assert read_budgets(tmp_path, CostSettings(), 0).lines == []


def test_an_allocation_has_no_time_that_has_not_come(tmp_path: Path) -> None:
    recorded(tmp_path)
    reader, month = AllocationReader(tmp_path, CostSettings(FILE)), {"window": "2026-11"}
    recorded_ms = START + 24 * HOUR_MS
    assert reader.read(month, recorded_ms + 60_000).request.window.end_ms == recorded_ms
    # Where nobody has recorded for a day, that day is unknown.
    assert reader.read(month, recorded_ms + 24 * HOUR_MS).request.window.end_ms == recorded_ms + 24 * HOUR_MS


def test_budgets_do_not_depend_on_another_source_of_samples(tmp_path: Path) -> None:
    recorded(tmp_path)
    expected = read_budgets(tmp_path, CostSettings(FILE), 0).lines
    asked: list[Ledger] = []

    def reader(ledger: Ledger) -> SampleReader:
        asked.append(ledger)
        raise UserError("the token cannot be read")

    assert read_budgets(tmp_path, CostSettings(FILE), 0, reader).lines == expected
    assert asked == []


def test_power_is_read_only_where_a_price_depends_on_it(tmp_path: Path) -> None:
    recorded(tmp_path)
    history = open_history(tmp_path)
    history.samples.add(START, [DeviceSample("g0", [700.0 if one == "power" else None for one in METRICS])])
    history.samples.compact(START + 2 * HOUR_MS)
    history.close()
    asked: list[Ledger] = []

    def reader(ledger: Ledger) -> SampleReader:
        asked.append(ledger)
        return Samples(read_history(tmp_path).tables, ledger)

    for watts in (Decimal(1000), None):
        own = OnPremises(
            model="H100-SXM5-80GB", purchase=Decimal(0), years=Decimal(1), per_kwh=Decimal(10), watts=watts
        )
        file = PriceFile(on_premises=(own,), budgets=FILE.budgets)
        (red, _) = read_budgets(tmp_path, CostSettings(file), 0, reader).lines
        assert red.spent == (240 if watts else 168)
        assert len(asked) == (0 if watts else 1)


def test_a_month_of_which_a_part_was_deleted_says_that_more_was_spent(tmp_path: Path) -> None:
    recorded(tmp_path)
    assert read_budgets(tmp_path, CostSettings(FILE), 0).notes() == []
    history = open_history(tmp_path)
    history.ledger.delete_before(START + 12 * HOUR_MS)
    history.close()
    (note,) = read_budgets(tmp_path, CostSettings(FILE), 0).notes()
    assert "the history before 2026-11-01T12:00:00Z is deleted" in note


@virtual
async def test_figures_are_computed_again_and_nodes_without_a_price_have_none(tmp_path: Path) -> None:
    recorded(tmp_path / "history")
    async with small_cluster(tmp_path) as cluster:
        machines = [MACHINE, Machine("n2", START, None, "unknown", capacity="spot")]
        prices = PriceFigures(
            cluster.context(),
            CostSettings(PriceFile(machines=FILE.machines)),
            tmp_path / "history",
            lambda: machines,
            list,
        )
        prices.compute()
        assert [one.node for one in prices.figures.prices] == ["n1"]
        assert [one.name for one in prices.figures.machines] == ["n1", "n2"]
        machines.clear()
        prices.compute()
        assert prices.figures.prices == []


@virtual
async def test_figures_are_computed_each_minute_also_where_the_price_of_no_node_is_known(tmp_path: Path) -> None:
    looks: list[float] = []
    async with small_cluster(tmp_path) as cluster:
        context = cluster.context()

        def machines() -> list[Machine]:
            looks.append(context.clock.seconds())
            return [Machine("n2", START, None, "unknown", capacity="spot")]

        prices = PriceFigures(context, CostSettings(PriceFile()), tmp_path / "history", machines, list)
        cluster.tasks.append(asyncio.ensure_future(prices.run()))
        await cluster.pass_time(200)
        assert prices.figures.prices == []
        assert 3 <= len(looks) <= 4
