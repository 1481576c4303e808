"""Implements `shoal observe`: explains why pods wait as metrics and JSON, without a write, until Ctrl-C."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.cluster_access import AccessOptions, announce, in_one_line
from shoal.cli.log_options import LoggingOptions
from shoal.cli.option_groups import with_options
from shoal.units.errors import UserError, Where
from shoal.units.visible_text import visible

if TYPE_CHECKING:
    from shoal.client.http.access import Access
    from shoal.client.port import Api
    from shoal.store.snapshot.reading import Snapshot
    from shoal.wiring.observed_waits import ObservedObjects


@dataclass(frozen=True, kw_only=True)
class ObserveOptions:
    interval: Annotated[str, typer.Option(metavar="TIME", help="The time between two readings: 30s, 2m.")] = "60s"
    metrics_address: Annotated[
        str, typer.Option("--metrics-address", metavar="HOST:PORT", help="Address of metrics and health checks.")
    ] = "127.0.0.1:8080"


@with_options
def observe(options: ObserveOptions, cluster_access: AccessOptions, logs: LoggingOptions) -> None:
    """Explain why the pods of a cluster wait, as metrics and JSON; change nothing.

    The verbs get and list are enough.
    """
    from shoal import __version__
    from shoal.cli.install import seconds
    from shoal.wiring.observing import WAITS_PATH, Observing
    from shoal.wiring.observing import observe as observe_cluster
    from shoal.wiring.telemetry import metrics_endpoint_settings

    interval_s = seconds(options.interval, "--interval")
    endpoint = metrics_endpoint_settings(options.metrics_address)
    if endpoint is None:
        fix = "write HOST:PORT, as in 127.0.0.1:8080"
        raise UserError("is needed: the answers are served there", where=Where(path="--metrics-address"), fix=fix)
    logs.set_up()
    access = cluster_access.access()
    announce(access)

    async def look(api: Api) -> ObservedObjects:
        return await observed_objects(api, access)

    def announce_addresses(metrics: str, rows: str) -> None:
        where = WAITS_PATH if rows == metrics else f"http://{rows}{WAITS_PATH}"
        typer.echo(f"ready: http://{metrics}/metrics and {where}; Ctrl-C ends this.", err=True)

    with in_one_line(access):
        observe_cluster(
            access,
            Observing(interval_s, endpoint, __version__),
            look,
            announce_addresses,
            lambda what: typer.echo(f"shoal: {access.where}: {visible(what, keeps_blanks=True)}", err=True),
        )


async def observed_objects(api: Api, access: Access) -> ObservedObjects:
    """All pods and workloads with their states, as `shoal get` lists them."""
    import asyncio

    from shoal.client.clock import WallClock
    from shoal.store.snapshot.reading import QueueRuling, read_snapshot

    snapshot = await read_snapshot(api, QueueRuling(), WallClock().now())
    # Health checks are answered meanwhile.
    return await asyncio.to_thread(_objects, snapshot, access)


def _objects(snapshot: Snapshot, access: Access) -> ObservedObjects:
    from shoal.cli.listed_pods import pods_of_source
    from shoal.cli.manifests import loaded_of
    from shoal.cli.object_source import Source, sound
    from shoal.cli.queue_lists import workload_lines
    from shoal.wiring.observed_waits import ObservedObjects

    found, loaded = sound(snapshot, loaded_of)
    documents = [entry.document for entry in found.entries]
    source = Source(documents, access.namespace, access.where, loaded, found.notes, access)
    # What was loaded is used up by the pods.
    queued = Source(documents, access.namespace, access.where, None, found.notes, access)
    return ObservedObjects(tuple(pods_of_source(source)), tuple(workload_lines(queued)))
