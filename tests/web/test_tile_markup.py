"""Tiles: GPUs with their parts, and the classes by which they are coloured."""

import pytest
from msgspec import structs

from build.dashboard_facts import cut_node, node, pod
from shoal.views.dashboard.colours import Colours
from shoal.views.dashboard.facts import GpuSlot
from shoal.views.dashboard.gpu_use import tile_of
from shoal.web.tile_markup import TileMarkup, tile_label, use_class


def drawn(*tiles: object) -> str:
    return "".join(TileMarkup(Colours()).of(tile) for tile in tiles)  # type: ignore[arg-type]


def test_gpus_of_one_team_are_one_path_and_free_ones_another() -> None:
    markup = drawn(tile_of(node("n-0"), [pod("a", "vision", 3)]))
    assert markup.count("<path") == 2
    assert markup.count("M") == 8
    assert 'class="t-cornflower_blue u-unknown h-held"' in markup
    assert 'class="t-free u-free h-free"' in markup


def test_mig_slices_are_drawn_inside_their_gpu() -> None:
    markup = drawn(tile_of(cut_node("n-0", gpus=2, parts=4), [pod("a", "vision", 1, "n-0", "1/2")]))
    assert markup.count("M") == 8
    # The third quarter of the second GPU: 14 + 2 * 3.
    assert 'd="M20 0h2.5' in markup


def test_failed_gpus_are_crossed_out_and_said() -> None:
    tile = tile_of(node("n-0", broken=frozenset({2})), [])
    assert 'class="cross"' in drawn(tile)
    assert "h-failed" in drawn(tile)
    assert "1 failed" in tile_label(tile)


def test_a_node_that_is_not_ready_says_so_in_words() -> None:
    markup = drawn(tile_of(node("n-0", is_ready=False, is_cordoned=True), []))
    assert "<em>not ready</em><em>cordoned</em>" in markup


def test_a_node_without_gpus_has_a_tile() -> None:
    assert "no GPUs" in drawn(tile_of(node("cpu-0", gpus=0), []))


def test_a_tile_that_has_not_changed_is_the_same_object() -> None:
    tiles = TileMarkup(Colours())
    tile = tile_of(node("n-0"), [])
    assert tiles.of(tile) is tiles.of(tile)
    assert tiles.of(structs.replace(tile, held=0.0)) is not tiles.of(tile)


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        (0, "u-low"),
        (39, "u-low"),
        (40, "u-middle"),
        (69, "u-middle"),
        (70, "u-good"),
        (95, "u-good"),
        (96, "u-saturated"),
        (None, "u-unknown"),
    ],
)
def test_the_colour_of_use_follows_the_scale(load: int | None, expected: str) -> None:
    assert use_class(GpuSlot(0.0, 1.0, "vision", load)) == expected


def test_a_free_gpu_has_no_use() -> None:
    assert use_class(GpuSlot(0.0, 1.0, "")) == "u-free"
