"""`shoal cluster nodes` and `shoal cluster controllers`: parts of the embedded cluster beside any API server."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Annotated

import typer

from shoal.cli.cluster_access import AccessOptions, in_one_line
from shoal.cli.completion_values import fleets
from shoal.cli.embedded_options import (
    DEFAULT_NODES,
    USUAL_SOFTWARE,
    EmbeddedOptions,
    GpuSoftwareOption,
    MetricsPort,
    Scheduler,
    Speed,
    Stages,
    WithContention,
    fleet_of,
)
from shoal.cli.foreground import ready_reporter
from shoal.cli.option_groups import with_options
from shoal.units.errors import UserError, Where, excerpt

_NOTIFY = typer.Option("--notify-fd", hidden=True)
_Clock = Annotated[str, typer.Option("--clock", hidden=True)]
KubeletPort = Annotated[
    int,
    typer.Option(min=0, max=65535, metavar="PORT", help="The port of the kubelets' servers; 0 takes any free port."),
]
KubeletAddress = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS",
        help="An address of this machine that the API server reaches: all nodes say that it is theirs, and logs and "
        "commands find them. By default the kubelets listen on loopback, for the embedded server alone.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class NodesOptions:
    nodes: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FLEET",
            help="The nodes: 8xp5.48xlarge,2xdgx-a100-80[spot] or FILE.yaml; may be given several times. By default "
            f"{DEFAULT_NODES}.",
            autocompletion=fleets,
        ),
    ] = None
    speed: Speed = 1.0
    stages: Stages = None
    gpu_software: GpuSoftwareOption = USUAL_SOFTWARE
    metrics_port: MetricsPort = None
    kubelet_port: KubeletPort = 0
    kubelet_address: KubeletAddress = ""
    contention: WithContention = True
    clock: _Clock = ""
    notify: Annotated[int | None, _NOTIFY] = None


@with_options
def nodes(options: NodesOptions, cluster_access: AccessOptions) -> None:
    """Join simulated GPU nodes to a cluster, until Ctrl-C: kubelets that run pods in simulated time."""
    from shoal.wiring.join import run_nodes

    cluster = EmbeddedOptions(
        nodes=fleet_of(options.nodes),
        has_controllers=False,
        speed=options.speed,
        stages=tuple(options.stages or ()),
        gpu_software=options.gpu_software,
        metrics_port=options.metrics_port,
        kubelet_port=options.kubelet_port,
        kubelet_address=_checked(options.kubelet_address),
        has_contention=options.contention,
        clock=options.clock,
    ).to_cluster_options()
    access = cluster_access.access_for_change(is_child=options.notify is not None)

    def said(metrics: str) -> str:
        count = len(cluster.machines)
        return f"{count} nodes at {access.server}; metrics at {metrics}/nodes/NAME/metrics; Ctrl-C ends this."

    with in_one_line(access):
        run_nodes(access, cluster, ready_reporter(said, options.notify))


def _checked(address: str) -> str:
    """Checks the address: nodes have addresses and no names, and other machines must be able to reach it."""
    try:
        is_good = not address or not ip_address(address).is_unspecified
    except ValueError:
        is_good = False
    if not is_good:
        where, fix = Where(path="--kubelet-address"), "as in 192.168.1.20"
        raise UserError(f"{excerpt(address)} is not an IP address", where=where, fix=fix)
    return address


@with_options
def controllers(
    cluster_access: AccessOptions,
    scheduler: Annotated[
        Scheduler, typer.Option(help="The scheduler: simple runs here, shoal expects `shoal run` in another process.")
    ] = Scheduler.SIMPLE,
    speed: Speed = 1.0,
    clock: _Clock = "",
    notify: Annotated[int | None, _NOTIFY] = None,
) -> None:
    """Run the controllers of `shoal up` against a cluster that has none, until Ctrl-C."""
    from shoal.wiring.join import run_controllers

    access = cluster_access.access_for_change(is_child=notify is not None)
    options = EmbeddedOptions(nodes="none", scheduler=scheduler, speed=speed, clock=clock).to_cluster_options()
    with in_one_line(access):
        run_controllers(
            access, options, ready_reporter(lambda what: f"{what} at {access.server}; Ctrl-C ends this.", notify)
        )
