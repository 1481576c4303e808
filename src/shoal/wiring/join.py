"""Controllers or nodes in a process of their own, against any server: the same parts as in `up`, over HTTP."""

from __future__ import annotations

from collections.abc import Callable

from shoal.client.http.access import Access
from shoal.client.http.settings import KubeSettings
from shoal.client.kind import CLUSTER_ROLES
from shoal.client.port import Api
from shoal.client.refusals import ForbiddenError, NotFoundError
from shoal.wiring.cluster_options import ClusterOptions
from shoal.wiring.nodes import start_nodes
from shoal.wiring.process import Pacing, live, way_in
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.provided import has_metrics, provide_metrics
from shoal.wiring.simulator_check import check_untended

_PATIENCE_S = 60.0
_OWN_ROLE = "system:shoal:fleet"
"""Among the roles that only Shoal's own server has from the start."""


def run_nodes(access: Access, cast: ClusterOptions, ready: Callable[[str], None]) -> None:
    """Until SIGINT or SIGTERM. `ready` is called with where metrics are."""

    async def begin(life: ProcessTasks) -> None:
        await check_untended(life.api, [machine.name for machine in cast.machines])
        life.start("caches", life.informers.run)
        kubelets = way_in(life, access, KubeSettings(manager="kubelet"))
        fleet, ports, ca = await start_nodes(life, kubelets, cast, is_own=cast.is_child)
        await life.nodes_ready(fleet.names(), _PATIENCE_S)
        if await _is_embedded(life.api) and not await has_metrics(life.api):
            # Only Shoal's own server finds doors on this machine by their annotation.
            await provide_metrics(life.api, ports, ca)
        ready(ports.metrics_url)

    live(access, Pacing(cast.speed, cast.since, is_child=cast.is_child), begin)


def run_controllers(access: Access, cast: ClusterOptions, ready: Callable[[str], None]) -> None:
    """Until SIGINT or SIGTERM; all as the kubeconfig's user, each under its own name as a manager of fields."""

    async def begin(life: ProcessTasks) -> None:
        life.start_controllers(cast.controllers, lambda _, name: way_in(life, access, KubeSettings(manager=name)))
        life.start("caches", life.informers.run)
        await life.informers.synced()
        ready(f"{len(cast.controllers)} controllers")

    live(access, Pacing(cast.speed, cast.since, is_child=cast.is_child), begin)


async def _is_embedded(api: Api) -> bool:
    try:
        await api.get(CLUSTER_ROLES, "", _OWN_ROLE)
    except (NotFoundError, ForbiddenError):
        return False
    return True
