"""`shoal cluster drain NODE`: nothing new comes to the node, and what can go elsewhere leaves it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.cluster_access import AccessOptions, speak
from shoal.cli.completion_values import nodes
from shoal.cli.exit_codes import FAILED
from shoal.units.visible_text import visible

if TYPE_CHECKING:
    from shoal.client.port import Api


def drain(
    node: Annotated[
        str, typer.Argument(metavar="NODE", help="The name of a node.", show_default=False, autocompletion=nodes)
    ],
    *,
    access: AccessOptions,
    force: Annotated[bool, typer.Option("--force", help="Also evict pods without a controller.")] = False,
    timeout: Annotated[int, typer.Option(min=1, metavar="S", help="Give up after that many seconds.")] = 300,
) -> None:
    """Cordon a node and evict its pods, within the limits of their disruption budgets."""
    from shoal.cli.node_faults import check_simulated
    from shoal.client.draining import Eviction, cordon, pods_to_evict

    async def work(api: Api) -> list[str]:
        import time

        from shoal.client.clock import LoopClock

        await check_simulated(api, node, "use `kubectl drain` for real nodes")
        await cordon(api, node)
        typer.echo(f"node {node} is cordoned", err=True)
        pods = await pods_to_evict(api, node, force=force)
        clock = LoopClock(time.time())
        return await Eviction(api, clock, lambda line: typer.echo(visible(line), err=True)).run([node], pods, timeout)

    left = speak(access.access_for_change(), work)
    for line in left:
        typer.echo(f"shoal: {visible(line)}", err=True)
    if left:
        raise typer.Exit(FAILED)
    typer.echo(f"node {node} is drained")
