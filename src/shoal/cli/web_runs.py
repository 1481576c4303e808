"""Runs the pages of `shoal web`: for any cluster, or in the process of the cluster of `shoal up`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import structs

from shoal.cli.addressed_commands import with_flags
from shoal.cli.cluster_access import in_one_line
from shoal.cli.dashboard_caches import DashboardCaches
from shoal.cli.dashboard_runs import Notes, cluster_name
from shoal.cli.prometheus_options import PrometheusOptions
from shoal.cli.web_alerts import RECORDED, FetchedAlerts, RecordedAlerts, shown_address
from shoal.cli.web_reports import CommandReports, with_token
from shoal.client.clock import WallClock
from shoal.client.http.api import KubeApi
from shoal.client.http.locate import locate
from shoal.client.http.settings import KubeSettings
from shoal.client.informers import Informers
from shoal.client.kind import NODES, PODS
from shoal.client.kueue_versions import KueueVersionsApi
from shoal.client.port import Select
from shoal.client.served import answering
from shoal.store.history.node_rows import NodeReading, read_node
from shoal.units.errors import UserError, Where
from shoal.views.dashboard.cluster_state import ClusterState
from shoal.views.dashboard.facts import DashboardFacts, NodeDetail, PageSubject
from shoal.views.queue_history import QueueHistory, queue_history
from shoal.web.further_pages import FurtherSources
from shoal.web.server import WebServer, WebSettings
from shoal.web.sign_in import TokenViewers
from shoal.web.site import Site

if TYPE_CHECKING:
    import socket

    from shoal.client.clock import Clock
    from shoal.client.http.access import Access
    from shoal.client.port import Api
    from shoal.cost.records import Machine
    from shoal.web.ports import Alerts
    from shoal.wiring.process_tasks import ProcessTasks

_TIMEOUT_S = 20.0
_NO_OBJECT = Select(labels="shoal.dev/no-such-label")
_FIRST_S = 5.0


class FurtherOptions(msgspec.Struct, frozen=True):
    """Where the pages find what the cluster does not have."""

    history: Path | None = None
    prices: Path | None = None
    time_zone: str = "UTC"
    alerts_from: str = ""
    has_recorded_alerts: bool = False
    """Whether the history has the alerts that are active."""
    is_chosen: bool = False
    """Whether commands have to name the folder of the history."""
    samples: PrometheusOptions = PrometheusOptions()

    def sources(self, clock: Clock) -> FurtherSources:
        """Raises UserError for a price file, a time zone or an address that cannot be used."""
        from shoal.cli.cost_source import CostSource, price_file
        from shoal.cli.web_history import RecordedHistory
        from shoal.units.calendar_windows import zone_of

        zone_of(self.time_zone)
        source = CostSource(history=self.history, prices=self.prices, time_zone=self.time_zone, **vars(self.samples))
        options = [*(("--history", str(self.history)) if self.is_chosen else ())]
        options += ["--prices", str(self.prices)] if self.prices is not None else []
        options += ["--time-zone", self.time_zone] if self.time_zone != CostSource().time_zone else []
        options += self.samples.arguments()
        return FurtherSources(
            histories=None if self.history is None else RecordedHistory(source, clock),
            alerts=self._alerts(),
            prices=price_file(self.prices),
            history_options=options,
            alerts_from=shown_address(self.alerts_from) if self.alerts_from else RECORDED if self._has_alerts else "",
        )

    @property
    def _has_alerts(self) -> bool:
        return self.history is not None and (self.has_recorded_alerts or self.alerts_from == RECORDED)

    def _alerts(self) -> Alerts | None:
        if self.alerts_from not in ("", RECORDED):
            return FetchedAlerts(self.alerts_from)
        if self.history is None and self.alerts_from:
            fix = "name its folder with --history DIR, or a server with --alerts-from URL"
            raise UserError("there is no history", where=Where(path="--alerts-from"), fix=fix)
        return RecordedAlerts(self.history) if self.history is not None and self._has_alerts else None


class WebRun(msgspec.Struct, frozen=True):
    settings: WebSettings
    needs_token: bool
    flags: Sequence[str] = ()
    """Those that make a command use this cluster."""
    further: FurtherOptions = FurtherOptions()


def own_history(access: Access) -> Path | None:
    """The folder of the history of `shoal up`, where its cluster is the one that is shown."""
    from shoal.cli.cluster_folder import cluster_folder, history_folder
    from shoal.embedded.apiserver.security.state_folder import running

    folder = cluster_folder(None)
    found = running(folder)
    return history_folder(folder) if found is not None and found.url.rstrip("/") == access.server.rstrip("/") else None


class LiveFacts:
    """Implements `FactsSource` with the watch caches of the terminal dashboard."""

    def __init__(self, informers: Informers, clock: Clock, title: str, note: Callable[[], str] = str) -> None:
        self._state = ClusterState(title)
        self._caches = DashboardCaches(informers, self._state)
        self._nodes = informers.of(NODES)
        self._clock, self._note = clock, note

    @property
    def version(self) -> int:
        return self._state.version

    def facts(self, subject: PageSubject | None) -> DashboardFacts:
        found = self._state.scene("", "", self._clock.seconds(), subject, self._note())
        if isinstance(found.detail, NodeDetail):
            return structs.replace(found, detail=self._caches.completed(found.detail))
        return found

    def queue_history(self) -> QueueHistory:
        return queue_history(self._state.queues.all_workloads())

    def machines(self) -> list[Machine]:
        return [one.machine for one in self._readings()]

    def measured_gpus(self) -> dict[str, list[list[str]]]:
        return {one.machine.name: one.names.by_device() for one in self._readings()}

    def _readings(self) -> list[NodeReading]:
        now_ms, found = round(self._clock.seconds() * 1000), []
        for item in self._nodes:
            # The cache logs an object that cannot be decoded.
            with contextlib.suppress(msgspec.DecodeError):
                found.append(read_node(item, None, now_ms))
        return found

    async def follow_present_kinds(self, api: Api) -> None:
        """Those that the cluster has now."""
        self._caches.follow(await answering(api))

    async def follow_optional_kinds(self, api: Api) -> None:
        await self._caches.follow_optional_kinds(api, self._clock)


class FollowedCluster(NamedTuple):
    api: Api
    clock: Clock
    informers: Informers
    facts: LiveFacts


def web_server(facts: LiveFacts, access: Access, run: WebRun, clock: Clock) -> tuple[WebServer, TokenViewers | None]:
    """`clock`: of the server itself, by which sessions end."""

    def api_of(token: str) -> Api:
        return KubeApi(with_token(access, token), random.Random(), KubeSettings(timeout_s=_TIMEOUT_S))

    viewers = TokenViewers(api_of, clock) if run.needs_token else None
    return WebServer(site_of(facts, access, run, clock, viewers), run.settings, clock), viewers


def site_of(facts: LiveFacts, access: Access, run: WebRun, clock: Clock, viewers: TokenViewers | None = None) -> Site:
    addressed = partial(with_flags, flags=run.flags)
    return Site(facts, CommandReports(access, run.flags), viewers, clock, addressed, run.further.sources(clock))


def serve_cluster(access: Access, run: WebRun, ready: Callable[[str], None]) -> None:
    """Until SIGINT or SIGTERM. `ready` is called with the address."""
    with in_one_line(access):
        asyncio.run(_serve(access, run, ready))


async def _serve(access: Access, run: WebRun, ready: Callable[[str], None]) -> None:
    async with followed(access) as cluster:
        clock, facts = cluster.clock, cluster.facts
        title = f"Shoal on {cluster_name(access)}"
        settings = structs.replace(run.settings, title=title)
        await _until_signal(*web_server(facts, access, structs.replace(run, settings=settings), clock), ready)


@contextlib.asynccontextmanager
async def followed(access: Access) -> AsyncIterator[FollowedCluster]:
    """The facts of a cluster, which follow it meanwhile."""
    clock, draw = WallClock(), random.Random()
    api = KueueVersionsApi(KubeApi(access, draw, KubeSettings(timeout_s=_TIMEOUT_S)))
    try:
        # A cluster that cannot be reached, or that refuses this user, is one line instead of empty pages.
        await api.list(NODES, select=_NO_OBJECT)
        informers = Informers(api, clock, draw)
        needed = [informers.of(kind) for kind in (PODS, NODES)]
        notes = Notes(clock.seconds, lambda: [each.kind.plural for each in needed if not each.is_synced])
        logging.getLogger("shoal").addHandler(notes)
        facts = LiveFacts(informers, clock, f"Shoal on {cluster_name(access)}", notes.text)
        following = asyncio.gather(informers.run(), facts.follow_optional_kinds(api))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_S):
                await informers.synced((NODES, PODS))
        try:
            yield FollowedCluster(api, clock, informers, facts)
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
    finally:
        await api.close()


async def serve_beside(kubeconfig: Path, further: FurtherOptions, bound: socket.socket, tasks: ProcessTasks) -> None:
    """On loopback, in the process of the cluster, until cancelled."""
    # A copy: the server closes its own, and the socket may be served again.
    settings = WebSettings(listening=bound.dup())
    flags = ("--kubeconfig", str(kubeconfig))
    await serve_pages(tasks, locate(kubeconfig), WebRun(settings, needs_token=False, flags=flags, further=further))


async def serve_pages(tasks: ProcessTasks, access: Access, run: WebRun) -> None:
    """From the caches of a process that follows the cluster, until cancelled."""
    facts = LiveFacts(tasks.informers, tasks.clock, "Shoal")
    server, viewers = web_server(facts, access, run, WallClock())
    await server.start()
    try:
        await facts.follow_optional_kinds(tasks.api)
        await asyncio.Event().wait()
    finally:
        await server.close()
        if viewers is not None:
            await viewers.close()


async def _until_signal(server: WebServer, viewers: TokenViewers | None, ready: Callable[[str], None]) -> None:
    ended = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(name, ended.set)
    await server.start()
    try:
        ready(server.url)
        await ended.wait()
    finally:
        await server.close()
        if viewers is not None:
            await viewers.close()
