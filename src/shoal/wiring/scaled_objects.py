"""Starts the controllers of ScaledObjects and ScaledJobs in the embedded cluster, and answers its autoscalers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from shoal.api.selectors import Selector
from shoal.autoscale.scaled_objects.trigger_addresses import TriggerAddresses
from shoal.autoscale.scaled_objects.trigger_sources import HttpRequest
from shoal.client.ecosystem_kinds import LEADER_WORKER_SETS
from shoal.client.kind import DEPLOYMENTS, STATEFUL_SETS
from shoal.controllers.scaled_objects.controller import scaled_object_controller
from shoal.controllers.scaled_objects.metric_source import MetricSource
from shoal.controllers.scaled_objects.scaled_jobs_controller import scaled_job_controller
from shoal.controllers.scaled_objects.sources.http import HttpSource
from shoal.controllers.serving.controller import serving_scaler
from shoal.controllers.serving.server_metrics import ServerMetrics
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.embedded.apiserver.inside.scaling import InsideScaling
from shoal.embedded.kubelets.addresses import is_simulated
from shoal.embedded.kubelets.endpoint.external_metrics_routes import ExternalValues
from shoal.units.errors import TemporaryError
from shoal.wiring.controllers import controller_actor
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.provided import EXTERNAL_APIS, is_served_elsewhere

if TYPE_CHECKING:
    from shoal.embedded.apiserver.server.control_plane import ControlPlane

_USER, _NAME = "scaled-object-controller", "keda-operator"
_SERVING = "serving-scaler"
SERVING_KINDS = (DEPLOYMENTS, STATEFUL_SETS, LEADER_WORKER_SETS)
"""The kinds whose model servers are scaled."""


class TriggerMetrics:
    """Implements ExternalSource."""

    def __init__(self, source: MetricSource) -> None:
        self._source = source

    async def values(self, namespace: str, name: str, selector: Selector) -> ExternalValues:
        labels, milli = await self._source.external_value(namespace, name, selector)
        return [(name, labels, milli)]

    def names(self) -> Sequence[str]:
        return self._source.external_names()


def start_scaled_objects(tasks: ProcessTasks, plane: ControlPlane, addresses: TriggerAddresses) -> TriggerMetrics:
    """Before the caches run."""
    actor = controller_actor(_USER)
    context = tasks.context(_NAME, InsideApi(plane, actor, _NAME))
    http = HttpSource(addresses)
    tasks.at_end(http.close)
    source = MetricSource(context, http)

    async def keda_runs() -> bool:
        """Only one server can serve external metrics; if it is another one, it is KEDA or serves its metrics."""
        return any([await is_served_elsewhere(context.api, *one) for one in EXTERNAL_APIS])

    controller = scaled_object_controller(context, InsideScaling(plane, actor, _NAME), source, keda_runs)
    tasks.start("scaled objects", controller.run)
    tasks.start("scaled jobs", scaled_job_controller(context, source.values, keda_runs).run)
    _start_serving(tasks, plane, http)
    return TriggerMetrics(source)


def _start_serving(tasks: ProcessTasks, plane: ControlPlane, http: HttpSource) -> None:
    """The scaling of model servers. Simulated pods serve nothing, so only pods of real machines are asked."""
    actor = controller_actor(_SERVING)

    async def fetch(url: str) -> bytes:
        host = urlsplit(url).hostname or ""
        if is_simulated(host):
            raise TemporaryError(f"{host} is a simulated pod, which serves no metrics", 1.0)
        return await http.get(HttpRequest(url))

    for kind in SERVING_KINDS:
        context = tasks.context(_SERVING, InsideApi(plane, actor, _SERVING))
        scaler = serving_scaler(context, kind, InsideScaling(plane, actor, _SERVING), ServerMetrics(fetch))
        tasks.start(f"serving {kind.plural}", scaler.run)
