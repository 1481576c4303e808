"""The frame fits its terminal, whatever is in the cluster, and shows what is there."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from rich.cells import cell_len
from rich.text import Text

from build.dashboard_facts import NOW_S, cut_node, event, node, pod, read_event, read_node, read_pod, scene
from build.depth import examples
from shoal.autoscale.node_claims.claim import claim_of
from shoal.views.dashboard.cluster_state import ClusterState
from shoal.views.dashboard.colours import BROKEN, FREE, Colours
from shoal.views.dashboard.facts import DashboardFacts, DashboardNode, DashboardPod
from shoal.views.dashboard.frame import draw_frame
from shoal.views.dashboard.marks import without_colours


def _drawn(shown: DashboardFacts, width: int = 80, height: int = 24, colours: Colours | None = None) -> list[Text]:
    return list(draw_frame(shown, colours or Colours(), (width, height)).text.split("\n", allow_blank=True))


def _styles(line: Text, glyphs: str = "▇▋▁█X·") -> list[str]:
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
    nodes: list[DashboardNode] = []
    for number, (count, gpus) in enumerate(kinds):
        for index in range(count):
            broken = frozenset({0}) if draw(st.integers(0, 9)) == 0 else frozenset()
            ready = draw(st.integers(0, 9)) != 0
            nodes.append(node(f"kind{number}-{index}", gpus, f"kind{number}", is_ready=ready, broken=broken))
    pods: list[DashboardPod] = []
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
    first, second = _styles(_line(lines, "n-0 ")), _styles(_line(lines, "n-1 "))
    assert first == [colours.of("vision")] * 6 + [FREE] * 10
    assert second == [colours.of("llm")] * 4 + [FREE] * 12


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
def test_held_free_idle_and_failed_gpus_have_letters_of_their_own(size: tuple[int, int]) -> None:
    busy, idle = pod("a", "vision", 1), structs.replace(pod("b", "vision", 1), load=0)
    shown = scene([node("n-0", 4, broken=frozenset({3})), node("n-1")], [busy, idle])
    tile = _line(_drawn(shown, *size), "n-0 ").plain.split("1/4")[0].split("2/4")[0].split()[1:]
    assert [set(gpu) for gpu in tile] == [{"▇"}, {"▁"}, {"·"}, {"X"}]


def test_a_mig_instance_is_a_part_of_its_gpu_and_others_stay_free() -> None:
    lines = _drawn(scene([cut_node("m-0"), cut_node("m-1")], [pod("a", "vision", 1, "m-0", "1/2")]), 200, 60)
    blocks = _styles(_line(lines, "m-0 "))[:16]
    assert blocks == [FREE] * 8 + [FREE] * 4 + [Colours().of("vision")] * 2 + [FREE] * 2


def test_a_failed_gpu_and_a_node_that_is_away_are_seen_at_once() -> None:
    lines = _drawn(scene([node("n-0", broken=frozenset({7})), node("n-1", is_ready=False)]))
    assert "free 15   X failed 1" in lines[2].plain
    assert "2 nodes, 1 not ready" in _line(lines, "p5.48xlarge").plain
    assert BROKEN in _styles(_line(lines, "n-0 "))
    assert "1 GPU failed" in _line(lines, "n-0 ").plain
    assert "not ready" in _line(lines, "n-1 ").plain


def test_what_waits_says_for_how_many_gpus_and_why() -> None:
    lines = _drawn(scene([node("n-0")], [pod("train", "llm", 8, "")]))
    assert "2 Waiting 1" in lines[3].plain
    assert _line(lines, "llm/train").plain.split() == ["llm/train", "8", "42s", "no", "GPU", "is", "free"]


def test_a_pod_that_lacks_gpus_says_how_many_one_node_could_give() -> None:
    waits = structs.replace(pod("train", "llm", 8, ""), why="2 Insufficient nvidia.com/gpu")
    lines = _drawn(scene([node("n-0"), node("n-1")], [waits, pod("a", "vision", 6), pod("b", "llm", 3, "n-1")]), 120)
    assert "most free: 5 on n-1; 2 Insufficient nvidia.com/gpu" in _line(lines, "llm/train").plain


def test_the_legend_keeps_its_order_and_teams_that_hold_nothing_any_more() -> None:
    colours = Colours()
    first = _drawn(scene([node("n-0")], [pod("a", "zeta", 3), pod("b", "alpha", 1)]), colours=colours)
    then = _drawn(scene([node("n-0")], [pod("b", "alpha", 4)]), colours=colours)
    assert first[2].plain.split() == ["■", "alpha", "1", "■", "zeta", "3", "·", "free", "4"]
    assert then[2].plain.split() == ["■", "alpha", "4", "■", "zeta", "0", "·", "free", "4"]


def test_the_head_says_how_many_gpus_are_held_and_one_node_is_singular() -> None:
    shown = structs.replace(scene([node("n-0")], [pod("a", "vision", 3)]), title="Shoal production")
    assert " ".join(_drawn(shown, 120)[0].plain.split()).startswith("Shoal production 1 node 3/8 GPUs held")


def test_a_thousand_nodes_are_a_block_each_and_those_that_do_not_fit_are_counted() -> None:
    nodes = [node(f"n-{index}") for index in range(2000)]
    lines = _drawn(scene(nodes, [pod("a", "vision", 8, "n-0")]))
    more = next(word for line in lines for word in line.plain.split() if word.startswith("+"))
    assert 1 + sum(line.plain.count("·") for line in lines[4:]) + int(more[1:].replace(",", "")) == 2000


@pytest.mark.parametrize(("width", "sides"), [(80, False), (200, True)])
def test_lists_stand_side_by_side_where_there_is_room(width: int, sides: bool) -> None:
    lines = _drawn(scene([node("n-0")], [pod("w", "llm", 8, "")], [event()]), width, 30)
    assert any("WAITING" in line.plain and "OBJECT" in line.plain for line in lines) is sides


def test_the_bar_is_as_full_as_the_fleet() -> None:
    bar = _styles(_drawn(scene([node("n-0"), node("n-1")], [pod("a", "vision", 4)]))[1], "█·")
    assert abs(bar.count(Colours().of("vision")) / len(bar) - 0.25) < 0.02


def test_without_colours_every_team_has_a_sign_and_free_is_dots() -> None:
    colours = Colours()
    shown = scene([cut_node("m-0"), cut_node("m-1")], [pod("a", "vision", 1, "m-0", "1/2"), pod("b", "llm", 4, "m-1")])
    coloured = draw_frame(shown, colours, (200, 60)).text
    plain = without_colours(coloured, colours)
    assert {word for span in plain.spans for word in str(span.style).split()} <= {"bold", "dim", "reverse"}
    lines = plain.plain.split("\n")
    assert [len(line) for line in lines] == [len(line) for line in coloured.plain.split("\n")]
    legend = lines[2].split()
    assert legend == ["▇", "llm", "1", "▒", "vision", "0.25", "·", "free", "2.75"]
    assert next(line for line in lines if line.lstrip().startswith("m-0 ")).split()[1:3] == ["········", "····▒▒··"]


def test_nodes_that_come_and_go_are_counted_and_told() -> None:
    state = ClusterState()
    state.put_node(node("n-0"))
    raw: dict[str, Any] = {
        "metadata": {
            "name": "gpu-a",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"karpenter.sh/nodepool": "gpu", "node.kubernetes.io/instance-type": "p5.48xlarge"},
            "annotations": {"shoal.dev/expected-start-seconds": "480"},
        },
        "status": {"conditions": [{"type": "Launched", "status": "True"}]},
    }
    state.node_changes.put(claim_of(raw))
    leaving = {**raw, "metadata": {**raw["metadata"], "name": "gpu-b", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    state.node_changes.put(claim_of(leaving))
    text = draw_frame(state.scene("", now_s=NOW_S), Colours(), (140, 30)).text.plain
    assert "1 node +1 -1" in text
    assert "provisioning 1 x p5.48xlarge, started 0:42 ago, about 8:00 expected" in text
    assert "removing 1 x p5.48xlarge" in text
    started = [{"type": "Initialized", "status": "True"}]
    state.node_changes.put(claim_of({**raw, "status": {"conditions": started}}))
    state.node_changes.drop("gpu-b")
    assert "provisioning" not in draw_frame(state.scene("", now_s=NOW_S), Colours(), (140, 30)).text.plain
