"""What a shell is offered at the end of a line, asked without a process."""

from __future__ import annotations

import typer
from typer._completion_classes import BashComplete

from shoal.cli.completion_variable import VARIABLE
from shoal.cli.main import app


def offered(*before: str, at: str) -> list[str]:
    """`at`: what has been typed of the last word."""
    shell = BashComplete(typer.main.get_command(app), {}, "shoal", VARIABLE)
    return [each.value for each in shell.get_completions(list(before), at)]
