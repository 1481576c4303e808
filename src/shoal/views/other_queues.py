"""Lists queues of Volcano and KAI in their own terms: what each may take and has taken, and how many wait for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

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
    """What the nodes have for it now: its fair share in KAI, what it deserves in Volcano."""
    guarantee: Amounts = {}
    """Volcano: what no other queue may use."""
    elastic: Amounts = {}
    """Volcano: what its jobs use beyond their minimum."""
    inqueue: Amounts = {}
    """Volcano: what its admitted jobs do not use yet of their minimum."""
    fault: str = ""
    """What is wrong with the queue itself: a cycle of parents, a missing parent, a quota above the parent's."""


_Column = tuple[str, Callable[[OtherQueue], Amounts]]
_OF_KAI: tuple[_Column, ...] = (
    ("allocated", lambda queue: queue.used),
    ("limit", lambda queue: queue.limit),
    ("quota", lambda queue: queue.quota),
    ("fair share", lambda queue: queue.share),
)
_OF_VOLCANO: tuple[_Column, ...] = (
    ("allocated", lambda queue: queue.used),
    ("capability", lambda queue: queue.limit),
    ("deserved", lambda queue: queue.share),
    ("guarantee", lambda queue: queue.guarantee),
    ("elastic", lambda queue: queue.elastic),
    ("inqueue", lambda queue: queue.inqueue),
)
_SOMETIMES = frozenset({"capability", "guarantee", "elastic", "inqueue"})
"""Columns that are left out where no queue has an amount in them."""


def show_other_queues(console: Console, queues: Sequence[OtherQueue], *, is_first: bool = False) -> None:
    """`is_first`: nothing is above, from which a blank line would separate them."""
    for at, project in enumerate(dict.fromkeys(each.project for each in queues)):
        if at or not is_first:
            console.print()
        console.print(Text(f"queues of {project}", "bold"))
        mine = [each for each in queues if each.project == project]
        columns = [
            (heading, amounts)
            for heading, amounts in (_OF_KAI if project == KAI else _OF_VOLCANO)
            if heading not in _SOMETIMES or any(amounts(each) for each in mine)
        ]
        parent = ["parent"] if any(each.parent for each in mine) else []
        headings = ["queue", *parent, *(heading for heading, _ in columns), "wait"]
        kinds = [NAME, *([KIND] if parent else []), *(WORDS for _ in columns), NUMBER]
        rows: list[list[Cell]] = [
            [
                _name(each),
                *([each.parent] if parent else []),
                *(_told(amounts(each)) for _, amounts in columns),
                Text(f"{each.waiting:,}", "red" if each.waiting else "dim"),
            ]
            for each in mine
        ]
        show_table(console, headings, kinds, rows)
        for each in mine:
            if each.fault:
                console.print(Text(f"{each.queue}: {each.fault}", "red"))


def _name(queue: OtherQueue) -> Text:
    name = Text(queue.queue, "bold")
    if queue.state not in ("", "Open"):
        name.append(f" ({queue.state})", "red")
    return name


def _told(amounts: Amounts) -> str:
    return ", ".join(words(name, amounts[name]) for name in in_order(dict(amounts))) or "·"
