"""Implements `shoal node remove`: drains a machine that joined the cluster, and refuses it from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.cluster_access import AccessOptions, ended, speak
from shoal.cli.completion_values import nodes
from shoal.cli.exit_codes import FAILED
from shoal.cli.option_groups import with_options
from shoal.units.visible_text import visible

if TYPE_CHECKING:
    from shoal.client.http.access import Access
    from shoal.client.port import Api


@with_options
def remove(
    *,
    node: Annotated[
        str, typer.Argument(metavar="NODE", help="The name of a node.", show_default=False, autocompletion=nodes)
    ],
    access: AccessOptions,
    force: Annotated[bool, typer.Option("--force", help="Also evict pods without a controller.")] = False,
    now: Annotated[
        bool, typer.Option("--now", help="Do not drain it: for a machine that does not come back, or must end at once.")
    ] = False,
    timeout: Annotated[int, typer.Option(min=1, metavar="S", help="Give up draining after that many seconds.")] = 300,
) -> None:
    """Drain the node of a machine that joined, and remove it from the cluster.

    Its certificate is refused from then on. A machine that still runs stops its pods and ends `shoal join`.
    """
    server = access.access_for_change()
    left = [] if now else speak(server, lambda api: _drained(api, node, timeout, force=force))
    for line in left:
        typer.echo(f"shoal: {visible(line)}", err=True)
    if left:
        typer.echo("shoal: the node stays in the cluster, cordoned; --now removes it at once", err=True)
        raise typer.Exit(FAILED)
    _refuse_machine(server, node)
    speak(server, lambda api: _deleted(api, node))
    typer.echo(f"node {node} is removed")


async def _drained(api: Api, node: str, timeout_s: float, *, force: bool) -> list[str]:
    """A line for each pod that is still there when the time is up."""
    import time

    from shoal.cli.node_faults import node_of
    from shoal.client.clock import LoopClock
    from shoal.client.draining import Eviction, cordon, pods_to_evict

    await node_of(api, node)
    await cordon(api, node)
    typer.echo(f"node {node} is cordoned", err=True)
    pods = await pods_to_evict(api, node, force=force)
    eviction = Eviction(api, LoopClock(time.time()), lambda line: typer.echo(visible(line), err=True))
    return await eviction.run([node], pods, timeout_s)


def _refuse_machine(server: Access, node: str) -> None:
    """Raises UserError for a node that is no machine that joined."""
    from shoal.client.http.connection import Connection
    from shoal.client.http.settings import KubeSettings
    from shoal.client.kubelet.node_joining import certificate_path
    from shoal.client.refusals import NotFoundError
    from shoal.units.errors import UserError, excerpt

    async def work() -> None:
        connection = Connection(server, KubeSettings())
        try:
            await connection.ask("DELETE", certificate_path(node))
        except NotFoundError:
            fix = "`kubectl delete node` deletes any other"
            raise UserError(f"node {excerpt(node)} is no machine that joined by `shoal join`", fix=fix) from None
        finally:
            await connection.close()

    ended(server, work)


async def _deleted(api: Api, node: str) -> None:
    from contextlib import suppress

    from shoal.client.kind import NODES
    from shoal.client.refusals import NotFoundError

    with suppress(NotFoundError):
        await api.delete(NODES, "", node)
