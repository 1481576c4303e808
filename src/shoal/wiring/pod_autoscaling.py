"""Starts the part `pod-autoscaling` of `shoal run`: ScaledObjects, model servers, and the metrics APIs.

ScaledObjects and ScaledJobs run where KEDA's kinds are and KEDA is not. Sizes are written by the scale of each object.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

import aiohttp

from shoal.api.pod_autoscaling_rules import PodAutoscalingRules
from shoal.api.selectors import Selector
from shoal.autoscale.exposed_metrics.documents import CUSTOM, CUSTOM_VERSIONS, EXTERNAL, EXTERNAL_VERSION
from shoal.autoscale.scaled_objects.trigger_addresses import TriggerAddresses, read_network
from shoal.autoscale.scaled_objects.trigger_sources import HttpRequest
from shoal.autoscale.scaled_objects.triggers import OWNER_LABEL
from shoal.client import presence
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import LEADER_WORKER_SETS, SCALED_JOBS, SCALED_OBJECTS
from shoal.client.fetched_text import fetched_text
from shoal.client.kind import AUTOSCALERS, DEPLOYMENTS, JOBS, NAMESPACES, NODES, PODS, STATEFUL_SETS, Kind
from shoal.client.presence import Presence
from shoal.client.scaling import ScalingApi
from shoal.client.served import Served
from shoal.controllers.scaled_objects.controller import scaled_object_controller
from shoal.controllers.scaled_objects.metric_source import MetricSource
from shoal.controllers.scaled_objects.scaled_jobs_controller import scaled_job_controller
from shoal.controllers.scaled_objects.sources.http import HttpSource
from shoal.controllers.serving.controller import serving_scaler
from shoal.controllers.serving.server_metrics import ServerMetrics
from shoal.embedded.kubelets.endpoint.custom_metrics_routes import CustomMetricsRoutes
from shoal.embedded.kubelets.endpoint.external_metrics_routes import ExternalMetricsRoutes, ExternalValues
from shoal.units.errors import ShoalError
from shoal.wiring.exporter_series import ExporterSeries
from shoal.wiring.metrics_apis_server import MetricsApisServer, leads_elsewhere, read_trust
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.prometheus_source import PrometheusSource, rules_of_file
from shoal.wiring.run_choice import RunChoice
from shoal.wiring.scaled_objects import TriggerMetrics

_log = logging.getLogger("shoal.autoscaling")
_EXTERNAL_API = f"{EXTERNAL_VERSION}.{EXTERNAL}"
_GROUPS = (*((CUSTOM, version) for version in CUSTOM_VERSIONS), (EXTERNAL, EXTERNAL_VERSION))
_REGISTER_EVERY_S = 60.0
_PATIENCE_S = 5.0


def start_pod_autoscaling(
    tasks: ProcessTasks, context: Context, scaling: ScalingApi, served: Served, choice: RunChoice
) -> None:
    """Before the caches run."""
    for kind in (PODS, NODES, NAMESPACES, AUTOSCALERS, JOBS):
        context.informers.of(kind)
    rules = choice.own.pod_autoscaling
    http = HttpSource(TriggerAddresses(tuple(map(read_network, rules.trigger_networks))))
    tasks.at_end(http.close)
    source = MetricSource(context, http)
    keda = Presence(context, presence.KEDA, rules.keda_namespace)

    async def keda_runs() -> bool:
        """KEDA's leader renews a Lease; or another server serves external metrics, which only one can."""
        await keda.look()
        return keda.is_there or await leads_elsewhere(context.api, _EXTERNAL_API, rules)

    def start_objects(_: Kind) -> None:
        tasks.start("scaled objects", scaled_object_controller(context, scaling, source, keda_runs).run)

    def start_jobs(_: Kind) -> None:
        tasks.start("scaled jobs", scaled_job_controller(context, source.values, keda_runs).run)

    async def fetch(url: str) -> bytes:
        return await http.get(HttpRequest(url))

    def start_serving(kind: Kind) -> None:
        tasks.start(f"serving {kind.plural}", serving_scaler(context, kind, scaling, ServerMetrics(fetch)).run)

    served.when_there(SCALED_OBJECTS, start_objects)
    served.when_there(SCALED_JOBS, start_jobs)
    served.when_there(LEADER_WORKER_SETS, start_serving)
    for kind in (DEPLOYMENTS, STATEFUL_SETS):
        start_serving(kind)
    tasks.start("metrics APIs", lambda: _serve(tasks, context, source, choice))


async def _serve(tasks: ProcessTasks, context: Context, source: MetricSource, choice: RunChoice) -> None:
    """Returns never. A cluster whose API server names no proxy gets no metrics APIs, and the rest goes on."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_PATIENCE_S)) as session:
        series = ExporterSeries(context, partial(fetched_text, session))
        tasks.start("series of exporters", series.run)
        rules = choice.own.pod_autoscaling
        try:
            prometheus = _prometheus(context, session, rules)
            if prometheus is not None:
                tasks.start("metrics of prometheus", prometheus.run)
            external = _ExternalMetrics(TriggerMetrics(source), prometheus)
            routes = [
                *CustomMetricsRoutes(series, series.node_labels, prometheus).routes(),
                *ExternalMetricsRoutes(external, context.clock.seconds).routes(),
            ]
            server = MetricsApisServer(rules, await read_trust(context.api), routes)
            await server.start()
        except ShoalError as error:
            _log.warning("custom and external metrics are not served: %s", error)
            await asyncio.Event().wait()
            return
        tasks.at_end(server.stop)
        _log.info("the metrics APIs listen on %s:%d", rules.address, server.port)
        known: Sequence[str] | None = None
        while True:
            try:
                written = await server.register(context.api, _GROUPS)
                if written != known:
                    known = written
                    _log.info("%s", _registered(written, rules.service_namespace, rules.service_name))
            except ShoalError as error:
                _log.warning("the metrics APIs cannot be registered: %s", error)
            await context.clock.sleep(_REGISTER_EVERY_S)


def _prometheus(
    context: Context, session: aiohttp.ClientSession, rules: PodAutoscalingRules
) -> PrometheusSource | None:
    """Raises UserError for rules that cannot be read."""
    if not rules.prometheus_url:
        return None

    async def ask(path: str, query: Mapping[str, str]) -> str:
        return await fetched_text(session, f"{rules.prometheus_url.rstrip('/')}{path}?{urlencode(query)}")

    return PrometheusSource(ask, rules_of_file(Path(rules.prometheus_rules)), context.clock)


class _ExternalMetrics:
    """Implements ExternalSource: those of triggers, and those of a Prometheus server."""

    def __init__(self, triggers: TriggerMetrics, prometheus: PrometheusSource | None) -> None:
        self._triggers = triggers
        self._prometheus = prometheus

    async def values(self, namespace: str, name: str, selector: Selector) -> ExternalValues:
        if self._prometheus is not None and not any(one.key == OWNER_LABEL for one in selector.requirements or ()):
            found = await self._prometheus.values(namespace, name, selector)
            if found is not None:
                return found
        return await self._triggers.values(namespace, name, selector)

    def names(self) -> Sequence[str]:
        others = self._prometheus.names() if self._prometheus is not None else ()
        return sorted({*self._triggers.names(), *others})


def _registered(written: Sequence[str], namespace: str, name: str) -> str:
    if written:
        return f"registered the APIServices {', '.join(written)}"
    return f"no APIService is registered: there is no Service {namespace}/{name}, or other servers serve these metrics"
