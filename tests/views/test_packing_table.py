"""The comparison table: fits eighty columns, marks the best, is silent where nothing was reached."""

from __future__ import annotations

import io

from rich.console import Console

from shoal.views.packing_table import PackedRow, packing_table

MARKS = (80, 90, 95, 100, 110, 120, 130)


def shown(*rows: PackedRow, styled: bool = False) -> str:
    stream = io.StringIO()
    Console(file=stream, width=80, force_terminal=styled, color_system="standard" if styled else None).print(
        packing_table(rows, MARKS)
    )
    return stream.getvalue()


def row(policy: str, alloc: float, refused: int = 1) -> PackedRow:
    return PackedRow(policy, dict.fromkeys(MARKS, alloc), 100 - alloc, refused, 12.34)


def test_the_widest_names_and_numbers_fit_eighty_columns() -> None:
    lines = shown(row("GpuClustering", 100.0, 10_866), row("Shoal", 95.39)).splitlines()
    assert len(lines) == 3
    assert all("…" not in line and len(line.rstrip()) <= 80 for line in lines)
    assert "10,866" in lines[1]


def test_the_highest_allocation_and_the_fewest_refusals_are_marked() -> None:
    best = "\x1b[1;32m"
    text = shown(row("A", 95.0, 7), row("B", 94.0, 3), styled=True)
    assert f"{best}95.00" in text
    assert f"{best}94.00" not in text
    assert f"{best}      3" in text or f"{best}3" in text


def test_a_single_policy_is_not_the_best_of_anything() -> None:
    assert "\x1b[1;32m" not in shown(row("A", 95.0), styled=True)


def test_loads_no_run_reached_have_no_column() -> None:
    text = shown(PackedRow("A", {80: 79.0, 90: 85.5}, 1.0, 0, 0.1))
    assert "90 %" in text
    assert "95 %" not in text


def test_a_load_one_run_missed_is_a_dash() -> None:
    assert " - " in shown(PackedRow("A", {80: 79.0, 90: 85.5}, 1.0, 0, 0.1), PackedRow("B", {80: 79.0}, 1.0, 0, 0.1))


def test_an_amount_just_below_zero_is_zero() -> None:
    packed = PackedRow("Shoal", dict.fromkeys(MARKS, 100.0), -1e-14, 0, 0.1)
    assert "-0.00" not in shown(packed)
    assert "0.00" in shown(packed)
