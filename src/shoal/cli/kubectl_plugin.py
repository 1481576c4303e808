"""The entry point of `kubectl_complete-shoal`, which kubectl calls to complete the words behind `kubectl shoal`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

_NO_FILES = ":4"
"""To kubectl: do not offer names of files."""


def complete(words: Sequence[str] | None = None) -> int:
    """Prints what may stand for the last of the words, each on a line, then the directive."""
    import typer
    from typer._completion_classes import BashComplete

    from shoal.cli.completion_variable import VARIABLE
    from shoal.cli.main import app

    given = list(sys.argv[1:] if words is None else words) or [""]
    shell = BashComplete(typer.main.get_command(app), {}, "shoal", VARIABLE)
    found = shell.get_completions(given[:-1], given[-1])
    sys.stdout.write("".join(f"{each.value}\n" for each in found) + _NO_FILES + "\n")
    return 0
