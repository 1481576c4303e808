"""Implements `shoal join`: makes this machine a node of the cluster that `shoal up` started on another one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.agent_options import FakeMachine
from shoal.cli.cluster_folder import cluster_folder
from shoal.cli.embedded_options import GpuConfigPath, RuntimeEndpoint, absolute_socket
from shoal.cli.log_options import LoggingOptions
from shoal.cli.option_groups import with_options
from shoal.units.errors import UserError, Where, excerpt

if TYPE_CHECKING:
    from shoal.agent.kubelet.node_identity import JoinedCluster, NodeIdentity
    from shoal.wiring.joining import JoinCommand

_LOG = "shoal.log"


@dataclass(frozen=True, kw_only=True)
class JoinOptions:
    token: Annotated[str, typer.Option("--token", metavar="TOKEN", help="The join token, from `shoal node token`.")] = (
        ""
    )
    ca_hash: Annotated[
        str, typer.Option("--ca-hash", metavar="HASH", help="The hash of the cluster's authority, as in sha256:...")
    ] = ""
    name: Annotated[
        str, typer.Option("--name", metavar="NODE", help="The name of the node; by default that of the machine.")
    ] = ""
    state: Annotated[
        Path | None,
        typer.Option(
            "--state",
            metavar="DIR",
            help="Folder of the node's credentials and pods; by default ~/.local/state/shoal-node.",
        ),
    ] = None
    fake: FakeMachine = ""
    runtime_endpoint: RuntimeEndpoint = ""
    gpu_config: GpuConfigPath = None
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Return once the node is ready.")] = False
    notify: Annotated[int | None, typer.Option("--notify-fd", hidden=True)] = None

    def folder(self) -> Path:
        found = cluster_folder(self.state)
        return found if self.state is not None else found.with_name("shoal-node")

    def to_continue(self) -> list[str]:
        """The arguments of a process that continues as this node."""
        words = ["--state", str(self.folder())]
        words += ["--fake", self.fake] if self.fake else []
        words += ["--gpu-config", str(self.gpu_config.expanduser().absolute())] if self.gpu_config is not None else []
        return words + (["--runtime-endpoint", absolute_socket(self.runtime_endpoint)] if self.runtime_endpoint else [])


@with_options
def join(
    *,
    server: Annotated[
        str, typer.Argument(metavar="HOST:PORT", help="The cluster's address, the first time.", show_default=False)
    ] = "",
    options: JoinOptions,
    logs: LoggingOptions,
) -> None:
    """Make this machine a node of a cluster that shoal up started on another machine.

    `shoal node token` on that machine prints the whole command. Later, `shoal join` alone continues as the same node.
    Pods continue to run when it ends.
    """
    logs.set_up()

    if options.gpu_config is not None:
        from shoal.wiring.gpu_configs import check_gpu_config

        check_gpu_config(options.gpu_config)

    from shoal.agent.kubelet.node_identity import NodeIdentity
    from shoal.wiring.joined_machine import Reports, RunOptions, run_joined

    identity = NodeIdentity(options.folder())
    with identity.hold():
        cluster = identity.cluster()
        if cluster is None:
            cluster = _joined(_command(server, options), identity)
        else:
            cluster = _continued(cluster, server, options, identity)
        if not options.detach:
            run = RunOptions(options.fake, options.runtime_endpoint, options.gpu_config)
            reports = Reports(partial(_ready, options.notify), lambda what: typer.echo(f"shoal: {what}", err=True))
            run_joined(cluster, identity, run, reports)
    if options.detach:
        _detach(cluster, [*options.to_continue(), *logs.arguments()], identity.folder / _LOG)


def _ready(notify: int | None, what: str) -> None:
    if notify is None:
        typer.echo(f"ready: {what}; Ctrl-C ends this, and pods continue.", err=True)
        return
    os.write(notify, b"ready\n")
    os.close(notify)


def _detach(cluster: JoinedCluster, arguments: list[str], log: Path) -> None:
    from shoal.cli.detach import run_detached

    found = run_detached(["join", *arguments], log, f"node {cluster.node} of {cluster.server}")
    ends = f"`kill {found.pid}` ends its process, and pods continue"
    typer.echo(f"node {cluster.node} of {cluster.server} is ready; {ends}; the log is {log}", err=True)


def _joined(command: JoinCommand, identity: NodeIdentity) -> JoinedCluster:
    from shoal.client.refusals import BusyError
    from shoal.wiring.joined_machine import join_cluster

    try:
        found = join_cluster(command, identity)
    except BusyError as error:
        raise UserError(
            f"{command.server} does not answer: {error}", fix="check the address and the firewall"
        ) from None
    typer.echo(f"this machine has joined {found.server} as the node {found.node}", err=True)
    return found


def _command(server: str, options: JoinOptions) -> JoinCommand:
    """Raises UserError for what is missing or wrong."""
    from shoal.agent.kubelet.machine import node_name
    from shoal.api.names import object_name_fault
    from shoal.client.kubelet.node_joining import TOKEN, hash_fault
    from shoal.wiring.joining import JoinCommand

    fix = "`shoal node token` on the machine of the cluster prints the whole command"
    if not (server and options.token and options.ca_hash):
        raise UserError("this machine has joined no cluster: HOST:PORT, --token and --ca-hash are required", fix=fix)
    if not TOKEN.fullmatch(options.token):
        raise UserError("is not a join token", where=Where(path="--token"), fix=fix)
    fault = hash_fault(options.ca_hash)
    if fault:
        raise UserError(f"{excerpt(options.ca_hash)} {fault}", where=Where(path="--ca-hash"), fix=fix)
    name = options.name or node_name()
    fault = object_name_fault(name)
    if fault:
        raise UserError(f"{excerpt(name)} cannot be the name of a node: {fault}", where=Where(path="--name"))
    return JoinCommand(_url(server), options.token, options.ca_hash, name)


def _url(server: str) -> str:
    """`https://HOST:PORT`. Raises UserError."""
    from urllib.parse import urlsplit

    text = server.removeprefix("https://").rstrip("/")
    try:
        parts = urlsplit(f"//{text}")
        is_good = bool(parts.hostname) and parts.port is not None and parts.netloc == text and "@" not in text
    except ValueError:
        is_good = False
    if not is_good or not text.isprintable():
        raise UserError(f"{excerpt(server)} is no address of a server", where=Where(path="HOST:PORT"))
    return f"https://{text}"


def _continued(cluster: JoinedCluster, server: str, options: JoinOptions, identity: NodeIdentity) -> JoinedCluster:
    """The cluster of this machine, perhaps at a new address: it is trusted by its authority and not by its address.
    Raises UserError if the command is to join another cluster, or under another name."""
    address = _url(server) if server else cluster.server
    if (address != cluster.server and options.token) or (options.name and options.name != cluster.node):
        what = f"this machine is the node {cluster.node} of {cluster.server} already"
        fix = f"remove it there first: shoal node remove {cluster.node}; or choose another folder with --state"
        raise UserError(what, where=Where(str(options.folder())), fix=fix)
    return cluster if address == cluster.server else identity.move(address)
