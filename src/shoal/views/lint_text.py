"""Prints findings: for each object its findings, or one line for each finding."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from rich.console import Console
from rich.text import Text

from shoal.policy.findings import LintFinding
from shoal.units.errors import one_line
from shoal.views.queue_table import KIND, NAME, WORDS, show_table

_INDENT = "  "
_LEAST_WIDTH = 20
_STYLES: Final = {"error": "red", "warning": "yellow", "info": "cyan"}


def show_findings(console: Console, found: Sequence[LintFinding]) -> None:
    """Below each object: id and rule, the field with its line, what is wrong, and the correction."""
    indent = max((len(f"{one.id} {one.rule}") for one in found), default=0) + 2 * len(_INDENT)
    for (file, document, about), group in groupby(found, key=lambda one: (one.file, one.document, one.object)):
        several = any(other.file == file and other.document != document for other in found)
        place = f"{file}: document {document}" if several else file
        console.print(Text(f"{place}: {about}" if file else about, "bold"), soft_wrap=True)
        for one in group:
            lines = Text(_message(one)).wrap(console, max(console.width - indent, _LEAST_WIDTH))
            heads = [f"{_INDENT}{one.id} {one.rule}".ljust(indent), *[" " * indent] * (len(lines) - 1)]
            for head, line in zip(heads, lines, strict=True):
                line.rstrip()
                console.print(Text.assemble((head, _STYLES[one.severity]), line), soft_wrap=True)


def show_wide(console: Console, found: Sequence[LintFinding]) -> None:
    """One row for each finding."""
    headings = ["place", "severity", "id", "rule", "object", "field", "message", "fix"]
    leasts = [NAME, KIND, KIND, KIND, NAME, NAME, WORDS, WORDS]
    rows = [
        (_place(one), one.severity, one.id, one.rule, one.object, one.field, one_line(one.message), one_line(one.fix))
        for one in found
    ]
    show_table(console, headings, leasts, rows)


def show_rules(console: Console, rules: Sequence[tuple[str, ...]], *, is_wide: bool = False) -> None:
    """Ids, severities, names and faults of all rules; what follows from them, and the kinds, only if it is wide."""
    headings, leasts = ["id", "severity", "rule", "fault", "effect", "kinds"], [KIND, KIND, NAME, WORDS, WORDS, WORDS]
    count = len(headings) if is_wide else 4
    show_table(console, headings[:count], leasts[:count], [rule[:count] for rule in rules])


def _place(one: LintFinding) -> str:
    return f"{one.file}:{one.line}:{one.column}" if one.line else one.file


def _message(one: LintFinding) -> str:
    line = f"line {one.line}: " if one.line else ""
    return one_line(f"{line}{one.field}: {one.message}; {one.fix}")
