"""What each key does, without a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from build.dashboard_facts import event, node, pod, scene
from build.depth import examples
from shoal.views.dashboard.colours import Colours
from shoal.views.dashboard.facts import DashboardFacts, PageSubject, WarningFacts
from shoal.views.dashboard.frame import draw_frame
from shoal.views.dashboard.rows import row_keys, warnings
from shoal.views.dashboard.screen_state import FrameLayout, ScreenState, View, press

FACTS = scene(
    [node("n-0"), node("n-1"), node("n-2", kind="p4d.24xlarge")],
    [pod("a", "vision", 2), pod("w", "llm", 8, ""), pod("v", "vision", 1, "")],
    [event()],
)


def after(*keys: str, facts: DashboardFacts = FACTS, layout: FrameLayout | None = None) -> ScreenState:
    state = ScreenState()
    for key in keys:
        state = press(state, key, row_keys(state, facts), facts, layout or FrameLayout())
    return state


@pytest.mark.parametrize("key", ["q", "Q", "ctrl-c"])
def test_the_user_can_quit(key: str) -> None:
    assert after(key).is_done


def test_digits_and_tab_switch_views() -> None:
    assert [after(key).view for key in "12345"] == list(View)
    assert after("tab").view is View.WAITING
    assert after("back-tab").view is View.EVENTS
    assert after("5", "tab").view is View.NODES


def test_the_cursor_moves_over_rows_and_stops_at_the_ends() -> None:
    assert after("j").selected[View.NODES] == "n-0"
    assert after("j", "down", "j").selected[View.NODES] == "n-2"
    assert after("j", "down", "j", "j").selected[View.NODES] == "n-2"
    assert after("G").selected[View.NODES] == "n-2"
    assert after("G", "g").selected[View.NODES] == "n-0"
    assert after("G", "k").selected[View.NODES] == "n-1"


def test_up_and_down_move_by_a_line_of_nodes_and_left_and_right_by_a_node() -> None:
    side_by_side = FrameLayout(per_line=2)
    assert after("j", "j", layout=side_by_side).selected[View.NODES] == "n-2"
    assert after("j", "right", layout=side_by_side).selected[View.NODES] == "n-1"
    assert after("j", "j", "left", layout=side_by_side).selected[View.NODES] == "n-1"


def test_the_cursor_stays_on_its_row_when_rows_come_before_it() -> None:
    state = after("j", "j")
    more = scene([node("n-00"), node("n-0"), node("n-1"), node("n-2", kind="p4d.24xlarge")])
    assert press(state, "j", row_keys(state, more), more, FrameLayout()).selected[View.NODES] == "n-2"


def test_enter_opens_what_is_under_the_cursor_and_escape_goes_back() -> None:
    assert after("j", "j", "enter").subject == PageSubject("node", "n-1")
    assert after("j", "j", "enter", "escape").subject is None
    assert after("2", "j", "enter").subject == PageSubject("pod", "llm/w")
    assert after("2", "enter").subject == PageSubject("pod", "llm/w")
    assert after("j", "enter", "3").subject is None


def test_a_page_scrolls_as_far_as_it_has_lines() -> None:
    layout = FrameLayout(page=5, most_scroll=7)
    assert after("enter", "j", layout=layout).scroll == 1
    assert after("enter", "page-down", "page-down", "page-down", layout=layout).scroll == 7
    assert after("enter", "G", "k", layout=layout).scroll == 6
    assert after("enter", "j", "g", layout=layout).scroll == 0


def test_a_filter_is_typed_kept_and_removed() -> None:
    typing = after("/", "v", "i", "x", "backspace", "s")
    assert typing.draft == "vis"
    assert [row.key for row in row_keys(typing, FACTS)] == ["n-0"]
    kept = after("/", *"vis", "enter")
    assert (kept.filter, kept.draft) == ("vis", None)
    assert [row.key for row in row_keys(structs.replace(kept, view=View.WAITING), FACTS)] == ["pod vision/v"]
    assert after("/", *"vis", "enter", "escape").filter == ""
    assert after("/", *"vis", "escape").filter == ""


def test_keys_are_letters_while_a_filter_is_typed() -> None:
    state = after("/", "q", "5", "?", "p", " ")
    assert (state.draft, state.is_done, state.is_paused) == ("q5?p ", False, False)


def test_s_takes_the_next_order_of_this_view_alone() -> None:
    assert after("s").sort(View.NODES) == "free"
    assert [row.key for row in row_keys(after("s"), FACTS)] == ["n-1", "n-0", "n-2"]
    assert after("s", "s", "s").sort(View.NODES) == "name"
    assert after("2", "s").sort(View.NODES) == "name"


def test_p_pauses_and_goes_on() -> None:
    assert after("p").is_paused
    assert not after("p", " ").is_paused


def test_any_key_closes_the_help_and_does_nothing_else() -> None:
    assert after("?").is_helping
    closed = after("?", "p")
    assert (closed.is_helping, closed.is_paused) == (False, False)


def test_warnings_stay_until_they_are_acknowledged_and_come_back_when_they_happen_again() -> None:
    warning = WarningFacts("XidError default", "XidError", 1, "2026-01-01T00:00:00Z", "node/n-0", "fell off the bus")
    facts = structs.replace(FACTS, warnings=[warning])
    assert warnings(after("5", "1", facts=facts), facts) == [warning]
    acknowledged = after("a", facts=facts)
    assert warnings(acknowledged, facts) == []
    again = structs.replace(warning, count=2)
    assert warnings(acknowledged, structs.replace(facts, warnings=[again])) == [again]


_NAMES = "enter escape tab back-tab up down left right home end page-up page-down backspace ctrl-u"
_KEYS = st.sampled_from([*"q?hp /sajkgG12345xé", *_NAMES.split()])


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(_KEYS, max_size=25), st.integers(20, 220), st.integers(8, 60))
def test_whatever_is_typed_the_frame_fits_the_terminal(keys: list[str], width: int, height: int) -> None:
    state, layout = ScreenState(), FrameLayout()
    for key in keys:
        state = press(state, key, row_keys(state, FACTS), FACTS, layout)
        layout = draw_frame(FACTS, Colours(), (width, height), state).layout
    frame = draw_frame(FACTS, Colours(), (width, height), state).text
    lines = frame.split("\n", allow_blank=True)
    assert len(lines) == max(8, height - 1)
    assert max(line.cell_len for line in lines) <= max(width, 22)
