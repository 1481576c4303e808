"""Starts a fleet of simulated nodes and its endpoints, against any API server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from shoal.client.kind import CONFIG_MAPS
from shoal.client.refusals import NotFoundError
from shoal.embedded.apiserver.dynamic.endpoints import ANNOTATION as ENDPOINT
from shoal.embedded.gpus.contention import Contention
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.kubelets.endpoint.api_server_trust import NAME, NAMESPACE, trusting
from shoal.embedded.kubelets.endpoint.endpoint import Endpoint, EndpointSettings, Ports
from shoal.embedded.kubelets.fleet import Fleet
from shoal.embedded.kubelets.settings import FleetSettings
from shoal.units.errors import BugError, UserError
from shoal.wiring.cluster_options import ClusterOptions
from shoal.wiring.process_tasks import ProcessTasks

if TYPE_CHECKING:
    from shoal.client.item import Obj
    from shoal.client.port import Api
    from shoal.embedded.kubelets.node_view import NodeView
    from shoal.embedded.machines.machine import Machine

_MANY, _LEASE_S, _MANY_LEASE_S, _ELSEWHERE_S = 100, 10.0, 40.0, 20.0
"""Fleets above that size renew their leases as seldom as Kubernetes bears; beside a server that others load as well, so
that a renewal may be lost."""
_METRICS_PORT = 9400
_METRICS = "shoal.dev/metrics"


async def start_nodes(
    life: ProcessTasks, api: Api, cast: ClusterOptions, figures: Callable[[], str] = str, *, is_own: bool = True
) -> tuple[Fleet, Ports, str]:
    """The fleet, where its doors are, and what their certificate is signed with. `api` is the kubelets' way in;
    `figures` are told beside the fleet's own; `is_own`: the server is that of this cluster."""
    nodes = _Expected()
    endpoint, ports = await _doors(life, nodes, cast, figures)
    machines = [_with_doors(machine, ports) for machine in cast.machines]
    fleet = Fleet(life.context("kubelet", api), machines, _fleet_settings(cast, ports, is_own=is_own))
    nodes.fleet = fleet
    life.start("nodes", fleet.run)
    return fleet, ports, endpoint.ca


async def _doors(
    life: ProcessTasks, nodes: _Expected, cast: ClusterOptions, figures: Callable[[], str]
) -> tuple[Endpoint, Ports]:
    """The open endpoints. Without a chosen port, the usual one, or any free one if it is in use."""
    trust = await _trust(life.api)
    wanted = (_METRICS_PORT, 0) if cast.metrics_port is None else (cast.metrics_port,)
    for port in wanted:
        settings = EndpointSettings(kubelet_port=cast.kubelet_port, metrics_port=port, figures=figures)
        if cast.kubelet_address:
            settings = msgspec.structs.replace(settings, host=cast.kubelet_address)
        endpoint = Endpoint(nodes, trusting(settings, trust), life.clock.seconds, life.node_labels)
        try:
            ports = await endpoint.start()
        except UserError:
            if port == wanted[-1]:
                raise
            continue
        life.at_end(endpoint.stop)
        return endpoint, ports
    raise BugError("no port was tried")


def _with_doors(machine: Machine, ports: Ports) -> Machine:
    doors = {ENDPOINT: ports.kubelet_url, _METRICS: f"{ports.metrics_url}/nodes/{machine.name}/metrics"}
    return msgspec.structs.replace(machine, annotations={**machine.annotations, **doors})


async def _trust(api: Api) -> Obj | None:
    """Whose certificates the doors let in."""
    try:
        return (await api.get(CONFIG_MAPS, NAMESPACE, NAME)).obj()
    except NotFoundError:
        return None


def lease_s(nodes: int, *, is_own: bool) -> float:
    """How often that many nodes renew theirs."""
    if nodes <= _MANY:
        return _LEASE_S
    return _MANY_LEASE_S if is_own else _ELSEWHERE_S


def _fleet_settings(cast: ClusterOptions, ports: Ports, *, is_own: bool) -> FleetSettings:
    return FleetSettings(
        lease_every_s=lease_s(len(cast.machines), is_own=is_own),
        kubelet_address=cast.kubelet_address,
        kubelet_port=ports.kubelet_port,
        stage_folders=cast.stages,
        gpus=lambda machine: DeviceManager(machine, Contention(is_on=cast.has_contention)),
    )


class _Expected:
    """The nodes of a fleet that needs to know the doors that need to know the nodes."""

    def __init__(self) -> None:
        self.fleet: Fleet | None = None

    def node(self, name: str) -> NodeView | None:
        return self.fleet.node(name) if self.fleet is not None else None

    def names(self) -> Sequence[str]:
        return self.fleet.names() if self.fleet is not None else ()
