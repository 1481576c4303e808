"""`shoal completion bash|zsh|fish`: a script that lets the shell complete commands and options.

The script asks `shoal` itself at every Tab, so it never has to be written again when commands change.
"""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from typing import Annotated

import typer

VARIABLE = "_SHOAL_COMPLETE"


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.", show_default=False)],
) -> None:
    """Write a completion script to stdout: eval "$(shoal completion bash)", or shoal completion fish | source."""
    from typer._completion_shared import get_completion_script

    sys.stdout.write(get_completion_script(prog_name="shoal", complete_var=VARIABLE, shell=shell.value) + "\n")


def prepare() -> None:
    """Before the command line is read: a shell that asks gets its answer in its own form."""
    if VARIABLE in os.environ:
        from typer._completion_classes import completion_init

        completion_init()
