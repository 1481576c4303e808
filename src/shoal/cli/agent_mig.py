"""`shoal agent mig`: the MIG layout of this machine's GPUs."""

from __future__ import annotations

import typer

from shoal.cli.lazy_commands import CommandEntry, LazyGroup

_HEADING = "Commands"
_MODULE = "shoal.cli.agent_mig_commands"


class MigCommands(LazyGroup):
    entries = (
        CommandEntry("plan", f"{_MODULE}:plan", _HEADING, "Print the steps to a MIG layout; nothing is changed."),
        CommandEntry("apply", f"{_MODULE}:apply", _HEADING, "Change the GPUs of this machine to a MIG layout."),
        CommandEntry("assert", f"{_MODULE}:assert_layout", _HEADING, "Check whether a MIG layout is applied."),
        CommandEntry("export", f"{_MODULE}:export", _HEADING, "Print the present MIG layout as a file of mig-parted."),
        CommandEntry(
            "run", "shoal.cli.agent_mig_run:run", _HEADING, "Apply the MIG layout that the label of the node names."
        ),
    )


app = typer.Typer(rich_markup_mode=None, add_completion=False, cls=MigCommands)


@app.callback()
def mig() -> None:
    """Plan, apply, check and export the MIG layout of this machine's GPUs, or follow the label of its node."""
