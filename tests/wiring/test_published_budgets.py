"""From the recorded history to the report that admission reads."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Coroutine
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from build.small_clusters import START_S, SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.api.cost_budgets import BudgetOwner
from shoal.client.kind import CONFIG_MAPS, NAMESPACES
from shoal.client.refusals import NotFoundError
from shoal.controllers.history.budget_publisher import BudgetPublisher
from shoal.cost.cost_settings import CostSettings
from shoal.cost.prices.price_file import Budget, MachinePrice, PriceFile
from shoal.cost.records import DeviceShare, Holder, Holding, Machine
from shoal.store.history.history import open_history
from shoal.store.history.ledger import LedgerChanges
from shoal.store.watched.cost_budgets import WatchedCostBudgets
from shoal.units.calendar_windows import HOUR_MS
from shoal.wiring.served_costs import PriceFigures

START = round(START_S) * 1000
FILE = PriceFile(machines=(MachinePrice(per_hour=Decimal(10), instance_type="box"),))
SPACE = "kube-system"


def recorded(folder: Path, *, has_odd_node: bool = False) -> None:
    """A team held one of two GPUs of a node at 10 an hour for two hours: it has spent 10."""
    machines = {"n": Machine("n1", START, None, "box", model="H100-SXM5-80GB", devices=("g0", "g1"))}
    if has_odd_node:
        machines["o"] = Machine("n2", START, None, "odd", devices=("g2",))
    held = Holding(Holder("p", "lab", team="red"), "n1", START, START, None, (DeviceShare("g0"),))
    history = open_history(folder)
    history.ledger.write(LedgerChanges(START, machines, {"p": held}))
    history.ledger.write(LedgerChanges(START + 2 * HOUR_MS))
    history.close()


def run(cluster: SmallCluster, part: Coroutine[Any, Any, None]) -> None:
    cluster.tasks.append(asyncio.ensure_future(part))


def figures(cluster: SmallCluster, folder: Path, file: PriceFile) -> PriceFigures:
    context = cluster.context()
    return PriceFigures(context, CostSettings(file), folder, list, list, publisher=BudgetPublisher(context, SPACE))


async def is_published(cluster: SmallCluster) -> bool:
    return any(one["metadata"]["name"] == "shoal-budgets" for one in await cluster.all(CONFIG_MAPS, SPACE))


@virtual
async def test_the_budget_of_a_namespace_reaches_admission_with_what_was_spent(tmp_path: Path) -> None:
    recorded(tmp_path / "history")
    async with small_cluster(tmp_path) as cluster:
        annotations = {"shoal.dev/budget-per-month": "9.99", "shoal.dev/budget-enforced": "spent"}
        labels = {"shoal.dev/team": "red"}
        await cluster.create(NAMESPACES, {"metadata": {"name": "lab", "labels": labels, "annotations": annotations}})
        await cluster.pass_time(2 * 3600)
        watched = WatchedCostBudgets(cluster.context(), SPACE)
        run(cluster, watched.run())
        found = figures(cluster, tmp_path / "history", FILE)
        run(cluster, found.run())
        await cluster.until(lambda: watched.now.is_refusing)
        refused = watched.now.refusal(BudgetOwner("red", "lab"), cluster.clock.seconds())
        assert refused is not None
        assert "10.00 of 9.99 USD" in refused.message
        assert [(one.subject, one.enforce) for one in found.figures.budgets] == [("team red", "spent")]
        # A larger budget counts with the next report.
        await cluster.patch(NAMESPACES, "lab", {"metadata": {"annotations": {"shoal.dev/budget-per-month": "50"}}})
        await cluster.until(lambda: not watched.now.is_refusing, within_s=400)


@virtual
async def test_the_first_report_of_a_recorder_that_starts_has_the_budgets_of_teams(tmp_path: Path) -> None:
    recorded(tmp_path / "history")
    async with small_cluster(tmp_path) as cluster:
        annotations = {"shoal.dev/budget-per-month": "9.99", "shoal.dev/budget-enforced": "spent"}
        labels = {"shoal.dev/team": "red"}
        await cluster.create(NAMESPACES, {"metadata": {"name": "lab", "labels": labels, "annotations": annotations}})
        file = PriceFile(machines=FILE.machines, budgets=(Budget(queue="q", per_month=Decimal(5), enforce="spent"),))
        run(cluster, figures(cluster, tmp_path / "history", file).run())
        await cluster.until(lambda: is_published(cluster))
        report = json.loads((await cluster.get(CONFIG_MAPS, "shoal-budgets", SPACE))["data"]["budgets.json"])
        assert [one["name"] for one in report["budgets"]] == ["q", "red"]


@virtual
async def test_without_an_enforced_budget_nothing_is_written(tmp_path: Path) -> None:
    recorded(tmp_path / "history")
    async with small_cluster(tmp_path) as cluster:
        file = PriceFile(machines=FILE.machines, budgets=(Budget(team="red", per_month=Decimal(1)),))
        found = figures(cluster, tmp_path / "history", file)
        run(cluster, found.run())
        await cluster.until(lambda: bool(found.figures.budgets))
        with pytest.raises(NotFoundError):
            await cluster.get(CONFIG_MAPS, "shoal-budgets", SPACE)
        # As an installer creates it.
        await cluster.create(CONFIG_MAPS, {"metadata": {"name": "shoal-budgets", "namespace": SPACE}})
        await cluster.pass_time(700)
        assert "data" not in await cluster.get(CONFIG_MAPS, "shoal-budgets", SPACE)


@virtual
async def test_a_node_without_a_price_counts_nothing_and_is_named_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recorded(tmp_path / "history", has_odd_node=True)
    caplog.set_level(logging.WARNING)
    async with small_cluster(tmp_path) as cluster:
        budget = Budget(team="red", per_month=Decimal(5), enforce="spent")
        found = figures(cluster, tmp_path / "history", PriceFile(machines=FILE.machines, budgets=(budget,)))
        run(cluster, found.run())
        await cluster.until(lambda: bool(found.figures.budgets))
        report = json.loads((await cluster.get(CONFIG_MAPS, "shoal-budgets", SPACE))["data"]["budgets.json"])
        assert [(one["name"], one["spent"]) for one in report["budgets"]] == [("red", "10.00")]
        assert "price missing: node n2 (odd, has no price)" in caplog.text
