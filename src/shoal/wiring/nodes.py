"""Starts a fleet of simulated nodes and its endpoints, against any API server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from shoal.client.kind import CONFIG_MAPS
from shoal.client.refusals import NotFoundError
from shoal.embedded.apiserver.dynamic.endpoints import ANNOTATION as ENDPOINT
from shoal.embedded.gpus.contention import ContentionSettings
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.kubelets.endpoint.api_server_trust import NAME, NAMESPACE, trusting
from shoal.embedded.kubelets.endpoint.endpoint import Endpoint, EndpointSettings, Ports
from shoal.embedded.kubelets.fleet import Fleet
from shoal.embedded.kubelets.settings import FleetSettings
from shoal.units.errors import BugError, UserError
from shoal.wiring.cluster_options import ClusterOptions
from shoal.wiring.measured_nodes import AllNodes
from shoal.wiring.process_tasks import ProcessTasks

if TYPE_CHECKING:
    from shoal.client.item import Obj
    from shoal.client.port import Api
    from shoal.embedded.kubelets.endpoint.external_metrics_routes import ExternalSource
    from shoal.embedded.kubelets.node_view import MeasuredNodes, NodeView
    from shoal.embedded.machines.machine import Machine

_MANY, _LEASE_S, _MANY_LEASE_S, _ELSEWHERE_S = 100, 10.0, 40.0, 20.0
"""Larger fleets renew their leases as seldom as Kubernetes allows; with another server, often enough that one lost
renewal does no harm."""
_METRICS_PORT = 9400
_METRICS = "shoal.dev/metrics"


async def start_nodes(
    tasks: ProcessTasks,
    api: Api,
    options: ClusterOptions,
    figures: Callable[[], str] = str,
    *,
    is_own: bool = True,
    others: MeasuredNodes | None = None,
    external: ExternalSource | None = None,
) -> tuple[Fleet, Ports, str]:
    """Returns the fleet, the ports of its endpoints, and the CA of their certificate. `api` is the client of the
    kubelets; `figures` are metrics to serve beside the fleet's own; `is_own`: the server is the embedded one of this
    cluster; `others`: further nodes whose usage is served with that of the fleet; `external`: the metrics of
    external.metrics.k8s.io."""
    nodes = _LateFleet()
    endpoint, ports = await _endpoint(
        tasks, nodes, options, EndpointSettings(figures=figures, measured=AllNodes(nodes, others), external=external)
    )
    with_endpoint = _endpoint_of(ports)
    machines = [with_endpoint(machine) for machine in options.machines]
    fleet = Fleet(tasks.context("kubelet", api), machines, _fleet_settings(options, ports, is_own=is_own))
    nodes.fleet = fleet
    tasks.start("nodes", fleet.run)
    if options.cloud is not None:
        from shoal.embedded.cloud.machines import CloudMachines

        machines_of_cloud = CloudMachines(tasks.context("cloud", tasks.api), fleet, options.cloud, with_endpoint)
        tasks.start("machines of the cloud", machines_of_cloud.run)
    return fleet, ports, endpoint.ca


async def _endpoint(
    tasks: ProcessTasks, nodes: _LateFleet, options: ClusterOptions, served: EndpointSettings
) -> tuple[Endpoint, Ports]:
    """The open endpoints. Without a chosen port, the usual one, or any free one if it is in use."""
    trust = await _trust(tasks.api)
    wanted = (_METRICS_PORT, 0) if options.metrics_port is None else (options.metrics_port,)
    for port in wanted:
        settings = msgspec.structs.replace(served, kubelet_port=options.kubelet_port, metrics_port=port)
        if options.kubelet_address:
            settings = msgspec.structs.replace(settings, host=options.kubelet_address)
        endpoint = Endpoint(nodes, trusting(settings, trust), tasks.clock.seconds, tasks.node_labels)
        try:
            ports = await endpoint.start()
        except UserError:
            if port == wanted[-1]:
                raise
            continue
        tasks.at_end(endpoint.stop)
        return endpoint, ports
    raise BugError("no port was tried")


def _endpoint_of(ports: Ports) -> Callable[[Machine], Machine]:
    """Returns what adds to a machine where its kubelet and its metrics are."""

    def with_endpoint(machine: Machine) -> Machine:
        annotations = {ENDPOINT: ports.kubelet_url, _METRICS: f"{ports.metrics_url}/nodes/{machine.name}/metrics"}
        return msgspec.structs.replace(machine, annotations={**machine.annotations, **annotations})

    return with_endpoint


async def _trust(api: Api) -> Obj | None:
    """The certificates that the endpoints accept."""
    try:
        return (await api.get(CONFIG_MAPS, NAMESPACE, NAME)).obj()
    except NotFoundError:
        return None


def lease_s(nodes: int, *, is_own: bool) -> float:
    """The interval at which that many nodes renew their leases."""
    if nodes <= _MANY:
        return _LEASE_S
    return _MANY_LEASE_S if is_own else _ELSEWHERE_S


def _fleet_settings(options: ClusterOptions, ports: Ports, *, is_own: bool) -> FleetSettings:
    return FleetSettings(
        lease_every_s=lease_s(len(options.machines), is_own=is_own),
        kubelet_address=options.kubelet_address,
        kubelet_port=ports.kubelet_port,
        stage_folders=options.stages,
        gpus=lambda machine: DeviceManager(machine, ContentionSettings(is_on=options.has_contention)),
    )


class _LateFleet:
    """The nodes of a fleet that is made after its endpoints."""

    def __init__(self) -> None:
        self.fleet: Fleet | None = None

    def node(self, name: str) -> NodeView | None:
        return self.fleet.node(name) if self.fleet is not None else None

    def names(self) -> Sequence[str]:
        return self.fleet.names() if self.fleet is not None else ()
