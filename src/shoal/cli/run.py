"""Implements `shoal run`: schedules pods and admits jobs on a Kubernetes cluster, until Ctrl-C."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.cluster_access import AccessOptions, in_one_line
from shoal.cli.foreground import ready_reporter
from shoal.cli.history_use import HistoryUse
from shoal.cli.known_names import check_known
from shoal.cli.log_options import LoggingOptions
from shoal.cli.option_groups import with_options
from shoal.cli.prometheus_options import PrometheusOptions
from shoal.cli.run_pages import RunPagesOptions
from shoal.units.errors import UserError, Where
from shoal.units.visible_text import visible

if TYPE_CHECKING:
    from shoal.api.run_configuration import RunConfiguration
    from shoal.cli.run_files import RunFiles
    from shoal.client.http.access import Access
    from shoal.cloud.cluster_api_settings import ClusterApiSettings
    from shoal.cloud.external_grpc_settings import ExternalGrpcSettings
    from shoal.engine.profile import Builder
    from shoal.operator.components.facts import OperatorSettings
    from shoal.wiring.run_choice import NamedProfile, RunChoice

_DONE_LIVE = ("VolumeRestrictions", "VolumeBinding", "VolumeZone", "DynamicResources", "DefaultPreemption")
"""What a set of manifests does not have, and a cluster has."""
_USUAL = ("shoal",)
_CONTROLLERS = ("scheduler", "queues", "jobs", "pods", "gatekeeper", "advisor", "tenants", "volcano", "kai")
_NAMED = ("operator", "driver-upgrades", "pod-autoscaling", "node-scaling", "placeholder-pods", "history")
"""Parts that run only if they are named."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    controllers: Annotated[
        str,
        typer.Option(
            metavar="NAMES", help=f"Parts to run, separated by commas: {', '.join((*_CONTROLLERS, *_NAMED))}."
        ),
    ] = ""
    config: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="A ShoalConfiguration, Kueue's Configuration, a KubeSchedulerConfiguration; repeatable.",
        ),
    ] = None
    scheduler_name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Schedule pods with this schedulerName; may be given several times. By default shoal."
        ),
    ] = None
    leader_elect: Annotated[
        bool | None,
        typer.Option("--leader-elect/--no-leader-elect", help="Only one of several replicas is active. On by default."),
    ] = None
    metrics_address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Address of metrics and health checks, by default 127.0.0.1:8080; or none."
        ),
    ] = None
    kube_state_metrics: Annotated[
        bool,
        typer.Option(
            "--kube-state-metrics",
            help="Serve the series of kube-state-metrics about pods, nodes and namespaces, unless it runs itself.",
        ),
    ] = False
    history: Annotated[
        Path | None,
        typer.Option(
            "--history", metavar="DIR", help="Record which pod held which device in this folder, for shoal cost."
        ),
    ] = None
    speed: Annotated[float, typer.Option("--speed", hidden=True)] = 1.0
    clock: Annotated[str, typer.Option("--clock", hidden=True)] = ""
    child: Annotated[bool, typer.Option("--child", hidden=True)] = False
    notify: Annotated[int | None, typer.Option("--notify-fd", hidden=True)] = None


@dataclass(frozen=True, kw_only=True)
class OperatorOptions:
    """Of the part `operator`."""

    operator_namespace: Annotated[
        str,
        typer.Option(
            "--operator-namespace",
            metavar="NAME",
            envvar="SHOAL_NAMESPACE",
            help="Where the GPU operator creates the components.",
        ),
    ] = "shoal-system"
    operator_image: Annotated[
        str,
        typer.Option(
            "--operator-image",
            metavar="IMAGE",
            envvar="SHOAL_IMAGE",
            help="Shoal's image, for components that need no image of NVIDIA.",
        ),
    ] = "shoal:latest"
    operator_pull_secret: Annotated[
        list[str] | None,
        typer.Option(
            "--operator-pull-secret",
            metavar="NAME",
            envvar="SHOAL_PULL_SECRETS",
            help="A Secret to pull Shoal's image; repeatable.",
        ),
    ] = None
    node_discovery: Annotated[
        bool,
        typer.Option(
            "--node-discovery/--no-node-discovery",
            envvar="SHOAL_NODE_DISCOVERY",
            help="Whether the GPU operator finds the nodes with GPUs itself. Off where node feature discovery runs.",
        ),
    ] = True

    def settings(self) -> OperatorSettings:
        from shoal.operator.components.facts import OperatorSettings

        return OperatorSettings(
            namespace=self.operator_namespace,
            image=self.operator_image,
            image_pull_secrets=tuple(self.operator_pull_secret or ()),
            has_discovery=self.node_discovery,
        )


