"""Faults on demand: nodes and GPUs that fail, servers that answer late.

Faults of nodes are annotations, so that they reach simulated kubelets on any server, and last until they are healed,
also across restarts. Faults of the server itself are requested from the embedded server; no other server has them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.cluster_access import AccessOptions, ended, speak
from shoal.cli.cluster_drain import drain
from shoal.cli.command_help import HelpCommand
from shoal.cli.completion_values import nodes
from shoal.cli.option_groups import with_options

if TYPE_CHECKING:
    from shoal.client.port import Api

Node = Annotated[
    str, typer.Argument(metavar="NODE", help="The name of a node.", show_default=False, autocompletion=nodes)
]
Gpu = Annotated[int, typer.Argument(metavar="GPU", min=0, help="Its index on the node.", show_default=False)]
Component = Annotated[
    str, typer.Argument(metavar="COMPONENT", help="Such as driver, toolkit or device-plugin.", show_default=False)
]
_LONGEST_MS, _LONGEST_S = 60_000, 86_400


def add_faults(app: typer.Typer) -> None:
    """The commands of this file, in the order that help shows them."""
    for name, command in (
        ("fail", fail),
        ("partition", partition),
        ("reboot", reboot),
        ("spot-interrupt", spot_interrupt),
        ("gpu-fail", gpu_fail),
        ("fail-component", fail_component),
        ("heal", heal),
        ("drain", drain),
        ("slow-api", slow_api),
        ("expire-watches", expire_watches),
    ):
        app.command(name, cls=HelpCommand)(with_options(command))


def fail(node: Node, access: AccessOptions) -> None:
    """Stop a node dead: its kubelet and everything on it, until it is healed."""
    _break(node, "fail", access)
    typer.echo(f"node {node} has failed; `shoal cluster heal {node}` brings it back")


def partition(node: Node, access: AccessOptions) -> None:
    """Cut a node off from the API server; what runs on it goes on."""
    _break(node, "partition", access)
    typer.echo(f"node {node} is cut off; `shoal cluster heal {node}` connects it again")


def reboot(node: Node, access: AccessOptions) -> None:
    """Restart a node: what ran on it has ended, and it comes back by itself."""
    _break(node, "reboot", access)
    typer.echo(f"node {node} reboots")


def spot_interrupt(node: Node, access: AccessOptions) -> None:
    """Take a node back as clouds take back spot machines: a notice first, then the end."""
    _break(node, "spot-interrupt", access)
    typer.echo(
        f"node {node} has its notice: after two minutes its pods are ended and the Node is deleted, until its "
        "machines are started anew"
    )


def gpu_fail(
    node: Node,
    gpu: Gpu,
    *,
    xid: Annotated[int, typer.Option(min=1, max=9999, help="The error code that the driver reports.")] = 79,
    access: AccessOptions,
) -> None:
    """Break one GPU of a node, by the driver's error code (79: it has fallen off the bus)."""
    from shoal.cli.node_faults import break_gpu

    async def work(api: Api) -> None:
        await break_gpu(api, node, gpu, xid)

    speak(access.access_for_change(), work)
    typer.echo(f"GPU {gpu} of node {node} reports XID {xid}; `shoal cluster heal {node} --gpu {gpu}` repairs it")


class ComponentFaultKind(StrEnum):
    ERROR = "error"
    IMAGE_PULL = "image-pull"


def fail_component(
    node: Node,
    component: Component,
    *,
    kind: Annotated[
        ComponentFaultKind, typer.Option(help="Its program fails, or its image cannot be pulled.")
    ] = ComponentFaultKind.ERROR,
    access: AccessOptions,
) -> None:
    """Break a component of the GPU operator on one node, such as a driver that fails to compile."""
    from shoal.cli.node_faults import break_component

    async def work(api: Api) -> None:
        await break_component(api, node, component, kind.value)

    speak(access.access_for_change(), work)
    what = "fails" if kind is ComponentFaultKind.ERROR else "cannot pull its image"
    typer.echo(f"component {component} of node {node} {what}; `shoal cluster heal {node}` repairs it")


def heal(
    node: Node,
    *,
    gpu: Annotated[int | None, typer.Option(min=0, metavar="GPU", help="Only this GPU.", show_default=False)] = None,
    access: AccessOptions,
) -> None:
    """End the faults of a node, its GPUs and its components, or of one GPU."""
    from shoal.cli.node_faults import heal_gpu, heal_node

    async def work(api: Api) -> bool:
        return await (heal_node(api, node) if gpu is None else heal_gpu(api, node, gpu))

    target = f"node {node}" if gpu is None else f"GPU {gpu} of node {node}"
    was_broken = speak(access.access_for_change(), work)
    typer.echo(f"{target} is healed" if was_broken else f"{target} had no fault")


def slow_api(
    *,
    delay_ms: Annotated[
        int, typer.Option(min=0, max=_LONGEST_MS, metavar="MS", help="Delay of each answer in milliseconds.")
    ] = 200,
    jitter_ms: Annotated[
        int, typer.Option(min=0, max=_LONGEST_MS, metavar="MS", help="Random addition to the delay, at most.")
    ] = 0,
    seconds: Annotated[
        int, typer.Option(min=1, max=_LONGEST_S, metavar="S", help="Duration of the fault in seconds.")
    ] = 60,
    access: AccessOptions,
) -> None:
    """Make the embedded API server answer late for a while; --delay-ms 0 ends that."""
    _ask_server("slow-api", {"delay_ms": delay_ms, "jitter_ms": jitter_ms, "seconds": seconds}, access)
    more = f" to {delay_ms + jitter_ms}" if jitter_ms else ""
    typer.echo(
        f"answers come {delay_ms}{more} ms later for {seconds} s" if delay_ms + jitter_ms else "answers come at once"
    )


def expire_watches(access: AccessOptions) -> None:
    """Make the embedded API server forget its history: every watch ends, and its client has to list again."""
    _ask_server("expire-watches", {}, access)
    typer.echo("every watch has expired")


def _break(node: str, kind: str, access: AccessOptions) -> None:
    from shoal.cli.node_faults import break_node

    async def work(api: Api) -> None:
        await break_node(api, node, kind)

    speak(access.access_for_change(), work)


def _ask_server(fault: str, body: dict[str, int], access: AccessOptions) -> None:
    from shoal.client.http.connection import Connection
    from shoal.client.http.settings import KubeSettings
    from shoal.client.refusals import NotFoundError
    from shoal.units.errors import UserError, Where

    server = access.access_for_change()

    async def work() -> None:
        connection = Connection(server, KubeSettings())
        try:
            await connection.ask("POST", f"/shoal/faults/{fault}", body=body)
        except NotFoundError:
            what = f"{server.server} is not an embedded cluster; only one of `shoal up` can have this fault"
            raise UserError(what, where=Where(server.where)) from None
        finally:
            await connection.close()

    ended(server, work)
