"""A small cluster in which RBAC decides, with all of Shoal beside it as one user whose refusals are noted.

async with ruled_cluster(tmp_path) as ruled:
    ruled.start_shoal("system:shoal")
    ...
    assert ruled.refused == []
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from build.live_schedulers import LiveScheduler
from build.small_clusters import START_S, SmallCluster
from shoal.client.clock import LoopClock
from shoal.client.item import Obj
from shoal.client.kind import CLUSTER_ROLES, CONFIG_MAPS, DEFINITIONS, NAMESPACES, SERVICE_ACCOUNTS, Kind
from shoal.client.port import Api, Patch
from shoal.client.refusals import ForbiddenError
from shoal.controllers.gatekeeping.installer import gatekeeping_controller
from shoal.controllers.queued_jobs.controller import queued_jobs_controller
from shoal.controllers.queued_pods.controller import queued_pods_controller
from shoal.controllers.queues.admission_loop import QueueAdmission
from shoal.controllers.scheduling_loop.disciplines import Disciplines, Onward
from shoal.controllers.volcano.admission import VolcanoAdmission
from shoal.controllers.volcano.controller import volcano_controller
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.foreign.definitions import definitions_of, tables
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.embedded.apiserver.server.control_plane import open_plane
from shoal.embedded.apiserver.settings import Settings
from shoal.embedded.apiserver.storage.memory import MemoryStorage
from shoal.store.watched.queues import WatchedQueues
from shoal.telemetry.forbidden import ForbiddenReporter
from shoal.telemetry.observed_api import ObservedApi, Observers

_RBAC = "rbac.authorization.k8s.io"
KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        NAMESPACES,
        CONFIG_MAPS,
        SERVICE_ACCOUNTS,
        CLUSTER_ROLES,
        Kind(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", is_namespaced=False),
        Kind(_RBAC, "v1", "roles", "Role"),
        Kind(_RBAC, "v1", "rolebindings", "RoleBinding"),
    )
}


class Noted(ForbiddenReporter):
    """Everything that RBAC refused, also what was told before."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: list[str] = []

    def report(self, error: ForbiddenError, now_s: float = 0.0) -> bool:
        if error.verb:
            self.refused.append(f"{error.verb} {error.resource}.{error.group} {error.namespace}".strip())
        return super().report(error)


class RuledCluster:
    def __init__(self, cluster: SmallCluster) -> None:
        self.cluster = cluster
        self.noted = Noted()

    @property
    def refused(self) -> list[str]:
        return sorted(set(self.noted.refused))

    def way_in(self, user: str) -> Api:
        actor = Actor(user, ("system:authenticated",))
        api = InsideApi(self.cluster.plane, actor, "shoal")
        return ObservedApi(api, self.cluster.clock, Observers(None, self.noted))

    async def apply(self, objects: Sequence[Obj]) -> None:
        for obj in objects:
            meta, kind = obj["metadata"], KINDS[obj["kind"]]
            patch = Patch("apply", obj, force=True)
            await self.cluster.api.patch(kind, meta.get("namespace", ""), meta["name"], patch)

    def start_scheduler(self, user: str) -> LiveScheduler:
        live = LiveScheduler(self.cluster, self.way_in(user))
        live.start()
        return live

    def start_shoal(self, user: str) -> LiveScheduler:
        """Scheduler, queues, jobs, pods, the gatekeeper and Volcano's kinds, in one process."""
        live = LiveScheduler(self.cluster, self.way_in(user))
        context, served = live.context, live.served
        watched = WatchedQueues(context, served, live.loop.wake, None)
        disciplines = Disciplines(live.loop.intake, live.loop.clock)
        disciplines.add(lambda onward: _volcano(live, onward))
        disciplines.add(lambda _: QueueAdmission(context, watched, live.loop))
        live.loop.discipline = disciplines
        others = (
            queued_jobs_controller(context, served),
            queued_pods_controller(context, served),
            gatekeeping_controller(context, served),
            volcano_controller(context, served),
        )
        live.start()
        for controller in others:
            task = asyncio.ensure_future(controller.run())
            live.tasks.append(task)
            self.cluster.tasks.append(task)
        return live


@asynccontextmanager
async def ruled_cluster(folder: Path, *projects: str) -> AsyncIterator[RuledCluster]:
    """`projects`: whose kinds are served."""
    clock = LoopClock(START_S)
    settings = Settings(None, folder / "kubeconfig", authorization="rbac")
    plane = await open_plane(settings, ("127.0.0.1", 1), MemoryStorage(), clock)
    cluster = SmallCluster(plane, clock, 1)
    following = asyncio.ensure_future(cluster.informers.run())
    try:
        for file, table in tables():
            if table.project in projects:
                for definition in definitions_of(file, table):
                    await cluster.create(DEFINITIONS, definition)
        await clock.sleep(2)
        yield RuledCluster(cluster)
        broken = [task for task in cluster.tasks if task.done()]
        assert not broken, [task.exception() for task in broken]
    finally:
        for task in (following, *cluster.tasks):
            task.cancel()
        await asyncio.gather(following, *cluster.tasks, return_exceptions=True)
        await plane.close()


def _volcano(live: LiveScheduler, onward: Onward) -> VolcanoAdmission:
    made = VolcanoAdmission(live.context, live.served, live.loop, onward=onward)
    live.loop.queue_steps.add(made)
    return made
