"""`shoal agent`: the commands of the agent that runs on each node with GPUs."""

from __future__ import annotations

import typer

from shoal.cli.lazy_commands import CommandEntry, LazyGroup

_HEADING = "Commands"


class AgentCommands(LazyGroup):
    entries = (
        CommandEntry(
            "run",
            "shoal.cli.agent_run:run",
            _HEADING,
            "Run the agent of this machine: its GPUs for the kubelet, and their health.",
        ),
        CommandEntry(
            "check",
            "shoal.cli.agent_check:check",
            _HEADING,
            "Print the GPUs of this machine, with their readings and faults.",
        ),
        CommandEntry(
            "export",
            "shoal.cli.agent_export:export",
            _HEADING,
            "Serve the metrics of this machine's GPUs for Prometheus, as the DCGM exporter does.",
        ),
        CommandEntry(
            "validate",
            "shoal.cli.agent_validate:validate",
            _HEADING,
            "Test the layers below a GPU container, and name the first one that fails.",
        ),
        CommandEntry(
            "cdi",
            "shoal.cli.agent_cdi:cdi",
            _HEADING,
            "Write the CDI specification of this machine's GPUs and MIG instances.",
        ),
        CommandEntry(
            "mig",
            "shoal.cli.agent_mig:app",
            _HEADING,
            "Plan, apply, check and export the MIG layout of this machine's GPUs.",
        ),
        CommandEntry(
            "labels",
            "shoal.cli.agent_labels:labels",
            _HEADING,
            "Print the labels of this machine's node, or write them.",
        ),
    )


app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    cls=AgentCommands,
)


@app.callback()
def agent() -> None:
    """The agent of a node with GPUs: devices, labels, MIG, metrics and health."""
