"""Implements `shoal agent export`: the metrics of this machine's GPUs, for Prometheus."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from shoal.cli.agent_export_options import MetricOptions, PodOptions, ignored_variables, settings_of
from shoal.cli.agent_options import FakeMachine
from shoal.cli.log_options import LoggingOptions
from shoal.cli.option_groups import with_options

Listen = Annotated[
    str,
    typer.Option(
        "--listen",
        "--address",
        "-a",
        metavar="HOST:PORT",
        envvar="DCGM_EXPORTER_LISTEN",
        help="Where metrics are served; :PORT is all addresses of the machine.",
    ),
]


@with_options
def export(
    *,
    fake: FakeMachine = "",
    once: Annotated[bool, typer.Option("--once", help="Print the metrics and end.")] = False,
    listen: Listen = "127.0.0.1:9400",
    metrics: MetricOptions,
    pods: PodOptions,
    logs: LoggingOptions,
) -> None:
    """Serve the metrics of this machine's GPUs for Prometheus, as the DCGM exporter does."""
    from shoal.agent.exporter.metrics_server import listen_address
    from shoal.wiring.gpu_exporter import ExporterChoice, exposition_once, serve_metrics

    address = listen_address(listen)
    logs.set_up()
    for line in ignored_variables(os.environ):
        typer.echo(line, err=True)
    # A machine outside Kubernetes has no socket, and no pods.
    socket = pods.pod_resources if pods.kubernetes and pods.pod_resources.parent.exists() else None
    labels = pods.kubernetes_enable_pod_labels
    choice = ExporterChoice(settings_of(metrics, pods), fake, socket, pods.hpc_job_mapping_dir, labels)
    if once:
        typer.echo(exposition_once(choice), nl=False)
    else:
        serve_metrics(choice, address, lambda url: typer.echo(f"metrics at {url}/metrics; Ctrl-C ends it.", err=True))
