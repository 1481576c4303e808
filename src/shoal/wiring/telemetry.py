"""Composes the metrics, the health checks and the metrics endpoint of a Shoal process.

    telemetry = Telemetry(version, clock, measured)
    api = telemetry.observed(client)              for each client, below its caches
    address = await telemetry.open(tasks, settings)
    telemetry.stands_by()                         while another process leads
    telemetry.follow_scheduler(scheduling, pods, names)
    telemetry.follow_queues(discipline, workloads)
    telemetry.works()                             once all caches are filled

A process that loses its lease and becomes leader again keeps its counters; the new scheduling loop replaces the old
one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from time import perf_counter, time
from typing import TYPE_CHECKING, Protocol

import msgspec

from shoal.client.clock import Clock
from shoal.client.informer import Informer
from shoal.client.informers import Informers
from shoal.client.item import Obj
from shoal.client.port import Api
from shoal.client.recorder import Recorder
from shoal.controllers.node_scaling.figures import NodeScalingFigures, NodeScalingObserver
from shoal.controllers.scheduling_loop.protocols import PlanExecutor
from shoal.engine.cluster import Cluster
from shoal.operator.progress.figures import OperatorFigures
from shoal.operator.upgrades.figures import UpgradeFigures
from shoal.prometheus.exposition import text_of
from shoal.prometheus.families import MetricHead
from shoal.prometheus.registry import Registry
from shoal.telemetry.driver_upgrades import measure_driver_upgrades
from shoal.telemetry.fleet import measure_fleet
from shoal.telemetry.forbidden import ForbiddenReporter
from shoal.telemetry.gpu_operator import measure_operator
from shoal.telemetry.health import HealthChecks
from shoal.telemetry.kai import KaiMetrics, KaiSource
from shoal.telemetry.metrics_endpoint import MetricsEndpoint, MetricsEndpointSettings
from shoal.telemetry.node_scaling import measure_node_scaling
from shoal.telemetry.observed_api import ObservedApi, Observers
from shoal.telemetry.observers import SchedulingObserver
from shoal.telemetry.pod_waits import PodWaits
from shoal.telemetry.process import measure_process
from shoal.telemetry.queue_state import AdmissionDiscipline, QueueLevels, WorkloadCache
from shoal.telemetry.queues import QueueMetrics, Role
from shoal.telemetry.requests import LeaderMetrics, RequestMetrics
from shoal.telemetry.scheduling import SchedulingMetrics
from shoal.telemetry.traces import Spans
from shoal.telemetry.volcano import VolcanoMetrics, VolcanoSource
from shoal.telemetry.workload_transitions import follow_workloads
from shoal.units.errors import UserError, Where
from shoal.units.listening import LOOPBACK_HOSTS
from shoal.wiring.process_tasks import ProcessTasks

if TYPE_CHECKING:
    from shoal.telemetry.prices import CostFigures
    from shoal.wiring.run_choice import RunChoice

_MOST_PORT = 65535
_NONE = "none"
KUBE_STATE_PATH = "/kube-state-metrics"


class Measured(msgspec.Struct, frozen=True):
    """The subject of the metrics."""

    lease: str = "shoal"
    role: Role = "standalone"
    scheduler: str = "shoal"
    """The profile under which attempts are counted."""


class SchedulingLoop(Protocol):
    @property
    def cluster(self) -> Cluster: ...


class KaiDiscipline(KaiSource, Protocol):
    def measure(self, observer: KaiMetrics, stopwatch: Callable[[], float]) -> None: ...


class VolcanoDiscipline(VolcanoSource, Protocol):
    def measure(self, observer: VolcanoMetrics, stopwatch: Callable[[], float]) -> None: ...


class Telemetry:
    """One per process. RBAC's refusals are recorded by `events` on the object `about`, besides the log."""

    def __init__(
        self,
        version: str,
        clock: Clock,
        measured: Measured,
        events: Recorder | None = None,
        about: Obj | None = None,
        spans: Spans | None = None,
    ) -> None:
        self._spans = spans
        self.registry = Registry()
        self.texts: dict[str, Callable[[], str]] = {}
        """Further paths of the endpoint with metrics."""
        self.documents: dict[str, Callable[[], bytes]] = {}
        """Further paths of the endpoint, which only this machine reaches, with what makes their JSON."""
        self.requests = RequestMetrics(self.registry)
        self.forbidden = ForbiddenReporter(events, about)
        self._scheduling = SchedulingMetrics(self.registry)
        self._leader = LeaderMetrics(self.registry)
        self.queues = QueueMetrics(self.registry, measured.role)
        self._kai: KaiMetrics | None = None
        self._volcano: VolcanoMetrics | None = None
        self._clock = clock
        self._measured = measured
        self._fault = "it has not started yet"
        self.scheduling = self._observer()
        measure_process(self.registry, version, time())
        refused = MetricHead("gauge", "shoal_rules_missing", "Kinds of requests that RBAC refused.")
        self.registry.reads(refused, lambda: [((), len(self.forbidden))])

    # -- requests to the server -------------------------------------------------------------------------------------

    def observed(self, api: Api) -> Api:
        return ObservedApi(
            api, self._clock, Observers(self.requests, self.forbidden, lambda: self.scheduling, self._spans)
        )

    # -- the endpoint -----------------------------------------------------------------------------------------------

    async def open(self, tasks: ProcessTasks, settings: MetricsEndpointSettings) -> str:
        """Returns its URL. It is closed with the tasks. Raises UserError if the address cannot be opened."""
        health = HealthChecks({}, {"informer-sync": lambda: self._fault})
        documents = self.documents if settings.host in LOOPBACK_HOSTS else {}
        endpoint = MetricsEndpoint(self.registry, health, settings, documents=documents, texts=self.texts)
        await endpoint.start()
        tasks.at_end(endpoint.close)
        return endpoint.address

    async def close(self) -> None:
        """Exports the traces that are left."""
        if self._spans is not None:
            await asyncio.to_thread(self._spans.close)

    def text(self) -> str:
        """All metrics, for an endpoint of another part."""
        return text_of(self.registry.read()).decode() + "".join(read() for read in self.texts.values())

    def stands_by(self) -> None:
        """Another process leads; this one is ready to take over."""
        self._leader.stands_by(self._measured.lease)
        self._fault = ""

    def begins(self) -> None:
        """This process leads, or is the only one; its caches are not filled yet."""
        self._leader.leads(self._measured.lease)
        self._fault = "the caches are not filled yet"

    def works(self) -> None:
        """All caches are filled."""
        self._fault = ""

    # -- sources of metrics -----------------------------------------------------------------------------------------

    def follow_scheduler(self, scheduling: SchedulingLoop, pods: Informer, schedulers: Sequence[str]) -> PlanExecutor:
        """Returns a plan executor to put before the others of the scheduling loop. Called again for each new loop."""
        cluster = scheduling.cluster
        observer = self.scheduling = self._observer(cluster)
        waits = PodWaits(observer, self._clock, schedulers)
        waits.follow(pods)
        measure_fleet(self.registry, cluster, lambda: observer.refused, lambda: waits.gated, self._clock.seconds)
        return observer

    def gang_rolled_back(self) -> None:
        self._scheduling.rolled_back.of().inc()

    def follow_queues(self, discipline: AdmissionDiscipline, workloads: WorkloadCache) -> None:
        self.queues.follow(QueueLevels(discipline, workloads, self._clock.seconds))
        discipline.measure(self.queues.around)

    def follow_kai(self, discipline: KaiDiscipline) -> None:
        if self._kai is None:
            self._kai = KaiMetrics(self.registry)
        self._kai.follow(discipline)
        discipline.measure(self._kai, perf_counter)

    def follow_volcano(self, discipline: VolcanoDiscipline) -> None:
        if self._volcano is None:
            self._volcano = VolcanoMetrics(self.registry)
        self._volcano.follow(discipline)
        discipline.measure(self._volcano, perf_counter)

    def follow_workloads(self, workloads: Informer) -> None:
        """Count the changes of their conditions; called once the kind is served."""
        follow_workloads(self.queues, workloads)

    def follow_driver_upgrades(self, read: Callable[[], UpgradeFigures]) -> None:
        measure_driver_upgrades(self.registry, read)

    def follow_node_scaling(self, read: Callable[[], NodeScalingFigures], observer: NodeScalingObserver) -> None:
        observer.on_start = measure_node_scaling(self.registry, read, observer)

    def follow_process(self, tasks: ProcessTasks, choice: RunChoice) -> None:
        self.follow_work_queues(tasks.waiting)
        if choice.has_kube_state:
            self.follow_kube_state(tasks.informers)

    def follow_work_queues(self, waiting: Callable[[], Sequence[tuple[str, int]]]) -> None:
        """The number of objects in the work queue of each controller; each name once."""
        head = MetricHead("gauge", "workqueue_depth", "Objects that wait in work queues.", ("name",))
        self.registry.reads(head, lambda: [((name,), count) for name, count in waiting()])

    def follow_kube_state(self, informers: Informers) -> None:
        """Serve the series of kube-state-metrics, unless it runs in the cluster."""
        from shoal.telemetry.kube_state.exposition import KubeStateText

        self.texts[KUBE_STATE_PATH] = KubeStateText(informers).text

    def follow_prices(self, read: Callable[[], CostFigures]) -> None:
        # Imported here: a process without a history knows no prices.
        from shoal.telemetry.prices import measure_prices

        measure_prices(self.registry, read)

    def follow_operator(self, figures: OperatorFigures) -> None:
        measure_operator(self.registry, figures)

    # internals

    def _observer(self, cluster: Cluster | None = None) -> SchedulingObserver:
        profile = self._measured.scheduler

        def members(group: str) -> list[str]:
            gang = cluster.gangs.find(group) if cluster is not None else None
            return [] if gang is None else list(gang.waiting)

        # Bindings of a scheduling loop that has ended are no longer in flight.
        self._scheduling.in_flight.of().set(0)
        return SchedulingObserver(self._scheduling, lambda _: profile, members, spans=self._spans)


def metrics_endpoint_settings(text: str, where: str = "--metrics-address") -> MetricsEndpointSettings | None:
    """`HOST:PORT`, `:PORT`, `[::1]:8080`; None for `none`."""
    if text.strip() == _NONE:
        return None
    host, colon, port = text.strip().rpartition(":")
    if not colon or not port.isdecimal() or int(port) > _MOST_PORT or (":" in host and not host.startswith("[")):
        raise UserError(
            "is not an address", where=Where(path=where), fix="write HOST:PORT, as in 127.0.0.1:8080, or none"
        )
    return MetricsEndpointSettings(host.strip("[]") or MetricsEndpointSettings().host, int(port))
