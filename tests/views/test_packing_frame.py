"""The live frame: gauges tell free, shared and full apart, and everything stays inside the terminal."""

from __future__ import annotations

import numpy as np
import pytest
from rich.cells import cell_len

from shoal.views.fleet_tiles import FREE, FULL, SHARED, NodeModel, draw_tiles
from shoal.views.packing_frame import PackingState, draw_frame

MOMENT = PackingState("Shoal packs 3 nodes", 40, 100, 38, 2, 41.5, 40.25, 3.75, 12_345.6)


def fleet(*kinds: tuple[str, int, int]) -> tuple[list[NodeModel], np.ndarray[tuple[int, ...], np.dtype[np.int32]]]:
    """(model, GPUs a node, nodes) each; every GPU free."""
    found, first = [], 0
    for model, gpus, nodes in kinds:
        found.append(NodeModel(model, gpus, range(first, first + nodes)))
        first += nodes
    return found, np.full((first, max(gpus for _, gpus, _ in kinds)), 1000, dtype=np.int32)


def test_a_gauge_is_dark_when_free_warm_when_shared_and_solid_when_full() -> None:
    kinds, free = fleet(("T4", 4, 1))
    free[0] = [0, 1000, 999, 1]
    text = draw_tiles(kinds, free, 24, 1)
    styled = [(text.plain[span.start], str(span.style)) for span in text.spans]
    gauges = [(glyph, style) for glyph, style in styled if style in (FREE, FULL, SHARED)]
    assert gauges == [("▇", FULL), ("▇", FREE), ("▁", SHARED), ("▆", SHARED)]


def test_the_used_part_of_a_kind_is_in_its_label() -> None:
    kinds, free = fleet(("H100", 2, 2))
    free[0] = 0
    assert draw_tiles(kinds, free, 60, 5).plain.startswith("H100   50 %")


def test_devices_a_node_does_not_have_are_not_drawn() -> None:
    kinds, free = fleet(("H100", 8, 1), ("T4", 2, 1))
    lines = draw_tiles(kinds, free, 24, 2).plain.splitlines()
    assert [line.count("▇") for line in lines] == [8, 2]


def test_wide_terminals_get_wide_gauges() -> None:
    kinds, free = fleet(("T4", 2, 3))
    assert draw_tiles(kinds, free, 80, 20).plain.count("▇▇ ▇▇") == 3


def test_nodes_that_do_not_fit_are_counted() -> None:
    kinds, free = fleet(("H100", 8, 100), ("T4", 2, 100))
    text = draw_tiles(kinds, free, 40, 3).plain
    assert len(text.splitlines()) <= 3
    shown = text.count("▇▇▇▇▇▇▇▇")
    assert f"+{100 - shown}" in text


@pytest.mark.parametrize(("width", "height"), [(80, 24), (140, 40), (40, 12), (200, 60), (20, 9), (10, 5)])
@pytest.mark.parametrize("nodes", [1, 24, 500])
def test_a_frame_never_leaves_the_terminal(width: int, height: int, nodes: int) -> None:
    kinds, free = fleet(("H100", 8, nodes), ("A100", 8, nodes), ("T4", 2, nodes))
    lines = draw_frame(MOMENT, kinds, free, width, height).split("\n")
    assert len(lines) <= max(height, 3 + 7)
    assert all(cell_len(line.plain) <= width for line in lines)


def test_the_counters_say_what_happened() -> None:
    kinds, free = fleet(("H100", 8, 3))
    text = draw_frame(MOMENT, kinds, free, 80, 24).plain
    for words in ("40 of 100 pods", "placed 38", "refused 2", "arrived 41.5 %", "12,346 placements/s"):
        assert words in text
    assert "allocated 40.2 %" in text