class CloudName(StrEnum):
    AWS = "aws"
    CLUSTER_API = "cluster-api"
    EXTERNAL_GRPC = "external-grpc"


@dataclass(frozen=True, kw_only=True)
class CloudOptions:
    """Of the part `node-scaling`."""

    cloud: Annotated[CloudName | None, typer.Option(help="The cloud in which node-scaling provisions nodes.")] = None
    cloud_cluster: Annotated[
        str,
        typer.Option(
            "--cloud-cluster",
            metavar="NAME",
            help="The name of the cluster in the cloud: a tag of its instances, or NAMESPACE/NAME of a Cluster.",
        ),
    ] = ""
    cloud_region: Annotated[
        str, typer.Option("--cloud-region", metavar="REGION", help="The region; by default that of the AWS profile.")
    ] = ""
    cloud_interruption_queue: Annotated[
        str,
        typer.Option(
            "--cloud-interruption-queue",
            metavar="NAME",
            help="The SQS queue in which EventBridge puts notices before instances are taken back.",
        ),
    ] = ""
    cloud_kubeconfig: Annotated[
        Path | None,
        typer.Option(
            "--cloud-kubeconfig",
            metavar="FILE",
            help="The management cluster of Cluster API; by default the cluster itself.",
        ),
    ] = None

    cloud_config: Annotated[
        Path | None,
        typer.Option(
            "--cloud-config",
            metavar="FILE",
            help="Address and certificates of an external gRPC provider, as for Cluster Autoscaler.",
        ),
    ] = None

    def added_to(self, choice: RunChoice) -> RunChoice:
        """Raises UserError if the part has no cloud, or the cloud is incomplete; before anything starts."""
        from msgspec.structs import replace

        if self.cloud is None:
            if "node-scaling" in choice.own.controllers:
                fix = "aws, cluster-api and external-grpc are supported"
                raise UserError("node-scaling needs a cloud", where=Where(path="--cloud"), fix=fix)
            return choice
        if self.cloud_config is not None and self.cloud is not CloudName.EXTERNAL_GRPC:
            raise UserError("only the cloud external-grpc has this file", where=Where(path="--cloud-config"))
        if self.cloud_interruption_queue and self.cloud is not CloudName.AWS:
            raise UserError("only the cloud aws has this queue", where=Where(path="--cloud-interruption-queue"))
        if self.cloud is CloudName.EXTERNAL_GRPC:
            return replace(choice, cloud=self._external_grpc())
        if self.cloud is CloudName.CLUSTER_API:
            return replace(choice, cloud=self._cluster_api(), cloud_access=self._management_cluster())
        if self.cloud_kubeconfig is not None:
            raise UserError(
                "only the cloud cluster-api has a management cluster", where=Where(path="--cloud-kubeconfig")
            )
        if not self.cloud_cluster:
            what = "the instances of the cluster need its name as a tag"
            raise UserError(what, where=Where(path="--cloud-cluster"), fix="as in --cloud-cluster training")
        from shoal.cloud.ec2_settings import Ec2Settings, ec2_client

        found = Ec2Settings(self.cloud_cluster, self.cloud_region, interruption_queue=self.cloud_interruption_queue)
        ec2_client(found)
        return replace(choice, cloud=found)

    def _external_grpc(self) -> ExternalGrpcSettings:
        from shoal.cloud.external_grpc_settings import external_grpc_settings

        if self.cloud_config is None:
            fix = "a file with address, key, cert and cacert"
            raise UserError("the provider's address is missing", where=Where(path="--cloud-config"), fix=fix)
        return external_grpc_settings(self.cloud_config)

    def _cluster_api(self) -> ClusterApiSettings:
        from shoal.cloud.cluster_api_settings import ClusterApiSettings

        namespace, _, name = self.cloud_cluster.rpartition("/")
        if not name or not namespace:
            what = "Cluster API needs the Cluster whose machines are scaled"
            raise UserError(what, where=Where(path="--cloud-cluster"), fix="as in --cloud-cluster default/training")
        return ClusterApiSettings(name, namespace)

    def _management_cluster(self) -> Access | None:
        if self.cloud_kubeconfig is None:
            return None
        from shoal.client.http.kubeconfig import read_kubeconfig

        return read_kubeconfig([self.cloud_kubeconfig])


