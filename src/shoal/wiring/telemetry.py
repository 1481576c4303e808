"""All that a process of Shoal measures of itself, put together, and the door where it is read.

    telemetry = Telemetry(version, clock, measured)
    api = telemetry.observed(way_in)              every way in, below its caches
    address = await telemetry.open(life, settings)
    telemetry.stands_by()                         while another process leads
    telemetry.follow_scheduler(brain, pods, names)
    telemetry.follow_queues(desk, watched)
    telemetry.works()                             once everything that is followed is known

A process that loses its lease and leads again goes on with the same figures; what is followed anew replaces what was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import time
from typing import Protocol

import msgspec

from shoal.client.clock import Clock
from shoal.client.informer import Informer
from shoal.client.item import Obj
from shoal.client.port import Api
from shoal.client.recorder import Recorder
from shoal.controllers.scheduling_loop.protocols import PlanExecutor
from shoal.engine.cluster import Cluster
from shoal.prometheus.exposition import text_of
from shoal.prometheus.families import Head
from shoal.prometheus.registry import Registry
from shoal.telemetry.fleet import measure_fleet
from shoal.telemetry.health import Health
from shoal.telemetry.metrics_endpoint import MetricsEndpoint, MetricsEndpointSettings
from shoal.telemetry.observers import SchedulingObserver
from shoal.telemetry.process import measure_process
from shoal.telemetry.queues import QueueMetrics, Role
from shoal.telemetry.requests import LeaderMetrics, RequestMetrics
from shoal.telemetry.scheduling import SchedulingMetrics
from shoal.units.errors import UserError, Where
from shoal.wiring.forbidden import ForbiddenReporter
from shoal.wiring.observed_api import ObservedApi, Observers
from shoal.wiring.pod_waits import PodWaits
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.queue_measures import AdmissionDiscipline, QueueLevels, Watched
from shoal.wiring.workload_happenings import follow_workloads

_MOST_PORT = 65535
_NONE = "none"


class Measured(msgspec.Struct, frozen=True):
    """The subject of the metrics."""

    lease: str = "shoal"
    role: Role = "standalone"
    scheduler: str = "shoal"
    """The profile under which attempts are counted."""


class SchedulingLoop(Protocol):
    @property
    def cluster(self) -> Cluster: ...


class Telemetry:
    """One for a process. `events` and `about`: where refusals of RBAC are told besides the log."""

    def __init__(
        self,
        version: str,
        clock: Clock,
        measured: Measured,
        events: Recorder | None = None,
        about: Obj | None = None,
    ) -> None:
        self.registry = Registry()
        self.requests = RequestMetrics(self.registry)
        self.forbidden = ForbiddenReporter(events, about)
        self._scheduling = SchedulingMetrics(self.registry)
        self._leader = LeaderMetrics(self.registry)
        self.queues = QueueMetrics(self.registry, measured.role)
        self._clock = clock
        self._measured = measured
        self._fault = "it has not started yet"
        self.scheduling = self._observer()
        measure_process(self.registry, version, time())
        refused = Head("gauge", "shoal_rules_missing", "Kinds of requests that RBAC refused.")
        self.registry.reads(refused, lambda: [((), len(self.forbidden))])

    # -- the way to the server --------------------------------------------------------------------------------------

    def observed(self, api: Api) -> Api:
        return ObservedApi(api, self._clock, Observers(self.requests, self.forbidden, lambda: self.scheduling))

    # -- the door ---------------------------------------------------------------------------------------------------

    async def open(self, life: ProcessTasks, settings: MetricsEndpointSettings) -> str:
        """Where it is; it is closed with the life. Raises UserError where the address cannot be had."""
        health = Health({}, {"informer-sync": lambda: self._fault})
        door = MetricsEndpoint(self.registry, health, settings)
        await door.start()
        life.at_end(door.close)
        return door.address

    def text(self) -> str:
        """All metrics, for an endpoint of another part."""
        return text_of(self.registry.read()).decode()

    def stands_by(self) -> None:
        """Another process leads: this one is ready to."""
        self._leader.stands_by(self._measured.lease)
        self._fault = ""

    def begins(self) -> None:
        """This process leads, or is the only one; its caches are not synced yet."""
        self._leader.leads(self._measured.lease)
        self._fault = "what is followed is not known yet"

    def works(self) -> None:
        """Everything that is followed is known."""
        self._fault = ""

    # -- who is measured --------------------------------------------------------------------------------------------

    def follow_scheduler(self, scheduling: SchedulingLoop, pods: Informer, schedulers: Sequence[str]) -> PlanExecutor:
        """PlanExecutor to be put before the others of the brain. Called anew for a brain that follows another."""
        cluster = scheduling.cluster
        observer = self.scheduling = self._observer(cluster)
        waits = PodWaits(observer, self._clock, schedulers)
        waits.follow(pods)
        measure_fleet(self.registry, cluster, lambda: observer.refused, lambda: waits.gated)
        return observer

    def gang_rolled_back(self) -> None:
        self._scheduling.rolled_back.of().inc()

    def follow_queues(self, discipline: AdmissionDiscipline, watched: Watched) -> None:
        self.queues.follow(QueueLevels(discipline, watched, self._clock.seconds))
        discipline.measure(self.queues.around)

    def follow_workloads(self, workloads: Informer) -> None:
        """Their conditions; once they are served."""
        follow_workloads(self.queues, workloads)

    def follow_lines(self, waiting: Callable[[], Sequence[tuple[str, int]]]) -> None:
        """How many objects wait to be looked at by each controller; each name once."""
        head = Head("gauge", "workqueue_depth", "Objects that wait to be looked at.", ("name",))
        self.registry.reads(head, lambda: [((name,), count) for name, count in waiting()])

    # Inside

    def _observer(self, cluster: Cluster | None = None) -> SchedulingObserver:
        profile = self._measured.scheduler

        def members(group: str) -> list[str]:
            gang = cluster.gangs.find(group) if cluster is not None else None
            return [] if gang is None else list(gang.waiting)

        # Bindings of a brain that was ended are not under way any more.
        self._scheduling.in_flight.of().set(0)
        return SchedulingObserver(self._scheduling, lambda _: profile, members)


def door_settings(text: str, where: str = "--metrics-address") -> MetricsEndpointSettings | None:
    """`HOST:PORT`, `:PORT`, `[::1]:8080`; None for `none`."""
    if text.strip() == _NONE:
        return None
    host, colon, port = text.strip().rpartition(":")
    if not colon or not port.isdecimal() or int(port) > _MOST_PORT or (":" in host and not host.startswith("[")):
        raise UserError("is no address", where=Where(path=where), fix="write HOST:PORT, as in 127.0.0.1:8080, or none")
    return MetricsEndpointSettings(host.strip("[]") or MetricsEndpointSettings().host, int(port))
