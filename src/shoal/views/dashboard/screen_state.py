"""What the user has chosen to see, and how each key changes it: a pure function from state and key to state.

The cursor is remembered by the name of its row, so that it stays where it is while rows come and go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec
from msgspec import structs

from shoal.views.dashboard.facts import DashboardFacts, PageSubject


class View(StrEnum):
    NODES = "Nodes"
    WAITING = "Waiting"
    QUEUES = "Queues"
    GANGS = "Gangs"
    EVENTS = "Events"


VIEWS = tuple(View)
SORTS: Mapping[View, tuple[str, ...]] = {
    View.NODES: ("name", "free", "trouble"),
    View.WAITING: ("age", "GPUs", "name"),
    View.QUEUES: ("name", "used", "pending"),
    View.GANGS: ("waiting", "name", "GPUs"),
    View.EVENTS: ("time", "warnings"),
}
_LONGEST_FILTER = 60


class ScreenState(msgspec.Struct, frozen=True):
    view: View = View.NODES
    selected: Mapping[View, str] = {}
    """The key of the row under the cursor; none before the first arrow key."""
    sorts: Mapping[View, int] = {}
    filter: str = ""
    draft: str | None = None
    """The filter while it is typed; None while it is not."""
    opened: tuple[PageSubject, ...] = ()
    """The pages that are open, one above the other."""
    scroll: int = 0
    """Lines of the page that are above the screen."""
    acknowledged: Mapping[str, int] = {}
    """Warning -> its count when the user acknowledged it."""
    is_helping: bool = False
    is_paused: bool = False
    is_done: bool = False

    @property
    def subject(self) -> PageSubject | None:
        return self.opened[-1] if self.opened else None

    def sort(self, view: View) -> str:
        """The order of the rows of a view."""
        names = SORTS[view]
        return names[self.sorts.get(view, 0) % len(names)]

    @property
    def needle(self) -> str:
        """What rows are filtered by, also while it is typed."""
        return (self.filter if self.draft is None else self.draft).casefold().strip()


class RowKey(msgspec.Struct, frozen=True):
    key: str
    opens: PageSubject | None = None
    """The page that Enter opens."""


class FrameLayout(msgspec.Struct, frozen=True):
    """What the last frame looked like: as far as keys depend on it."""

    per_line: int = 1
    """Rows side by side."""
    page: int = 10
    """Lines of a page."""
    most_scroll: int = 0


def press(
    state: ScreenState, key: str, rows: Sequence[RowKey], facts: DashboardFacts, layout: FrameLayout
) -> ScreenState:
    """`rows`: those of the current view, in order, filtered."""
    if key == "ctrl-c":
        return structs.replace(state, is_done=True)
    if state.draft is not None:
        return _type(state, state.draft, key)
    if state.is_helping:
        return structs.replace(state, is_helping=False, is_done=key == "q")
    if key in _MOVES:
        return _moved(state, key, rows, layout)
    if key == "enter":
        return _opened(state, rows)
    if key == "a":
        return structs.replace(state, acknowledged={one.key: one.count for one in facts.warnings})
    return _commanded(state, key)


def _commanded(state: ScreenState, key: str) -> ScreenState:
    if key in ("q", "Q"):
        return structs.replace(state, is_done=True)
    if key in ("?", "h"):
        return structs.replace(state, is_helping=True)
    if key in ("p", " "):
        return structs.replace(state, is_paused=not state.is_paused)
    if key == "/":
        return structs.replace(state, draft=state.filter, opened=(), scroll=0)
    if key == "s":
        return structs.replace(state, sorts={**state.sorts, state.view: state.sorts.get(state.view, 0) + 1})
    if key == "escape":
        return _closed(state)
    if key in ("tab", "back-tab"):
        step = 1 if key == "tab" else -1
        return _viewed(state, VIEWS[(VIEWS.index(state.view) + step) % len(VIEWS)])
    if key in tuple("12345"):
        return _viewed(state, VIEWS[int(key) - 1])
    return state


def _viewed(state: ScreenState, view: View) -> ScreenState:
    return structs.replace(state, view=view, opened=(), scroll=0)


def _type(state: ScreenState, draft: str, key: str) -> ScreenState:
    if key == "enter":
        return structs.replace(state, filter=draft.strip(), draft=None)
    if key == "escape":
        return structs.replace(state, draft=None)
    if key == "backspace":
        return structs.replace(state, draft=draft[:-1])
    if key == "ctrl-u":
        return structs.replace(state, draft="")
    return structs.replace(state, draft=(draft + key)[:_LONGEST_FILTER]) if len(key) == 1 else state


def _closed(state: ScreenState) -> ScreenState:
    """Back: from a page to what is below it, then without the filter."""
    if state.opened:
        return structs.replace(state, opened=state.opened[:-1], scroll=0)
    return structs.replace(state, filter="")


def _opened(state: ScreenState, rows: Sequence[RowKey]) -> ScreenState:
    if state.opened:
        return state
    chosen = next((row for row in rows if row.key == state.selected.get(state.view)), None)
    if chosen is None and rows:
        chosen = rows[0]
    if chosen is None or chosen.opens is None:
        return state
    return structs.replace(state, opened=(*state.opened, chosen.opens), scroll=0)


_MOVES = frozenset({"up", "down", "left", "right", "k", "j", "page-up", "page-down", "home", "end", "g", "G"})


def _moved(state: ScreenState, key: str, rows: Sequence[RowKey], layout: FrameLayout) -> ScreenState:
    far = 1_000_000
    lines = {
        "up": -1,
        "k": -1,
        "down": 1,
        "j": 1,
        "page-up": -layout.page,
        "page-down": layout.page,
        "home": -far,
        "g": -far,
        "end": far,
        "G": far,
    }.get(key, 0)
    if state.opened:
        return structs.replace(state, scroll=min(max(0, state.scroll + lines), layout.most_scroll))
    if not rows:
        return state
    keys = [row.key for row in rows]
    chosen = state.selected.get(state.view)
    if chosen not in keys:
        at = len(keys) - 1 if lines == far else 0
    else:
        step = {"left": -1, "right": 1}.get(key, lines * layout.per_line)
        at = keys.index(chosen) + step
        if abs(lines) == 1 and not 0 <= at < len(keys):
            return state
    return structs.replace(state, selected={**state.selected, state.view: keys[min(max(0, at), len(keys) - 1)]})
