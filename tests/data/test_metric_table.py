"""The metrics that `shoal explain` knows are those of the documentation."""

from __future__ import annotations

from tools.metric_subjects import DATA, metric_rows, metrics_data

from shoal.data.metrics import exported_metrics


def test_the_table_is_made_from_the_page() -> None:
    assert DATA.read_text(encoding="utf-8") == metrics_data(), "run python -m tools.metric_subjects"


def test_a_row_with_several_names_describes_each_of_them() -> None:
    page = "| metric | type |\n|---|---|\n| `a_b`, `c_d` | gauge | `x`, `y` | [it](a.md#b) `is` |\n| `e` | no |\n"
    assert metric_rows(page) == [["a_b", "gauge", "x, y", "it is"], ["c_d", "gauge", "x, y", "it is"]]


def test_well_known_metrics_are_in_the_table() -> None:
    assert exported_metrics()["kueue_pending_workloads"].labels == "cluster_queue, status"
    assert exported_metrics()["shoal_node_scaling_nodes"].type == "gauge"
