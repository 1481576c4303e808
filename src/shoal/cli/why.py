"""`shoal why`: the story of one pod or gang, on one screen."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli.options import Manifests, Policy, SchedulerConfigFile, Seed


def why(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A pod or gang, as namespace/name or by name alone.")],
    filename: Manifests,
    policy: Policy = "Shoal",
    scheduler_config: SchedulerConfigFile = None,
    seed: Seed = 42,
) -> None:
    """Tell why a pod or gang waits, or where it went: what it asks, its turn, the nodes, what would help."""
    from rich.console import Console

    from shoal.cli.manifests import load
    from shoal.sim.rounds import Rounds
    from shoal.sim.story import tell
    from shoal.views.story import show_story

    loaded = load(filename, policy, scheduler_config)
    rounds = Rounds(loaded.intake, loaded.placement, seed=seed, now_s=loaded.now_s)
    show_story(Console(highlight=False), tell(rounds, loaded.world.gated, name))
