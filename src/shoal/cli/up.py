"""`shoal up`: start the embedded cluster, in the foreground or on its own: API server, controllers, simulated nodes.

Standard output has exactly one line, `export KUBECONFIG=...`, printed when the server answers; so
`eval "$(shoal up --detach)"` is all a shell needs. Everything else goes to standard error.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from shoal.cli.cluster_folder import StateFolder, cluster_folder, history_folder
from shoal.cli.completion_values import fleets
from shoal.cli.embedded_options import (
    DEFAULT_NODES,
    NONE,
    USUAL_SCHEDULER,
    USUAL_SOFTWARE,
    CloudOption,
    EmbeddedOptions,
    GpuConfigPath,
    GpuSoftwareOption,
    MetricsPort,
    RuntimeEndpoint,
    SchedulerOption,
    Speed,
    Stages,
    TriggerNetworks,
    WithContention,
    fleet_of,
)
from shoal.cli.foreground import export_line, log_into, run_in, wants_dashboard
from shoal.cli.history_use import HistoryUse
from shoal.cli.log_options import LoggingOptions
from shoal.cli.option_groups import with_options

if TYPE_CHECKING:
    import socket

    from shoal.embedded.apiserver.settings import Settings

_PORT = 6443
_LOOPBACK = "127.0.0.1"
_SNAPSHOT = ("reproduced from ", "added because ", "not reproduced: ", "the objects of ")
"""How lines about a snapshot begin."""
_OF_DEMO = frozenset({"demo", "port", "speed", "dashboard", "web", "web_port", "log_format", "log_level"})


class KubeVersion(StrEnum):
    """What `--kube-version` may be; settings.KUBE_VERSIONS is held against this by a test."""

    OLDEST = "1.34"
    OLDER = "1.35"
    NEWEST = "1.36"


class Authorization(StrEnum):
    ALWAYS_ALLOW = "always-allow"
    RBAC = "rbac"


class RuleModeName(StrEnum):
    OFF = "off"
    WARN = "warn"
    ENFORCE = "enforce"


@dataclass(frozen=True, kw_only=True)
class UpOptions:
    state: StateFolder = None
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes any free port.")] = _PORT
    host: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Listen on this address, so that other machines can join."),
    ] = None
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Return once the cluster is ready.")] = False
    memory: Annotated[
        bool, typer.Option("--memory", help="Keep objects in memory: they are lost when the server ends.")
    ] = False
    kube_version: Annotated[
        KubeVersion, typer.Option(help="The Kubernetes version whose schemas and `/version` are served.")
    ] = KubeVersion.NEWEST
    authorization: Annotated[
        Authorization | None,
        typer.Option(
            help="Whether RBAC is enforced for users other than the administrator; by default only with --host.",
        ),
    ] = None
    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Merge the context `shoal` into this file.")
    ] = None
    history_events: Annotated[
        int, typer.Option(min=1, metavar="N", help="The number of changes kept for resuming watches, at most.")
    ] = 100_000
    history_seconds: Annotated[
        int, typer.Option(min=1, metavar="S", help="The time that changes are kept, in seconds.")
    ] = 300
    accept_data_loss: Annotated[
        bool, typer.Option("--accept-data-loss", help="Start although the state is damaged or has lost writes.")
    ] = False
    nodes: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FLEET",
            help="Simulated nodes: 8xp5.48xlarge,2xdgx-a100-80[spot], FILE.yaml, or none; may be given several times. "
            f"By default {DEFAULT_NODES}.",
            autocompletion=fleets,
        ),
    ] = None
    snapshot: Annotated[
        Path | None,
        typer.Option(
            "--from",
            "-f",
            metavar="FILE",
            help="Start with the nodes and objects of this snapshot: of shoal snapshot, or kubectl get -A -o json.",
        ),
    ] = None
    this_machine: Annotated[
        bool, typer.Option("--this-machine", help="Make this machine a node that runs real pods.")
    ] = False
    runtime_endpoint: RuntimeEndpoint = ""
    gpu_config: GpuConfigPath = None
    controllers: Annotated[
        bool, typer.Option("--controllers/--no-controllers", help="Run the controllers that make pods of workloads.")
    ] = True
    scheduler: SchedulerOption = USUAL_SCHEDULER
    speed: Speed = 1.0
    stages: Stages = None
    gpu_software: GpuSoftwareOption = USUAL_SOFTWARE
    cloud: CloudOption = ""
    metrics_port: MetricsPort = None
    contention: WithContention = True
    foreign: Annotated[
        bool,
        typer.Option(
            "--foreign-kinds/--no-foreign-kinds",
            help="Install the kinds of other projects, such as Kueue's and Kubeflow's.",
        ),
    ] = True
    admission_rules: Annotated[
        RuleModeName | None,
        typer.Option("--admission-rules", help="Check pods by the admission rules when they are created."),
    ] = None
    trigger_network: TriggerNetworks = None
    processes: Annotated[
        bool, typer.Option("--processes", help="Run controllers and nodes in processes of their own.")
    ] = False
    demo: Annotated[
        bool, typer.Option("--demo", help="Show a fleet with the work of three teams; nothing is stored.")
    ] = False
    dashboard: Annotated[
        bool | None, typer.Option("--dashboard/--no-dashboard", help="Draw the cluster; by default on a terminal.")
    ] = None
    web: Annotated[bool, typer.Option("--web/--no-web", help="Serve the pages of shoal web on 127.0.0.1.")] = True
    web_port: Annotated[
        int | None,
        typer.Option(
            "--web-port",
            metavar="N",
            min=0,
            max=65535,
            help="The port of the pages; by default 8090, or a free one where that is in use. 0 serves none.",
        ),
    ] = None
    notify: Annotated[int | None, typer.Option("--notify-fd", hidden=True)] = None

    def embedded(self) -> EmbeddedOptions:
        return EmbeddedOptions(
            nodes=fleet_of(self.nodes),
            has_controllers=self.controllers,
            scheduler=self.scheduler,
            speed=self.speed,
            stages=tuple(self.stages or ()),
            gpu_software=self.gpu_software,
            cloud=self.cloud,
            metrics_port=self.metrics_port,
            has_contention=self.contention,
            has_foreign=self.foreign,
            trigger_networks=tuple(self.trigger_network or ()),
            is_split=self.processes,
            is_this_machine=self.this_machine,
            runtime_endpoint=self.runtime_endpoint,
            gpu_config=self.gpu_config,
            admission_rules=None if self.admission_rules is None else self.admission_rules.value,
            snapshot=self.snapshot,
        )

    def settings(self, folder: Path) -> Settings:
        from shoal.embedded.apiserver.security.state_folder import KUBECONFIG
        from shoal.embedded.apiserver.settings import Settings

        host = _LOOPBACK if self.host is None else self.host
        return Settings(
            state_dir=None if self.memory else folder,
            kubeconfig=(self.kubeconfig.expanduser().absolute() if self.kubeconfig else folder / KUBECONFIG),
            host=host,
            is_host_chosen=self.host is not None,
            port=self.port,
            kube_version=self.kube_version.value,
            authorization=self._authorization(folder).value,
            history_events=self.history_events,
            history_s=self.history_seconds,
            accepts_loss=self.accept_data_loss,
        )

    def _authorization(self, folder: Path) -> Authorization:
        """Other machines must not get all permissions, so with them RBAC is enforced."""
        from shoal.embedded.apiserver.security.joined_nodes import has_joined_nodes

        has_machines = not self.memory and has_joined_nodes(folder / "keys")
        if self.authorization is Authorization.ALWAYS_ALLOW and has_machines:
            from shoal.units.errors import UserError, Where

            what = "other machines have joined this cluster, and they would get all permissions"
            raise UserError(what, where=Where(path="--authorization"), fix="leave it out, or use rbac")
        if self.authorization is not None:
            return self.authorization
        return Authorization.RBAC if has_machines or self.host is not None else Authorization.ALWAYS_ALLOW


@with_options
def up(context: typer.Context, options: UpOptions, history_use: HistoryUse, logs: LoggingOptions) -> None:
    """Start a Kubernetes cluster with GPUs on this machine, with nothing to install."""
    folder = cluster_folder(options.state)
    if options.demo:
        from shoal.cli.up_demo import run_demo

        _check_demo(context)
        port = options.port if options.port != _PORT else 0
        run_demo(port, options.speed, logs, dashboard=options.dashboard, pages=_pages(options))
        return
    if history_use.alerts_to is None:
        # A cluster on this machine has its alerts as Events, since it has no Prometheus.
        history_use = dataclasses.replace(history_use, alerts_to=["events"])
    embedded = msgspec.structs.replace(_without_simulated_nodes(context, options.embedded()), history_use=history_use)
    settings = options.settings(folder)
    cluster = embedded.to_cluster_options(settings.kubeconfig, folder)
    _check_ports(folder, settings.host, options, history_use.cost_port)
    from shoal.cli.web_beside import PagesBeside, address_of, port_of
    from shoal.embedded.apiserver.security.state_folder import is_claimed

    # A cluster that runs in the folder is the more helpful complaint.
    bound = None if options.notify is None and is_claimed(folder) else _pages(options)
    pages = "" if bound is None else address_of(bound)
    if options.detach:
        served = ["--no-web"] if bound is None else ["--web-port", str(port_of(bound))]
        if bound is not None:
            bound.close()
        _start_detached(folder, settings, [*embedded.arguments(), *served, *logs.arguments()], pages)
        return
    logs.check()

    from shoal.cli.progress import step
    from shoal.wiring.up import up as serve

    show = None
    if options.notify is None and wants_dashboard(options.dashboard):
        from shoal.cli.dashboard_runs import dashboard_beside_server

        show = dashboard_beside_server(settings.kubeconfig, pages)
        log_into(folder, logs)
    else:
        logs.set_up()
    if bound is not None:
        history = history_folder(folder) if embedded.has_shoal else None
        is_usual = folder == cluster_folder(None)
        beside = PagesBeside(
            settings.kubeconfig,
            history,
            None if history_use.prices is None else history_use.prices.expanduser().absolute(),
            evaluates_alerts=history is not None and history_use.alerts_to != ["none"],
            is_alone=cluster.is_alone,
            is_usual=is_usual,
        )
        show = beside.show(bound, show)

    def serve_cluster(settings: Settings, ready: Callable[[str], None]) -> None:
        serve(
            settings, cluster, lambda url: _say_ready(ready, url, pages if options.notify is None else ""), show, step
        )

    run_in(folder, settings, serve_cluster, options.notify)


def _without_simulated_nodes(context: typer.Context, embedded: EmbeddedOptions) -> EmbeddedOptions:
    """With this machine as a node, or nodes of a snapshot, there are no others, unless the command line has them."""
    source = context.get_parameter_source("nodes")
    if not (embedded.is_this_machine or embedded.snapshot) or (source is not None and source.name == "COMMANDLINE"):
        return embedded
    return msgspec.structs.replace(embedded, nodes=NONE)


def _check_ports(folder: Path, host: str, options: UpOptions, cost_port: int | None) -> None:
    """Raises UserError for a port in use, before anything is written or started. A cluster that runs in the folder is
    the more helpful complaint, which the claim of the folder makes."""
    from shoal.embedded.apiserver.security.state_folder import is_claimed
    from shoal.embedded.apiserver.server.bound_socket import check_port

    if options.notify is None and not is_claimed(folder):
        check_port(host, options.port, "--port")
        if options.metrics_port:
            check_port(_LOOPBACK, options.metrics_port, "--metrics-port")
        if cost_port:
            check_port(_LOOPBACK, cost_port, "--cost-port")


def _say_ready(ready: Callable[[str], None], url: str, pages: str) -> None:
    from shoal.cli.progress import step

    ready(url)
    if pages:
        step(f"pages: {pages}")


def _pages(options: UpOptions) -> socket.socket | None:
    """The socket of the web dashboard; None without one. Raises UserError for a port in use."""
    from shoal.cli.web_beside import web_socket

    return web_socket(options.web_port) if options.web and options.web_port != 0 else None


def _start_detached(folder: Path, settings: Settings, arguments: list[str], pages: str) -> None:
    from shoal.cli.detach import start_detached
    from shoal.cli.progress import step
    from shoal.embedded.apiserver.security.state_folder import running

    line = export_line(start_detached(folder, settings, arguments, says=_SNAPSHOT))
    found = running(folder)
    step(f"the cluster is ready at {found.url if found else settings.host}; `shoal down` ends it")
    if pages:
        step(f"pages: {pages}")
    typer.echo(line)


def _check_demo(context: typer.Context) -> None:
    """Raises UserError for every other option of the command line: the demonstration sets them itself."""
    from shoal.units.errors import UserError

    for name in context.params:
        source = context.get_parameter_source(name)
        if name not in _OF_DEMO and source is not None and source.name == "COMMANDLINE":
            option = "--" + name.replace("_", "-")
            fix = "--port, --speed, --dashboard and --web-port go with it; for all others leave out --demo"
            raise UserError(f"{option} does not go with --demo", fix=fix)
