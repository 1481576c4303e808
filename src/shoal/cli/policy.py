"""`shoal policy`: the rules that are checked when pods with GPUs are created."""

from __future__ import annotations

import typer

from shoal.cli.lazy_commands import CommandEntry, LazyGroup

_HEADING = "Commands"


class PolicyCommands(LazyGroup):
    entries = (
        CommandEntry(
            "generate",
            "shoal.cli.policy_commands:generate",
            _HEADING,
            "Print admission policies for an API server: shoal policy generate | kubectl apply -f -.",
        ),
        CommandEntry(
            "preview",
            "shoal.cli.policy_commands:preview",
            _HEADING,
            "Tell which objects of a cluster, or of files, the rules would refuse; nothing is changed.",
        ),
        CommandEntry(
            "rules",
            "shoal.cli.policy_commands:rules",
            _HEADING,
            "List the rules, with who checks them: the API server, or Shoal's webhook.",
        ),
    )


app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    cls=PolicyCommands,
)


@app.callback()
def policy() -> None:
    """Check pods with GPUs when they are created: print the policies, and what they would refuse."""
