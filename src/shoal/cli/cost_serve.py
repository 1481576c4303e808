"""`shoal cost serve`: OpenCost's API over a recorded history, until Ctrl-C."""

from __future__ import annotations

import asyncio
import random
import signal
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.cluster_access import AccessOptions
from shoal.cli.completion_values import one_of
from shoal.cli.cost_source import WEIGHTS
from shoal.cli.log_options import LoggingOptions
from shoal.cli.option_groups import with_options
from shoal.cli.web import WebOptions
from shoal.units.errors import Where

if TYPE_CHECKING:
    from collections.abc import Collection

    from shoal.client.http.access import Access
    from shoal.client.port import Api
    from shoal.cost.allocations import AllocationViewer
    from shoal.cost.cost_settings import CostSettings
    from shoal.store.history.allocation_reader import AllocationReader
    from shoal.telemetry.allocation_endpoint import AllocationSettings
    from shoal.web.sign_in import TokenViewers

_PORT, _LOOPBACK = 9003, "127.0.0.1"
_TIMEOUT_S = 20.0


@dataclass(frozen=True, kw_only=True)
class CostServerOptions(WebOptions):
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes any free port.")] = _PORT
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="Listen on this address. Every request then needs the token of a Kubernetes account, and sees what "
            f"it may list. By default {_LOOPBACK}, without a token.",
        ),
    ] = None
    history: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the history; by default that of the cluster of shoal up."),
    ] = None
    prices: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Prices that the catalogue does not have, as YAML or JSON.")
    ] = None
    weights: Annotated[
        str,
        typer.Option(
            metavar="MODE",
            help="How the price of a node is divided: model, opencost or gpu-memory-weighted.",
            autocompletion=one_of(WEIGHTS),
        ),
    ] = WEIGHTS[0]
    cluster_name: Annotated[
        str, typer.Option("--cluster-name", metavar="NAME", help="The name of the cluster in answers.")
    ] = "default-cluster"

    def settings(self) -> CostSettings:
        """Raises UserError for a file that is no price file."""
        from shoal.cli.cost_source import price_file
        from shoal.cli.known_names import check_known
        from shoal.cost.cost_settings import CostSettings
        from shoal.cost.weights import WEIGHT_MODES

        check_known(self.weights, WEIGHTS, "mode", Where(path="--weights"))
        return CostSettings(
            file=price_file(self.prices),
            where=Where(path="--prices") if self.prices is None else Where(file=str(self.prices)),
            mode=next(one for one in WEIGHT_MODES if one == self.weights),
            cluster=self.cluster_name,
        )


@with_options
def serve(options: CostServerOptions, cluster_access: AccessOptions, logs: LoggingOptions) -> None:
    """Serve costs by the API of OpenCost, for Grafana and other tools that read it."""
    from shoal.cli.cluster_folder import cluster_folder, history_folder
    from shoal.store.history.allocation_reader import AllocationReader
    from shoal.store.history.history import read_history
    from shoal.telemetry.allocation_endpoint import AllocationSettings
    from shoal.units.listening import check_listening

    if options.host is not None:
        check_listening(options.host, Where(path="--host"))
    certificate, settings = options.certificate(), options.settings()
    chosen = options.history
    folder = history_folder(cluster_folder(None)) if chosen is None else chosen.expanduser().absolute()
    reader = options.reader()
    # A folder without a history is a mistake that is named at once.
    read_history(folder).close()
    costs = AllocationReader(folder, settings, reader)
    logs.set_up()
    access = None if options.host is None else cluster_access.access()
    address = AllocationSettings(options.host or _LOOPBACK, options.port, certificate)
    asyncio.run(_serve(costs, address, access))


async def _serve(costs: AllocationReader, address: AllocationSettings, access: Access | None) -> None:
    from shoal.client.clock import WallClock
    from shoal.telemetry.allocation_endpoint import AllocationEndpoint

    viewers = None if access is None else _viewers(access)
    viewing = None if viewers is None else partial(_viewing, viewers)
    endpoint = AllocationEndpoint(costs, address, WallClock().seconds, viewing)
    await endpoint.start()
    try:
        typer.echo(f"{endpoint.url}allocation?window=7d  Ctrl-C ends this.", err=True)
        ended = asyncio.Event()
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(name, ended.set)
        await ended.wait()
    finally:
        await endpoint.close()
        if viewers is not None:
            await viewers.close()


async def _viewing(viewers: TokenViewers, token: str, namespaces: Collection[str]) -> AllocationViewer:
    from shoal.cost.allocations import AllocationViewer

    found = await viewers.viewer(token, namespaces)
    return AllocationViewer(found.sees, found.lists_nodes)


def _viewers(access: Access) -> TokenViewers:
    from shoal.cli.web_reports import with_token
    from shoal.client.clock import WallClock
    from shoal.client.http.api import KubeApi
    from shoal.client.http.settings import KubeSettings
    from shoal.web.sign_in import TokenViewers

    def api_of(token: str) -> Api:
        return KubeApi(with_token(access, token), random.Random(), KubeSettings(timeout_s=_TIMEOUT_S))

    return TokenViewers(api_of, WallClock())
