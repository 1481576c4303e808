"""The help of the dashboard: its keys and its signs."""

from __future__ import annotations

from rich.text import Text

_KEYS = (
    ("q, Ctrl-C", "quit"),
    ("?, h", "this help; any key closes it"),
    ("1-5, Tab", "nodes, waiting, queues, gangs, events"),
    ("arrows, j, k", "move the cursor; PgUp, PgDn, g, G: far"),
    ("Enter", "open what is under the cursor"),
    ("Esc", "back; then remove the filter"),
    ("/", "show only rows with a text (team, namespace, node)"),
    ("s", "sort in the next order"),
    ("p, space", "pause: the picture stays, the cluster does not"),
    ("a", "acknowledge all warnings"),
)
_SIGNS = (
    ("▇", "GPU held by a team, in its colour"),
    ("▁", "held, but idle (below 10 % where the load is known)"),
    ("▋", "end of a MIG instance or replica beside another"),
    ("·", "free"),
    ("X", "failed GPU; in blocks: node not ready"),
)
_FIRST = 15


def help_lines(hint: str) -> list[Text]:
    """`hint`: how to reach the cluster, if this process started it."""
    lines = [Text("Keys", style="bold"), *(_pair(*pair) for pair in _KEYS), Text()]
    lines += [Text("Signs", style="bold"), *(_pair(*pair) for pair in _SIGNS)]
    if hint:
        lines += [Text(), Text(hint)]
    return lines


def _pair(first: str, text: str) -> Text:
    return Text.assemble((f"{first:<{_FIRST}}", "bold"), text)