@dataclass(frozen=True, kw_only=True)
class RunHistoryUse(HistoryUse, PrometheusOptions, RunPagesOptions):
    alerts_scrape: Annotated[
        list[str] | None,
        typer.Option(
            "--alerts-scrape",
            metavar="URL",
            help="Metrics of another shoal run that alerts read too, as http://HOST:8080/metrics; repeatable.",
        ),
    ] = None

    def of(self, choice: RunChoice) -> RunChoice:
        from msgspec.structs import replace

        from shoal.api.alert_targets import read_sources

        found = super().of(choice)
        if self.alerts_scrape and found.alerts is None:
            raise UserError("no alerts are evaluated", where=Where(path="--alerts-scrape"), fix="give --alerts-to")
        return replace(found, alert_sources=read_sources(self.alerts_scrape or ()))


@with_options
def run(
    options: RunOptions,
    operator: OperatorOptions,
    cloud: CloudOptions,
    history_use: RunHistoryUse,
    cluster_access: AccessOptions,
    logs: LoggingOptions,
) -> None:
    """Run Shoal on a cluster: place pods, admit jobs through queues, explain."""
    from msgspec.structs import replace

    from shoal.cli.run_files import read_run_files
    from shoal.wiring.cluster_clock import ClockReading
    from shoal.wiring.run import run as run_on
    from shoal.wiring.telemetry import metrics_endpoint_settings

    files = read_run_files(options.config or [])
    own = files.own
    chosen = tuple(name.strip() for name in options.controllers.split(",")) if options.controllers else ()
    for name in chosen:
        check_known(name, (*_CONTROLLERS, *_NAMED), "controller", Where(path="--controllers"))
    if options.scheduler_name:
        own = replace(own, scheduler_names=tuple(dict.fromkeys(options.scheduler_name)))
    if options.leader_elect is not None:
        own = replace(own, leader_election=replace(own.leader_election, leader_elect=options.leader_elect))
    if chosen:
        own = replace(own, controllers=chosen)
    _check_history(own, options.history)
    _check_placeholders(own)
    own = _with_lease(own)
    own.check(Where(path="shoal run"))
    if options.metrics_address is not None:
        metrics_endpoint_settings(options.metrics_address)
    choice = replace(
        run_choice(replace(files, own=own)),
        speed=options.speed,
        since=ClockReading.read(options.clock) if options.clock else None,
        is_child=options.child,
        metrics=options.metrics_address,
        operator=operator.settings(),
        has_kube_state=options.kube_state_metrics,
        history=None if options.history is None else options.history.expanduser().absolute(),
    )
    choice = history_use.of(cloud.added_to(choice))
    if (samples_from := history_use.address()) is not None:
        if choice.history is None:
            raise UserError("needs a history", where=Where(path="--prometheus"), fix="name a folder with --history")
        choice = replace(choice, samples_from=samples_from)
    logs.set_up()
    access = cluster_access.access_for_change(is_child=options.notify is not None)
    pages = history_use.pages(access, choice, history_use.prices, history_use)
    if options.notify is None:
        typer.echo(start_line(choice), err=True)
    also = "" if pages is None else f"; pages at {pages.url}"
    ready = ready_reporter(lambda what: f"ready: {what}{also}; Ctrl-C ends this.", options.notify)
    with in_one_line(access):
        run_on(
            access,
            choice,
            ready,
            lambda what: typer.echo(f"shoal: {access.where}: {visible(what, keeps_blanks=True)}", err=True),
            None if pages is None else pages.serve,
        )


