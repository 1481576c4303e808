"""Prints warnings about objects: for each object its warnings, or one line for each warning."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.console import Console
from rich.text import Text

from shoal.policy.checks import Warned
from shoal.units.errors import one_line
from shoal.views.queue_table import KIND, NAME, WORDS, show_table

_INDENT = "  "
_LEAST_WIDTH = 20


def show_warnings(console: Console, found: Sequence[Warned]) -> None:
    """A table for each object: rules, and messages with field and correction."""
    indent = max((len(one.rule) for one in found), default=0) + 2 * len(_INDENT)
    for (source, about), group in groupby(found, key=lambda one: (one.source, one.object)):
        console.print(Text(f"{source}: {about}" if source else about, "bold"), soft_wrap=True)
        for one in group:
            lines = Text(_message(one)).wrap(console, max(console.width - indent, _LEAST_WIDTH))
            heads = [f"{_INDENT}{one.rule}".ljust(indent), *[" " * indent] * (len(lines) - 1)]
            for head, line in zip(heads, lines, strict=True):
                line.rstrip()
                console.print(Text.assemble((head, "yellow"), line), soft_wrap=True)


def show_wide(console: Console, found: Sequence[Warned]) -> None:
    """One row for each warning."""
    headings = ["file", "object", "rule", "field", "message", "fix"]
    leasts = [NAME, NAME, KIND, NAME, WORDS, WORDS]
    rows = [(one.source, one.object, one.rule, one.field, one_line(one.message), one_line(one.fix)) for one in found]
    show_table(console, headings, leasts, rows)


def show_rules(console: Console, rules: Sequence[tuple[str, str, str]], *, is_wide: bool = False) -> None:
    """Names, faults and kinds of all rules; the kinds only if it is wide."""
    headings, leasts = ["rule", "warns if", "kinds"], [NAME, WORDS, WORDS]
    count = len(headings) if is_wide else 2
    show_table(console, headings[:count], leasts[:count], [rule[:count] for rule in rules])


def _message(one: Warned) -> str:
    return one_line(f"{one.field}: {one.message}; {one.fix}")
