"""Numbers worked by hand on the pages come out of the code, and lists on the pages are the code's lists."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from docs.pages import ROOT, prose
from shoal.engine.changes import ChangeLog
from shoal.engine.cluster import LAST_RANK, RANK_BITS
from shoal.engine.growth import BLOCK, capacity_for
from shoal.engine.kube_profile import MOST_WEIGHT
from shoal.engine.placement import Placement
from shoal.engine.reasons import Code
from shoal.engine.worth.piece_worth import GRAIN, piece_worth
from shoal.engine.worth.tables import WorthParameters
from shoal.units.quantity import Quantity

ENGINE = ROOT / "src" / "shoal" / "engine"
KEYS = ROOT / "docs" / "designs" / "001-incremental-keys.md"
WORTH = ROOT / "docs" / "designs" / "002-worth-policy.md"


def _rows(page: Path, heading: str) -> list[list[str]]:
    """The cells of the first table after a heading or line."""
    text = page.read_text(encoding="utf-8")
    lines = text[text.index(heading) :].splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("|"))
    table = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in line.strip("|").split("|")])
    return [table[0], *table[2:]]


def _flowing(page: Path) -> str:
    """The prose without line breaks."""
    return " ".join(prose(page).split())


def _key(score: int, rank: int) -> int:
    return (score << RANK_BITS) + LAST_RANK - rank


def test_the_keys_of_design_001() -> None:
    page = _flowing(KEYS)
    for score, rank in ((3, 7), (3, 8), (4, LAST_RANK)):
        assert f"{_key(score, rank):,}" in page
    assert f"2^{RANK_BITS} + (2^{RANK_BITS} - 1 - rank)" in page
    assert _key(4, LAST_RANK) > _key(3, 7) > _key(3, 8)
    assert 100 * MOST_WEIGHT << RANK_BITS < 1 << 61


@pytest.mark.parametrize("nodes", [5_000, 50_000])
def test_the_capacities_and_blocks_of_design_001(nodes: int) -> None:
    rows = capacity_for(nodes, 0)
    assert f"{rows:,}" in _flowing(KEYS)
    assert f"{rows // BLOCK:,} blocks" in _flowing(KEYS)


def test_the_memory_of_design_001() -> None:
    most_keys = (Placement.__init__.__kwdefaults__ or {})["most_keys"]
    assert most_keys == 16_000_000
    assert f"{most_keys // capacity_for(50_000, 0)} shapes at 65,536 rows" in _flowing(KEYS)


def test_the_log_of_design_001_keeps_8192_changes() -> None:
    log = ChangeLog()
    for row in range(100_000):
        log.append(row)
        assert log.since(max(log.end - 8192, 0)) is not None
    assert log.since(log.end - 2 * 8192) is None


def test_the_patience_of_design_002() -> None:
    chances = np.zeros((1, 101))
    chances[0, 600 // GRAIN] = chances[0, 400 // GRAIN] = 0.5
    heading, *rows = _rows(WORTH, "| visitors |")
    pieces = [int(cell) for cell in heading[1:]]
    for visitors, *cells in rows:
        worth = piece_worth(chances, int(visitors))[0]
        shown = [float(cell) for cell in cells]
        assert shown == [pytest.approx(worth[piece // GRAIN], abs=0.06) for piece in pieces]


def test_the_constants_on_the_packing_page_are_the_policys() -> None:
    _, *rows = _rows(ROOT / "docs" / "packing.md", "| constant |")
    assert {name.strip("`"): float(value) for name, value, _ in rows} == asdict(WorthParameters())


def test_the_codes_on_the_page_of_errors_are_all_there_are() -> None:
    _, *rows = _rows(ROOT / "docs" / "errors.md", "| code | the words |")
    assert sorted(row[0].strip("`") for row in rows) == sorted(Code)


def test_the_quantities_on_the_page_of_the_ground() -> None:
    _, *rows = _rows(ROOT / "docs" / "kubernetes-objects.md", "| written | canonical |")
    for written, canonical, value, milli, notation in rows:
        quantity = Quantity.parse(written.strip("`"))
        shown = (canonical.strip("`"), int(value), int(milli), notation)
        assert shown == (str(quantity), quantity.value(), quantity.milli_value(), quantity.format.value)


def test_the_map_of_the_engine_names_every_file_and_folder() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    plan = text[text.index("\nengine/\n") :]
    named = set(re.findall(r"[a-z_]+(?:\.py|/)", plan[: plan.index("```")])) - {"engine/"}
    there = {path.name for path in ENGINE.glob("*.py")} - {"__init__.py"}
    there |= {f"{path.name}/" for path in ENGINE.iterdir() if (path / "__init__.py").exists()}
    assert named == there