def _check_placeholders(own: RunConfiguration) -> None:
    """Another autoscaler would provision for the pods and for their placeholders."""
    if "placeholder-pods" in own.controllers and "scheduler" not in own.controllers:
        fix = "run both in one process, as in --controllers scheduler,queues,jobs,pods,placeholder-pods"
        raise UserError("placeholder-pods needs the part scheduler", where=Where(path="--controllers"), fix=fix)


def _check_history(own: RunConfiguration, folder: Path | None) -> None:
    if "history" in own.controllers and folder is None:
        raise UserError(
            "the part history has no folder", where=Where(path="--controllers"), fix="name one with --history DIR"
        )


def _with_lease(own: RunConfiguration) -> RunConfiguration:
    """Parts that only run on request have a Lease of their own, so that they do not wait for a scheduler."""
    from msgspec.structs import replace

    from shoal.api.run_configuration import LeaderElectionRules

    rules = own.leader_election
    is_usual = rules.resource_name == LeaderElectionRules().resource_name
    if is_usual and own.controllers and set(own.controllers) <= set(_NAMED):
        return replace(own, leader_election=replace(rules, resource_name=f"shoal-{own.controllers[0]}"))
    return own


def start_line(choice: RunChoice) -> str:
    """What this process will do; printed before the first request, while a mistake has no effect yet."""
    from shoal.wiring.run_choice import HISTORY, SCHEDULER

    placed = (
        f"; places pods with schedulerName {' or '.join(choice.scheduler_names)}"
        if SCHEDULER in choice.controllers
        else ""
    )
    rules = choice.own.leader_election
    active = (
        f"while it holds the Lease {rules.resource_namespace}/{rules.resource_name}"
        if rules.leader_elect
        else "without leader election"
    )
    does = "only reads the cluster, and records" if set(choice.controllers) == {HISTORY} else "changes the cluster"
    return f"starting {', '.join(choice.controllers)} in all namespaces{placed}; {does} {active}"


def run_choice(files: RunFiles) -> RunChoice:
    from msgspec.structs import replace

    from shoal.cli.preemption_options import steps_of_rules
    from shoal.wiring.run_choice import RunChoice

    own = files.own
    profiles, names = _profiles(files)
    return RunChoice(
        own=own if names is None else replace(own, scheduler_names=names),
        builder=profiles[0].builder if profiles else _policy(files),
        profiles=profiles,
        steps=steps_of_rules(own),
        controllers=_parts(files) or _CONTROLLERS,
        kueue=files.kueue,
        identity=f"{os.uname().nodename}_{uuid.uuid4()}",
    )


def _policy(files: RunFiles) -> Builder:
    from shoal.engine.profile import POLICIES

    name = files.own.policy
    check_known(name, tuple(POLICIES), "policy", files.own_where.below("policy"))
    return POLICIES[name]


def _profiles(files: RunFiles) -> tuple[tuple[NamedProfile, ...], tuple[str, ...] | None]:
    """How pods are placed, and whose, where a KubeSchedulerConfiguration says it."""
    from shoal.wiring.run_choice import NamedProfile

    if files.profiles is None:
        return (), None
    for warning in files.profiles.warnings:
        if not any(f"{plugin}: " in warning for plugin in _DONE_LIVE):
            typer.echo(f"shoal: warning: {warning}", err=True)
    there = {one.scheduler_name: one for one in files.profiles.profiles}
    names = files.own.scheduler_names
    if names == _USUAL and not {*names} & {*there}:
        # The default name is no choice of the user.
        names = tuple(there)
    chosen = [there[name] for name in names if name in there] or [files.profiles.profiles[0]]
    for name in names:
        if name not in there:
            words = f"profile {name} not found: its pods are placed by profile {chosen[0].scheduler_name}"
            typer.echo(f"shoal: warning: {words}", err=True)
    return tuple(NamedProfile(one.scheduler_name, one.build, one.added_affinity) for one in chosen), names


def _parts(files: RunFiles) -> tuple[str, ...]:
    names = files.own.controllers
    for at, name in enumerate(names):
        check_known(name, (*_CONTROLLERS, *_NAMED), "controller", files.own_where.below(f"controllers[{at}]"))
    return tuple(dict.fromkeys(names))
