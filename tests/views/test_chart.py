"""The SVG: well-formed, safe to quote in, inside its frame, and readable where lines end close together."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from shoal.views.chart import Line, Panel, Picture, draw
from shoal.views.packing_chart import PackedCurves, draw_packing
from shoal.views.palette import shade

SVG = "{http://www.w3.org/2000/svg}"
POLICIES = ("Shoal", "FGD", "BestFit", "GpuPacking", "GpuClustering", "DotProd", "Random")


def packed(policy: str, level: float, reach: int = 130) -> PackedCurves:
    loads = range(reach + 1)
    return PackedCurves(policy, {x: min(x, level) for x in loads}, {x: max(0.0, 100 - level - x / 50) for x in loads})


def picture(*runs: PackedCurves, reach: int = 130, title: str = "Fleet") -> ElementTree.Element:
    return ElementTree.fromstring(draw_packing(title, "words", runs, reach))  # noqa: S314 - our own text


def texts(svg: ElementTree.Element) -> list[str]:
    return ["".join(element.itertext()).strip() for element in svg.iter(f"{SVG}text")]


def test_every_policy_is_named_in_the_legend_and_at_both_line_ends() -> None:
    svg = picture(*(packed(policy, 95 - k) for k, policy in enumerate(POLICIES)))
    for policy in POLICIES:
        assert sum(text.startswith(policy) for text in texts(svg)) == 3


def test_the_last_value_stands_beside_the_line() -> None:
    assert "Shoal95.4 %" in texts(picture(packed("Shoal", 95.4)))


def test_labels_of_equal_lines_do_not_cover_each_other() -> None:
    svg = picture(*(packed(policy, 95) for policy in POLICIES))
    labels = [element for element in svg.iter(f"{SVG}text") if float(element.get("x", "0")) > 790]
    heights = sorted(float(label.get("y", "0")) for label in labels)
    assert len(heights) == 14
    for panel in (heights[:7], heights[7:]):
        assert all(below - above >= 16.9 for above, below in pairwise(panel))


def test_text_from_outside_cannot_break_the_picture() -> None:
    svg = picture(packed('<script>&"', 90), title='</text><b a="')
    assert '</text><b a="' in texts(svg)
    assert not list(svg.iter(f"{SVG}script"))


@pytest.mark.parametrize("reach", [0, 1, 13, 60, 100, 104, 130, 1000])
def test_every_coordinate_stays_inside_the_frame(reach: int) -> None:
    svg = picture(packed("Shoal", 95, reach), packed("Random", 0, reach), reach=reach)
    width, height = (float(part) for part in svg.get("viewBox", "").split()[2:])
    for element in svg.iter(f"{SVG}polyline"):
        for x, y in (point.split(",") for point in element.get("points", "").split()):
            assert 0 <= float(x) <= width
            assert 0 <= float(y) <= height


def test_values_past_the_scale_are_held_at_its_edge() -> None:
    line = Line("x", [(0.0, -1e9), (1.0, 1e9)])
    text = draw(Picture("t", "s", "x", (0, 1), [Panel("p", "", [line], 200, floor=0.0, ceiling=10.0)]))
    assert re.findall(r'<polyline class="lc0" points="([^"]*)"', text)[0] == "70.0,342.0 784.0,142.0"


def test_the_picture_opens_where_policies_part() -> None:
    svg = picture(packed("Shoal", 95))
    assert texts(svg).count("130 %") == 2
    assert not [text for text in texts(svg) if text in ("70 %", "60 %", "10 %")]


def test_a_policy_without_points_is_left_out_of_the_frame_but_not_of_the_legend() -> None:
    svg = picture(PackedCurves("FGD", {}, {}), packed("Shoal", 95))
    assert sum(text.startswith("FGD") for text in texts(svg)) == 1


def test_the_same_values_draw_the_same_bytes() -> None:
    runs = [packed(policy, 95 - k) for k, policy in enumerate(POLICIES)]
    assert draw_packing("t", "s", runs, 130) == draw_packing("t", "s", runs, 130)


def test_both_grounds_have_their_colours() -> None:
    text = draw_packing("t", "s", [packed("Shoal", 95)], 130)
    assert "prefers-color-scheme:dark" in text
    assert shade("Shoal").light in text
    assert shade("Shoal").dark in text


def test_policies_have_colours_of_their_own_and_strangers_get_one_too() -> None:
    assert len({shade(policy) for policy in POLICIES}) == len(POLICIES)
    assert shade("Elsewhere") == shade("Elsewhere")
