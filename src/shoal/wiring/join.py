"""Runs generic controllers or simulated nodes in a process of their own, against any server, over HTTP."""

from __future__ import annotations

from collections.abc import Callable

from shoal.client.http.access import Access
from shoal.client.http.settings import KubeSettings
from shoal.client.kind import CLUSTER_ROLES
from shoal.client.port import Api
from shoal.client.refusals import ForbiddenError, NotFoundError
from shoal.wiring.cluster_options import ClusterOptions
from shoal.wiring.nodes import start_nodes
from shoal.wiring.process import Pacing, client_for, live
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.provided import has_metrics, provide_metrics
from shoal.wiring.simulator_check import check_not_simulated

_PATIENCE_S = 60.0
_OWN_ROLE = "system:shoal:fleet"
"""A role that only the embedded server has from the start."""


def run_nodes(access: Access, options: ClusterOptions, ready: Callable[[str], None]) -> None:
    """Blocks until SIGINT or SIGTERM. `ready` is called with the URL of the metrics."""

    async def begin(tasks: ProcessTasks) -> None:
        await check_not_simulated(tasks.api, [machine.name for machine in options.machines])
        tasks.start("caches", tasks.informers.run)
        kubelets = client_for(tasks, access, KubeSettings(manager="kubelet"))
        fleet, ports, ca = await start_nodes(tasks, kubelets, options, is_own=options.is_child)
        await tasks.nodes_ready(fleet.names(), _PATIENCE_S)
        if await _is_embedded(tasks.api) and not await has_metrics(tasks.api):
            # Only the embedded server finds endpoints on this machine by their annotation.
            await provide_metrics(tasks.api, ports, ca)
        ready(ports.metrics_url)

    live(access, Pacing(options.speed, options.since, is_child=options.is_child), begin)


def run_controllers(access: Access, options: ClusterOptions, ready: Callable[[str], None]) -> None:
    """Blocks until SIGINT or SIGTERM. All controllers act as the kubeconfig's user, each with its own field manager."""

    async def begin(tasks: ProcessTasks) -> None:
        tasks.start_controllers(
            options.controllers, lambda _, name: client_for(tasks, access, KubeSettings(manager=name))
        )
        tasks.start("caches", tasks.informers.run)
        await tasks.informers.synced()
        ready(f"{len(options.controllers)} controllers")

    live(access, Pacing(options.speed, options.since, is_child=options.is_child), begin)


async def _is_embedded(api: Api) -> bool:
    try:
        await api.get(CLUSTER_ROLES, "", _OWN_ROLE)
    except (NotFoundError, ForbiddenError):
        return False
    return True
