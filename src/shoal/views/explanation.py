"""Prints the explanation of one pod or gang: headings on the left, values on the right."""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table
from rich.text import Text

from shoal.engine.reasons import Evidence
from shoal.views.why import cause_words

MOST_LINES = 12
_MOST_CAUSES = 6

_STYLES = {"waits": "red", "runs": "green", "is promised room": "cyan", "has yielded": "yellow"}


@dataclass(slots=True)
class Explanation:
    """The lines under each heading; a heading may have several."""

    title: str
    outcome: str
    code: str = ""
    chapters: list[tuple[str, list[str]]] = field(default_factory=list)

    def add(self, heading: str, *lines: str) -> None:
        """Empty lines are dropped, and a heading without any is too."""
        kept = [line for line in lines if line]
        if kept:
            self.chapters.append((heading, kept))


def show_explanation(console: Console, explanation: Explanation) -> None:
    style = next((style for word, style in _STYLES.items() if explanation.outcome.startswith(word)), "")
    line = Text(explanation.title, "bold") + Text(" ") + Text(explanation.outcome, style)
    console.print(line + Text(f": {explanation.code}" if explanation.code else ""), soft_wrap=True)
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for heading, lines in explanation.chapters:
        shown = lines if len(lines) <= MOST_LINES else [*lines[:MOST_LINES], f"and {len(lines) - MOST_LINES:,} more"]
        for number, text in enumerate(shown):
            table.add_row("" if number else f"  {heading}", Text(text))
    console.print(table)


def cause_lines(evidence: Evidence) -> list[str]:
    """How many nodes there are, then each cause with the nodes it turned away."""
    if not evidence.nodes:
        return ["there are none"]
    total = f"{evidence.fitting:,} of {evidence.nodes:,} would take it"
    width = len(f"{max((cause.nodes for cause in evidence.causes), default=0):,}")
    lines = [f"{cause.nodes:>{width},}  {cause_words(cause)}" for cause in evidence.causes[:_MOST_CAUSES]]
    more = len(evidence.causes) - _MOST_CAUSES
    return [total, *lines, *([f"and {more} more causes"] if more > 0 else [])]
