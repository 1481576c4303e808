"""`shoal completion SHELL`: a script that lets the shell complete commands and options.

The script asks `shoal` itself at every Tab, so it never has to be written again when commands change.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from shoal.cli.completion_variable import VARIABLE


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"


def completion(
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh, fish or powershell.", show_default=False)],
) -> None:
    """Write a completion script to stdout, as in eval "$(shoal completion bash)".

    The script asks shoal at each Tab. For the plugin of kubectl (`kubectl shoal`) put kubectl_complete-shoal, which is
    installed beside shoal, on the PATH.
    """
    from typer._completion_shared import get_completion_script

    sys.stdout.write(get_completion_script(prog_name="shoal", complete_var=VARIABLE, shell=shell.value) + "\n")


def prepare() -> None:
    """Before the command line is read: a shell that asks gets its answer in its own form."""
    from typer._completion_classes import completion_init

    completion_init()
