"""What the recorder keeps of namespaces."""

from __future__ import annotations

from pathlib import Path

from build.recorders import RecorderRun
from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.client.kind import NAMESPACES
from shoal.store.history.memory_tables import MemoryTables
from shoal.store.history.team_budgets import BudgetedNamespace


@virtual
async def test_the_history_has_the_budgets_of_teams_as_namespaces_have_them(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        run = RecorderRun(cluster, MemoryTables())
        annotations = {"shoal.dev/budget-per-month": "700"}
        labels = {"shoal.dev/team": "red"}
        await cluster.create(
            NAMESPACES, {"metadata": {"name": "lab", "labels": {**labels}, "annotations": annotations}}
        )
        await cluster.pass_time(30)
        assert run.history.team_budgets.read() == [BudgetedNamespace("lab", labels, annotations)]
        await cluster.patch(NAMESPACES, "lab", {"metadata": {"annotations": {"shoal.dev/budget-per-month": None}}})
        await cluster.pass_time(30)
        assert run.history.team_budgets.read() == []
        await run.kill()
