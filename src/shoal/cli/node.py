"""`shoal node`: the machines that join the cluster of `shoal up`."""

from __future__ import annotations

import typer

from shoal.cli.lazy_commands import CommandEntry, LazyGroup

_HEADING = "Commands"


class NodeCommands(LazyGroup):
    entries = (
        CommandEntry(
            "token",
            "shoal.cli.node_tokens:token",
            _HEADING,
            "Print the command with which another machine joins the cluster of shoal up.",
        ),
        CommandEntry(
            "tokens",
            "shoal.cli.node_tokens:tokens",
            _HEADING,
            "List the join tokens that have not expired.",
        ),
        CommandEntry(
            "revoke",
            "shoal.cli.node_tokens:revoke",
            _HEADING,
            "Revoke a join token before it expires.",
        ),
        CommandEntry(
            "remove",
            "shoal.cli.node_remove:remove",
            _HEADING,
            "Drain the node of a machine that joined, and remove it from the cluster.",
        ),
    )


app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    cls=NodeCommands,
)


@app.callback()
def node() -> None:
    """The machines that join the cluster of shoal up: tokens, and removal."""
