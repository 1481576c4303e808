"""The frame fits its terminal, whatever is in the cluster, and shows what is there."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from build.dashboard_facts import cut_node, event, node, pod, read_event, read_node, read_pod, scene
from build.depth import examples
from shoal.views.dashboard.colours import BROKEN, FREE, Colours
from shoal.views.dashboard.facts import DashboardFacts, NodeFacts, PodFacts
from shoal.views.dashboard.frame import draw_frame
from shoal.views.dashboard.marks import without_colours


def _drawn(shown: DashboardFacts, width: int = 80, height: int = 24, colours: Colours | None = None) -> list[Text]:
    return list(draw_frame(shown, colours or Colours(), width, height).split("\n", allow_blank=True))


def _styles(line: Text, glyphs: str = "▇▋▊█X") -> list[str]:
    """The colour of every block of a line, from left to right."""
    found = []
    for at, letter in enumerate(line.plain):
        if letter in glyphs:
            found.append(str([span.style for span in line.spans if span.start <= at < span.end][-1]))
    return found


def _line(lines: list[Text], start: str) -> Text:
    return next(line for line in lines if line.plain.lstrip().startswith(start))


@st.composite
def scenes(draw: st.DrawFn) -> DashboardFacts:
    kinds = draw(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 16)), min_size=0, max_size=4))
    nodes: list[NodeFacts] = []
    for number, (count, gpus) in enumerate(kinds):
        for index in range(count):
            broken = frozenset({0}) if draw(st.integers(0, 9)) == 0 else frozenset()
            ready = draw(st.integers(0, 9)) != 0
            nodes.append(node(f"kind{number}-{index}", gpus, f"kind{number}", is_ready=ready, broken=broken))
    pods: list[PodFacts] = []
    for index in range(draw(st.integers(0, 30))):
        place = draw(st.sampled_from(["", *[one.name for one in nodes[:10]]]))
        pods.append(pod(f"p{index}", draw(st.sampled_from("abcdefghijklm")), draw(st.integers(0, 8)), place))
    events = [event(is_warning=draw(st.booleans()))] * draw(st.integers(0, 40))
    return scene(nodes, pods, events, draw(st.sampled_from(["", "Ctrl-C ends it"])))


@settings(max_examples=examples(60), deadline=None)
@given(scenes(), st.integers(40, 240), st.integers(12, 70))
def test_a_frame_has_a_line_less_than_the_terminal_and_is_never_wider(
    shown: DashboardFacts, width: int, height: int
) -> None:
    lines = _drawn(shown, width, height)
    assert len(lines) == height - 1
    assert max(line.cell_len for line in lines) <= width


_TEXTS = st.text(
    st.sampled_from("a-b/\n\r\t\v\x1b[]2J;\x07\x08\x7f\x85\x9b\u2028\u202e\u200b漢字ｶﾞ🐟🇩e\u0301\ufe0f\u3000"),
    max_size=60,
)


@st.composite
def wild_scenes(draw: st.DrawFn) -> DashboardFacts:
    """Objects as anybody may write them."""
    nodes = [read_node(draw(_TEXTS) or "n", draw(_TEXTS)) for _ in range(draw(st.integers(0, 30)))]
    places = st.sampled_from(["", *[one.name for one in nodes]])
    pods = [read_pod(draw(_TEXTS), draw(_TEXTS), draw(_TEXTS), draw(places)) for _ in range(draw(st.integers(0, 9)))]
    events = [read_event(draw(_TEXTS), draw(_TEXTS), draw(_TEXTS)) for _ in range(draw(st.integers(0, 9)))]
    return scene(nodes, pods, events)


@settings(max_examples=examples(60), deadline=None)
@given(wild_scenes(), st.integers(40, 240), st.integers(12, 70))
def test_no_text_of_any_object_reaches_further_than_its_place(shown: DashboardFacts, width: int, height: int) -> None:
    lines = _drawn(shown, width, height)
    assert len(lines) == height - 1
    assert max(line.cell_len for line in lines) <= width
    assert all(line.plain.isprintable() for line in lines)


def test_what_waits_lines_up_whatever_letters_names_are_made_of() -> None:
    wide, narrow = pod("漢字", "llm", 8, ""), pod("train", "llm", 8, "")
    shown = _drawn(scene([node("n-0")], [wide, narrow]))
    lines = [line for line in shown if "no GPU is free" in line.plain]
    assert len(lines) == 2
    assert len({cell_len(line.plain.partition(" 8 GPU")[0]) for line in lines}) == 1


def test_every_gpu_has_the_colour_of_the_team_that_holds_it() -> None:
    colours = Colours()
    shown = scene([node("n-0"), node("n-1")], [pod("a", "vision", 3), pod("b", "llm", 2, "n-1")])
    lines = _drawn(shown, colours=colours)
    first, second = _styles(_line(lines, "0 ")), _styles(_line(lines, "1 "))
    assert first == [colours.of("vision")] * 24 + [FREE] * 40
    assert second == [colours.of("llm")] * 16 + [FREE] * 48


def test_a_mig_instance_is_a_part_of_its_gpu_and_others_stay_free() -> None:
    lines = _drawn(scene([cut_node("m-0"), cut_node("m-1")], [pod("a", "vision", 1, "m-0", "1/2")]), 200, 60)
    blocks = _styles(_line(lines, "0 "))[:16]
    assert blocks == [FREE] * 8 + [FREE] * 4 + [Colours().of("vision")] * 2 + [FREE] * 2


def test_a_failed_gpu_and_a_node_that_is_away_are_seen_at_once() -> None:
    lines = _drawn(scene([node("n-0", broken=frozenset({7})), node("n-1", is_ready=False)]))
    assert "X failed 1" in lines[2].plain
    assert "2 nodes, 1 not ready" in _line(lines, "p5.48xlarge").plain
    assert BROKEN in _styles(_line(lines, "0 "))


def test_what_waits_says_for_how_many_gpus_and_why() -> None:
    lines = _drawn(scene([node("n-0")], [pod("train", "llm", 8, "")]))
    assert "Waiting 1" in _line(lines, "Waiting").plain
    assert _line(lines, "llm/train").plain.split() == ["llm/train", "8", "GPU", "no", "GPU", "is", "free"]


def test_a_thousand_nodes_are_a_block_each_and_those_that_do_not_fit_are_counted() -> None:
    nodes = [node(f"n-{index}") for index in range(2000)]
    lines = _drawn(scene(nodes, [pod("a", "vision", 8, "n-0")]))
    blocks = "".join(line.plain for line in lines).count("▁") + "".join(line.plain for line in lines).count("▇")
    more = next(word for line in lines for word in line.plain.split() if word.startswith("+"))
    assert blocks + int(more[1:].replace(",", "")) == 2000


@pytest.mark.parametrize(("width", "sides"), [(80, False), (200, True)])
def test_lists_stand_side_by_side_where_there_is_room(width: int, sides: bool) -> None:
    lines = _drawn(scene([node("n-0")], [pod("w", "llm", 8, "")], [event()]), width, 30)
    assert any("Waiting" in line.plain and "Events" in line.plain for line in lines) is sides


def test_the_bar_is_as_full_as_the_fleet() -> None:
    bar = _styles(_drawn(scene([node("n-0"), node("n-1")], [pod("a", "vision", 4)]))[1])
    assert abs(bar.count(Colours().of("vision")) / len(bar) - 0.25) < 0.02


def test_without_colours_every_team_has_a_sign_and_free_is_dots() -> None:
    colours = Colours()
    shown = scene([cut_node("m-0"), cut_node("m-1")], [pod("a", "vision", 1, "m-0", "1/2"), pod("b", "llm", 4, "m-1")])
    coloured = draw_frame(shown, colours, 200, 60)
    plain = without_colours(coloured, colours)
    assert not plain.spans
    lines = plain.plain.split("\n")
    assert [len(line) for line in lines] == [len(line) for line in coloured.plain.split("\n")]
    legend = lines[2].split()
    assert legend == ["▇", "llm", "1", "▒", "vision", "0.25", "·", "free", "2.75"]
    assert next(line for line in lines if line.lstrip().startswith("0 ")).split()[1:3] == ["········", "····▒▒··"]
