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
    ("▇", "GPU held by a team, in its colour; ▁ held but idle, where the load is known"),
    ("▋", "end of a MIG instance or replica; ▂▃▄▅▆ GPU held in part"),
    ("·", "free; - free, but its node is not ready or cordoned"),
    ("X", "failed GPU; where a node is one block: node not ready"),
)
_FIRST = 15


def help_lines(hint: str) -> list[Text]:
    """`hint`: how to reach the cluster, if this process started it."""
    lines = [*(_pair(_FIRST, *pair) for pair in _KEYS), Text()]
    lines += [_pair(2, *pair) for pair in _SIGNS]
    if hint:
        lines += [Text(), Text(hint)]
    return lines


def _pair(width: int, first: str, text: str) -> Text:
    return Text.assemble((f"{first:<{width}}", "bold"), text)
