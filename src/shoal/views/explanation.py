"""Prints the explanation of one pod or gang: headings on the left, values on the right."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field

from rich.console import Console
from rich.text import Text

from shoal.engine.reasons import Evidence
from shoal.units.visible_text import visible
from shoal.views.remedies import Remedy
from shoal.views.why import cause_words

MOST_LINES = 12
_MOST_CAUSES = 6
_LEAST = 20
HELP = "would help"
QUEUE_ALONE = "queue alone"
"""The heading of changes after which the queue lets the subject go, and that were not tried on the nodes."""
REFUSED = "refused"
"""The heading of what the API server says of pods that it does not create."""
NOT_CREATED = "waits: its controller has not created "
"""How the outcome of pods begins that their controller has yet to create."""
WOULD_RUN = "it would run on "
"""In the outcome of a pod that its controller has yet to create."""

_STYLES = {"waits": "red", "runs": "green", "is nominated": "cyan", "is preempted": "yellow"}


@dataclass(slots=True)
class Explanation:
    """The lines under each heading; a heading may have several."""

    title: str
    outcome: str
    code: str = ""
    chapters: list[tuple[str, list[str]]] = field(default_factory=list)
    remedies: list[Remedy] = field(default_factory=list)
    """That the lines under `would help` describe."""
    untried: list[Remedy] = field(default_factory=list)
    """That the lines under `queue alone` describe: only the queue was asked about them."""
    is_at_once: bool = True
    """Whether the outcome needs the end of no other pod or workload."""

    def add(self, heading: str, *lines: str) -> None:
        """Empty lines are dropped, and a heading without any is too."""
        kept = [line for line in lines if line]
        if kept:
            self.chapters.append((heading, kept))


def show_explanation(console: Console, explanation: Explanation) -> None:
    style = next((style for word, style in _STYLES.items() if explanation.outcome.startswith(word)), "")
    line = Text(visible(explanation.title), "bold") + Text(" ") + Text(visible(explanation.outcome), style)
    console.print(line + Text(f": {explanation.code}" if explanation.code else ""), soft_wrap=True)
    width = max((len(heading) for heading, _ in explanation.chapters), default=0)
    commands = {
        (heading, command)
        for heading, remedies in ((HELP, explanation.remedies), (QUEUE_ALONE, explanation.untried))
        for remedy in remedies
        for command in remedy.commands
    }
    for heading, lines in explanation.chapters:
        shown = lines if len(lines) <= MOST_LINES else [*lines[:MOST_LINES], f"and {len(lines) - MOST_LINES:,} more"]
        for number, text in enumerate(shown):
            _show_line(console, "" if number else heading, text, width, is_command=(heading, text) in commands)


def _show_line(console: Console, heading: str, text: str, width: int, *, is_command: bool) -> None:
    """Folded beside its heading; the command of a remedy is not folded, so that it can be copied. The text of an Event
    may begin like a command and is none."""
    indent = " " * (width + 4)
    first = Text(f"  {heading:<{width}}  ", "dim")
    if is_command:
        console.print(first + Text(visible(text)), soft_wrap=True)
        return
    room = max(console.width - len(indent), _LEAST)
    for number, line in enumerate(_folded(visible(text, keeps_blanks=True), room)):
        console.print((first if not number else Text(indent)) + Text(line), soft_wrap=True)


def _folded(text: str, width: int) -> list[str]:
    """At least one line, none with blanks at its end. A word that is too long (the path of a field) stays whole."""
    lead = text[: len(text) - len(text.lstrip())]
    wrapped = textwrap.wrap(text.strip(), width, initial_indent=lead, break_long_words=False, break_on_hyphens=False)
    return wrapped or [""]


def cause_lines(evidence: Evidence) -> list[str]:
    """How many nodes there are, then each cause with the nodes it turned away."""
    if not evidence.nodes:
        return ["there are none"]
    total = f"{evidence.fitting:,} of {evidence.nodes:,} would take it"
    width = len(f"{max((cause.nodes for cause in evidence.causes), default=0):,}")
    lines = [f"{cause.nodes:>{width},}  {cause_words(cause)}" for cause in evidence.causes[:_MOST_CAUSES]]
    more = len(evidence.causes) - _MOST_CAUSES
    return [total, *lines, *([f"and {more} more causes"] if more > 0 else [])]
