"""The report of budgets is written with a right on one ConfigMap, which the installer creates."""

from __future__ import annotations

import logging
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from build.ruled_clusters import ruled_cluster
from build.small_clusters import SmallCluster
from build.virtual_time import virtual
from shoal.api.budget_report import BudgetReport, ReportedBudget
from shoal.client.kind import CONFIG_MAPS
from shoal.client.port import Api
from shoal.controllers.history.budget_publisher import BudgetPublisher
from shoal.install.objects.permissions import RoleSubjects, manifests

SPACE = "kube-system"


async def publish(cluster: SmallCluster, api: Api) -> None:
    now = cluster.clock.now()
    spent = ReportedBudget("team", "red", Decimal(1), Decimal(2), Decimal(3), "spent")
    report = BudgetReport(period="2026-11", computed_at=now, resets_at=now + timedelta(days=3), budgets=(spent,))
    await BudgetPublisher(cluster.context(api=api), SPACE).publish(report)


@virtual
async def test_the_recorder_writes_the_config_map_of_the_installer_and_may_create_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with ruled_cluster(tmp_path) as ruled:
        objects = manifests(("history",), RoleSubjects(user="ann"))
        await ruled.apply(objects)
        assert "data" not in await ruled.cluster.get(CONFIG_MAPS, "shoal-budgets", SPACE)
        await publish(ruled.cluster, ruled.way_in("ann"))
        written = await ruled.cluster.get(CONFIG_MAPS, "shoal-budgets", SPACE)
        assert "red" in written["data"]["budgets.json"]
        assert ruled.refused == []
        await ruled.cluster.delete(CONFIG_MAPS, "shoal-budgets", namespace=SPACE)
        with caplog.at_level(logging.WARNING, "shoal.cost"):
            await publish(ruled.cluster, ruled.way_in("ann"))
        assert "kubectl -n kube-system create configmap shoal-budgets" in caplog.text
