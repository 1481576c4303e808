"""The curve on the page of domains is the curve of the code, and it tells apart what the page says."""

from __future__ import annotations

import numpy as np

from docs.pages import ROOT
from shoal.engine.domains.soft import points_of

PAGE = ROOT / "docs" / "domains.md"


def test_the_curve_on_the_page() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    distances, points = (
        [int(cell) for cell in line.strip("| ").split("|")[1:]]
        for line in lines
        if line.startswith(("| distance |", "| points |"))
    )
    assert points_of(np.array(distances)).tolist() == points


def test_distances_up_to_15_and_tenths_beyond_are_told_apart() -> None:
    points = points_of(np.arange(5792)).tolist()
    assert len(set(points[:16])) == 16
    assert all(points[near] > points[round(near * 1.1) + 1] for near in range(16, 5200))


def test_the_page_names_every_file_of_the_room() -> None:
    room = ROOT / "src" / "shoal" / "engine" / "domains"
    text = PAGE.read_text(encoding="utf-8")
    files = {path.name for path in room.glob("*.py")} - {"__init__.py"}
    assert "verdict.py" in files
    assert [name for name in files if f"  {name}" not in text] == []
