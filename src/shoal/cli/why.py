"""`shoal why`: the story of one pod, gang or workload, on one screen."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli.options import Manifests, Policy, SchedulerConfigFile, Seed

_MOST_S = 2.0
"""For finding what would help a workload."""


def why(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A pod, gang or workload, as namespace/name or by name alone.")
    ],
    filename: Manifests,
    policy: Policy = "Shoal",
    scheduler_config: SchedulerConfigFile = None,
    seed: Seed = 42,
) -> None:
    """Tell why a pod, gang or workload waits, or where it went: what it asks, its turn, the nodes, what would help."""
    from rich.console import Console

    from shoal.cli.manifests import load, rounds_of
    from shoal.cli.patience import Patience
    from shoal.sim.story import tell
    from shoal.views.story import show_story

    loaded = load(filename, policy, scheduler_config)
    story = tell(rounds_of(loaded, seed), loaded.world.gated, name, Patience(_MOST_S))
    show_story(Console(highlight=False), story)
