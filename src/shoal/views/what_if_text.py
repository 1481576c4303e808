"""Shows the answer to a proposal as text: queues first, then pods, then the commands that would do it."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from shoal.views.dashboard.words import plural
from shoal.views.queue_diff import MOST_LINES, show_comparison
from shoal.views.queue_table import NAME, WORDS, show_table
from shoal.views.what_if import WhatIfAnswer

_HEADINGS = ("pod or gang", "now", "proposed")


def show_answer(console: Console, answer: WhatIfAnswer) -> None:
    if answer.added_nodes:
        console.print(f"With {plural(answer.added_nodes, 'more node')}:", soft_wrap=True)
    if answer.queues is not None:
        show_comparison(console, answer.queues)
        console.print()
    words = f"waiting pods: {len(answer.pods):,} with another outcome, {answer.unchanged:,} as before"
    console.print(words, soft_wrap=True)
    if answer.pods:
        console.print()
        rows = [(one.name, one.now, one.proposed) for one in answer.pods[:MOST_LINES]]
        show_table(console, _HEADINGS, [NAME, WORDS, WORDS], rows)
    if len(answer.pods) > MOST_LINES:
        console.print(Text(f"and {len(answer.pods) - MOST_LINES:,} more; -o json has them all", "dim"))
    for note in answer.notes:
        console.print(Text(note, "dim"), soft_wrap=True)
    for command in answer.commands:
        console.print(Text(f"To change it: {command}"), soft_wrap=True)
