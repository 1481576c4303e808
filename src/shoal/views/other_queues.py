"""Queues of Volcano and KAI in a list: what each may take and has taken, and who is kept back by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from rich.console import Console
from rich.text import Text

from shoal.views.queue_table import KIND, NAME, NUMBER, WORDS, Cell, show_table
from shoal.views.resource_units import in_order, words

KAI = "KAI"

Amounts = Mapping[str, float]


class OtherQueue(msgspec.Struct, frozen=True):
    project: str
    """`Volcano` or `KAI`."""
    queue: str
    parent: str
    state: str
    """As its status says; empty where it says none."""
    limit: Amounts
    """What it may take at most; what is not named has no end."""
    quota: Amounts
    """What is its own."""
    used: Amounts
    """By pods on nodes, its own and those of queues below it."""
    waiting: int
    """Gangs, and pods of no gang, that it keeps back."""
    share: Amounts = {}
    """KAI: its fair share of what the nodes have now."""


def show_other_queues(console: Console, queues: Sequence[OtherQueue], *, is_first: bool = False) -> None:
    """`is_first`: nothing is above, from which a blank line would separate them."""
    for at, project in enumerate(dict.fromkeys(each.project for each in queues)):
        if at or not is_first:
            console.print()
        console.print(Text(f"queues of {project}", "bold"))
        rows = [_row(each) for each in queues if each.project == project]
        headings = ["queue", "below", "used", "limit", "own", "fair share", "wait"]
        kinds = [NAME, KIND, WORDS, WORDS, WORDS, WORDS, NUMBER]
        if project != KAI:
            rows = [[*row[:5], *row[6:]] for row in rows]
            headings.remove("fair share")
            del kinds[5]
        show_table(console, headings, kinds, rows)


def _row(queue: OtherQueue) -> list[Cell]:
    name = Text(queue.queue, "bold")
    if queue.state not in ("", "Open"):
        name.append(f" ({queue.state})", "red")
    return [
        name,
        queue.parent,
        _told(queue.used),
        _told(queue.limit),
        _told(queue.quota),
        _told(queue.share),
        Text(f"{queue.waiting:,}", "red" if queue.waiting else "dim"),
    ]


def _told(amounts: Amounts) -> str:
    return ", ".join(words(name, amounts[name]) for name in in_order(dict(amounts))) or "·"
