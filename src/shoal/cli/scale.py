"""`shoal scale`: which nodes would be provisioned or removed, and the pools that they belong to."""

from __future__ import annotations

import typer

from shoal.cli.lazy_commands import CommandEntry, LazyGroup

_HEADING = "Commands"


class ScaleCommands(LazyGroup):
    entries = (
        CommandEntry(
            "plan",
            "shoal.cli.scale_commands:plan",
            _HEADING,
            "Tell which nodes would be provisioned or removed now, at which price, and why; nothing is changed.",
        ),
        CommandEntry(
            "pools",
            "shoal.cli.scale_commands:pools",
            _HEADING,
            "List node pools with their nodes, price, limits, and why a pool can serve no pod.",
        ),
        CommandEntry(
            "forecast",
            "shoal.cli.scale_forecast:forecast",
            _HEADING,
            "Predict the demand for GPUs of each hour of the week, with its error, and keep room for it.",
        ),
        CommandEntry(
            "mode",
            "shoal.cli.scale_pool_commands:mode",
            _HEADING,
            "Pause node scaling, let it say what it would do, or let it work.",
        ),
        CommandEntry(
            "import",
            "shoal.cli.scale_pool_commands:import_pools",
            _HEADING,
            "Convert node groups of eksctl, gcloud or Cluster Autoscaler to NodePools, as YAML.",
        ),
        CommandEntry(
            "iam",
            "shoal.cli.scale_pool_commands:iam",
            _HEADING,
            "Print the least policy that node scaling needs on AWS, as JSON.",
        ),
    )


app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    cls=ScaleCommands,
)


@app.callback()
def scale() -> None:
    """Tell which nodes pods need, and which nodes none needs, at which price and why."""
