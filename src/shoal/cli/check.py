"""Implements `shoal check`: whether a cluster is ready for work with GPUs, check by check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.cluster_access import AccessOptions
from shoal.cli.completion_values import one_of
from shoal.cli.exit_codes import DONE, FAILED
from shoal.cli.formats import FOR_PROGRAMS, checked
from shoal.cli.object_source import Files
from shoal.cli.option_groups import with_options

if TYPE_CHECKING:
    from shoal.client.http.access import Access
    from shoal.policy.diagnosis.cluster_facts import DiagnosedCluster
    from shoal.policy.readiness.outcomes import Outcome, ReadinessReport
    from shoal.wiring.smoke_tests.inference_load import InferenceLoad

_ALL = "all"
_PATIENCE_S = 30.0
_FORMATS = ("table", *FOR_PROGRAMS, "html")


def _smoke_names(incomplete: str) -> list[str]:
    from shoal.policy.readiness.checklist import RUNNABLE

    return [name for name in (*RUNNABLE, _ALL) if name.startswith(incomplete)]


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    filename: Files = None
    metrics: Annotated[
        str,
        typer.Option(
            "--metrics", metavar="FILE", help="Metrics of the GPUs, as their exporter writes them; - for stdin."
        ),
    ] = ""
    history: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder of the history of the cluster; by default that of shoal up for its cluster."
        ),
    ] = None
    fix: Annotated[
        bool,
        typer.Option("--fix", help="Apply corrections that change nothing for what runs, then check again."),
    ] = False
    smoke: Annotated[
        list[str] | None,
        typer.Option(
            "--smoke",
            metavar="NAME",
            help="Run this smoke test in a namespace of its own, or all; may be given several times.",
            autocompletion=_smoke_names,
        ),
    ] = None
    nccl_image: Annotated[
        str, typer.Option("--nccl-image", metavar="IMAGE", help="An image with all_reduce_perf, for all-reduce.")
    ] = ""
    pytorch_image: Annotated[
        str,
        typer.Option("--pytorch-image", metavar="IMAGE", help="An image that starts a training, for PyTorchJobs."),
    ] = ""
    inference_service: Annotated[
        str,
        typer.Option(
            "--inference-service",
            metavar="NAMESPACE/NAME:PORT/PATH",
            help="The Service of a model server, which gets GET requests, for inference-load.",
        ),
    ] = ""
    inference_requests: Annotated[
        int, typer.Option("--inference-requests", metavar="N", min=1, max=2000, help="The requests of inference-load.")
    ] = 100
    inference_p99: Annotated[
        int,
        typer.Option("--inference-p99", metavar="MS", min=0, help="The bar of their P99 in ms; none by default."),
    ] = 0
    replicas: Annotated[
        int,
        typer.Option(
            "--replicas", metavar="N", min=1, max=1000, help="The replicas of scale-from-zero, and the pods of jobs."
        ),
    ] = 2
    smoke_timeout: Annotated[
        int, typer.Option("--smoke-timeout", metavar="SECONDS", min=1, help="The time limit of each smoke test.")
    ] = 300
    output: Annotated[
        str,
        typer.Option(
            "-o", "--output", metavar="FORMAT", help="table, json, yaml or html.", autocompletion=one_of(_FORMATS)
        ),
    ] = _FORMATS[0]


@with_options
def check(options: CheckOptions, access: AccessOptions) -> None:
    """Check whether a cluster is ready for work with GPUs: each item with evidence, and how to correct it."""
    from shoal.units.errors import UserError, Where

    checked(options.output, _FORMATS)
    chosen = _chosen(options.smoke or ())
    for option, is_given in (("--fix", options.fix), ("--smoke", bool(chosen))):
        if options.filename and is_given:
            raise UserError("is for a cluster, not for files", where=Where(path=option), fix="leave out -f")
    cluster = None if options.filename else access.access()
    smoke = _smoke_tested(options, cluster, chosen) if cluster is not None and chosen else {}
    report = _report(options, cluster, smoke)
    if options.fix and cluster is not None and _corrected(cluster, report):
        report = _report(options, cluster, smoke)
    _show(report, options.output, cluster)
    raise typer.Exit(DONE if report.is_ready else FAILED)


def _chosen(names: Sequence[str]) -> list[str]:
    """In the order of the checklist. Raises UserError."""
    from shoal.cli.known_names import check_known
    from shoal.policy.readiness.checklist import RUNNABLE
    from shoal.units.errors import Where

    for name in names:
        check_known(name, (*RUNNABLE, _ALL), "smoke test", Where(path="--smoke"))
    return [name for name in RUNNABLE if name in names or _ALL in names]


def _smoke_tested(options: CheckOptions, cluster: Access, names: Sequence[str]) -> dict[str, Outcome]:
    import random

    from shoal.cli.cluster_access import announce, ended
    from shoal.client.clock import WallClock
    from shoal.client.http.api import KubeApi
    from shoal.client.http.connection import Connection
    from shoal.client.http.settings import KubeSettings
    from shoal.wiring.smoke_tests.running import SmokeSettings, SmokeTests

    announce(cluster, changes=True)
    settings = KubeSettings(timeout_s=_PATIENCE_S)
    wanted = SmokeSettings(
        float(options.smoke_timeout),
        options.replicas,
        options.nccl_image,
        options.pytorch_image,
        _inference(options),
    )

    async def work() -> dict[str, Outcome]:
        api, logs = KubeApi(cluster, random.Random(), settings), Connection(cluster, settings)
        try:
            tests = SmokeTests(api, logs, WallClock(), wanted)
            return await tests.run(names, lambda text: typer.echo(text, err=True))
        finally:
            await logs.close()
            await api.close()

    return ended(cluster, work)


def _inference(options: CheckOptions) -> InferenceLoad | None:
    """Raises UserError."""
    from shoal.units.errors import UserError, Where, excerpt
    from shoal.wiring.smoke_tests.inference_load import InferenceLoad

    text = options.inference_service
    if not text:
        return None
    namespace, _, rest = text.partition("/")
    target, _, path = rest.partition("/")
    service, _, port = target.partition(":")
    if not (namespace and service and port) or ".." in path.split("/"):
        where, fix = Where(path="--inference-service"), "as in serving/llama:8000/v1/models"
        raise UserError(f"{excerpt(text)} names no Service with a port", where=where, fix=fix)
    return InferenceLoad(namespace, service, port, path, options.inference_requests, float(options.inference_p99))


def _report(options: CheckOptions, cluster: Access | None, smoke: dict[str, Outcome]) -> ReadinessReport:
    from shoal.cli.recorded_history import recorded_history
    from shoal.cost.targets import TARGETS
    from shoal.policy.readiness.checklist import readiness
    from shoal.policy.readiness.outcomes import ReadinessFacts

    targets = {one.figure: one for one in TARGETS}
    fleet, memory = targets["fleet-utilisation"], targets["pod-memory"]
    low, high = (float(bound or 0) * 100 for bound in (fleet.at_least, fleet.at_most))
    found = _facts(options, cluster)
    history = recorded_history(options.history, cluster)
    return readiness(ReadinessFacts(found, (low, high), float(memory.at_least or 0) * 100, smoke, history))


def _facts(options: CheckOptions, cluster: Access | None) -> DiagnosedCluster:
    from shoal.cli.cluster_access import announce, speak
    from shoal.cli.doctor import given_objects, read_input
    from shoal.cli.progress import long_work
    from shoal.policy.diagnosis.cluster_facts import DiagnosedCluster
    from shoal.policy.readiness.checklist import needed_kinds
    from shoal.policy.readiness.smoke_objects import is_of_smoke_tests
    from shoal.store.diagnosed_objects import read_diagnosed_objects

    metrics = read_input(options.metrics, "--metrics") if options.metrics else None
    if cluster is None:
        read, _ = given_objects(options.filename or ())
    else:
        announce(cluster)
        with long_work(f"reading the cluster {cluster.name or cluster.server}"):
            read = speak(cluster, lambda api: read_diagnosed_objects(api, needed_kinds()))
    objects = [obj for obj in read.objects if not is_of_smoke_tests(obj)]
    return DiagnosedCluster(objects, read.complete, unread=read.unread, metrics=metrics)


def _corrected(cluster: Access, report: ReadinessReport) -> bool:
    """Whether an object was applied."""
    from shoal.cli.cluster_access import speak
    from shoal.client.port import Api
    from shoal.client.refusals import RefusedError
    from shoal.client.served_writer import ServedWriter, described
    from shoal.units.visible_text import visible

    wanted = [obj for item in report.items for obj in item.corrections]
    if not wanted:
        typer.echo("shoal: no failed check has a correction that is safe to apply", err=True)
        return False

    async def work(api: Api) -> int:
        writer, count = await ServedWriter.of(api), 0
        for obj in wanted:
            try:
                done = await writer.apply(obj)
            except RefusedError as error:
                typer.echo(visible(f"shoal: {described(obj)} is not applied: {error}"), err=True)
                continue
            if done is None:
                typer.echo(f"shoal: {described(obj)} is not applied: the cluster has no such kind", err=True)
                continue
            typer.echo(f"applied {described(obj)}", err=True)
            count += 1
        return count

    return bool(speak(cluster, work))


def _show(report: ReadinessReport, output: str, cluster: Access | None) -> None:
    import sys

    from shoal.cli.cluster_access import named
    from shoal.cli.formats import console, write

    name = "" if cluster is None else named(cluster)
    if output == "html":
        from shoal.client.clock import WallClock
        from shoal.views.readiness_html import readiness_html

        sys.stdout.write(readiness_html(report, name or "the given files", f"{WallClock().now():%Y-%m-%d %H:%M} UTC"))
    elif output in FOR_PROGRAMS:
        write(report, output, name)
    else:
        from shoal.views.readiness_text import show_readiness

        show_readiness(console(), report)
