"""Prints a diagnosis: each cause with its evidence and fix, then what was ruled out, then what could not be checked."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from shoal.policy.diagnosis.verdicts import DiagnosisResult
from shoal.units.errors import one_line

_LEAST_WIDTH = 30
_MOST_LINES = 12
"""Of what was ruled out, and of what was not checked."""


def show_diagnosis(console: Console, result: DiagnosisResult) -> None:
    for number, cause in enumerate(result.causes, 1):
        _line(console, "", f"{number}. {cause.subject}: {cause.what} ({cause.id})", "bold red")
        for text in cause.evidence:
            _line(console, "   evidence: ", text)
        _line(console, "   fix: ", cause.fix)
        for command in cause.commands:
            # A command is copied: it must stay one line.
            console.print(Text(f"   $ {one_line(command)}", "cyan"), soft_wrap=True)
    if not result.causes:
        _line(console, "", f"{result.subject}: no known cause was found", "bold")
    _list(console, "Ruled out", [f"{each.subject}: {each.what}" for each in result.ruled_out])
    _list(console, "Not checked", [f"{each.subject}: {each.check}: {each.why}" for each in result.not_run])


def _list(console: Console, title: str, lines: Sequence[str]) -> None:
    if not lines:
        return
    console.print(Text(f"{title}:", "bold"))
    for text in lines[:_MOST_LINES]:
        _line(console, "   - ", text)
    if len(lines) > _MOST_LINES:
        console.print(f"   and {len(lines) - _MOST_LINES:,} more; -o json lists all", markup=False)


def _line(console: Console, head: str, text: str, style: str = "") -> None:
    width = max(console.width - len(head), _LEAST_WIDTH)
    for at, part in enumerate(Text(one_line(text), style).wrap(console, width)):
        part.rstrip()
        console.print(Text.assemble(head if at == 0 else " " * len(head), part), soft_wrap=True)
