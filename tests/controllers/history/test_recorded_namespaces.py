"""What the recorder keeps of namespaces."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from build.recorders import RecorderRun
from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.client.kind import NAMESPACES
from shoal.store.history.memory_tables import MemoryTables
from shoal.store.history.tables import StoredRow, Table
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


class FullTables(MemoryTables):
    is_full = False

    def put(self, table: Table, rows: Iterable[StoredRow]) -> None:
        if self.is_full:
            raise OSError("no space left on device")
        super().put(table, rows)


@virtual
async def test_budgets_that_could_not_be_stored_are_stored_in_the_next_round(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        tables = FullTables()
        run = RecorderRun(cluster, tables)
        await cluster.pass_time(30)
        annotations = {"shoal.dev/budget-per-month": "700"}
        await cluster.create(NAMESPACES, {"metadata": {"name": "lab", "annotations": annotations}})
        # The recorder has seen the namespace, and its next round has not begun.
        await cluster.pass_time(0.5)
        tables.is_full = True
        with pytest.raises(OSError, match="no space"):
            run.recorder.record()
        tables.is_full = False
        run.recorder.record()
        assert run.history.team_budgets.read() == [BudgetedNamespace("lab", {}, annotations)]
        await run.kill()
