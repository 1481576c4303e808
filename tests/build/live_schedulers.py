"""A scheduler beside a small cluster: it places the pods that name `shoal`, and can be killed and followed by another.

    async with small_cluster(tmp_path) as cluster:
        scheduler = start_scheduler(cluster)
        await add_node(cluster, "n1", gpus=8)
        await cluster.create(PODS, pod("a", gpus=1))
        await cluster.until(lambda: is_bound(cluster, "a"))
        await scheduler.kill()

`prepare` is called before the scheduler starts: further controllers are added there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from build.small_clusters import SmallCluster
from shoal.client.context import Context
from shoal.client.informers import Informers
from shoal.client.item import Obj
from shoal.client.kind import NODES, PODS
from shoal.client.port import Api
from shoal.client.recorder import Recorder
from shoal.client.served import Served
from shoal.client.write_through import WriteThroughApi
from shoal.controllers.scheduling_loop.scheduling_loop import SchedulingLoopSettings
from shoal.engine.cluster import Cluster
from shoal.engine.placement import Placement
from shoal.engine.pod_mix import PodMix
from shoal.engine.profile import DEFAULT_POLICY, profile_named
from shoal.store.watched.cluster import WatchSettings
from shoal.wiring.scheduling_loop import new_scheduling_loop

Prepare = Callable[["LiveScheduler"], None]


class LiveScheduler:
    """One process: caches of its own, a scheduler and its writers."""

    def __init__(
        self,
        cluster: SmallCluster,
        api: Api | None = None,
        watch: WatchSettings | None = None,
        settings: SchedulingLoopSettings | None = None,
        rolled_back: Callable[[], None] = lambda: None,
    ) -> None:
        api = api or cluster.api
        self._cluster = cluster
        self.informers = Informers(api, cluster.clock, cluster.draw)
        learning, recorder = WriteThroughApi(api, self.informers), Recorder(api, cluster.clock, "shoal-scheduler")
        self.context = Context("shoal-scheduler", learning, self.informers, cluster.clock, cluster.draw, recorder)
        self.served = Served(self.context)
        self.loop = new_scheduling_loop(
            self.context,
            self.served,
            watch or WatchSettings(),
            _placement,
            settings or SchedulingLoopSettings(),
            rolled_back,
        )
        self.tasks: list[asyncio.Task[Any]] = []

    def start(self) -> None:
        runs = (self.informers.run(), self.served.run(), self.loop.run(), self.context.events.run())
        self.tasks = [asyncio.ensure_future(run) for run in runs]
        self._cluster.tasks += self.tasks

    async def kill(self) -> None:
        """In the middle of whatever it does; a fault of its own is the test's."""
        broken = [task.exception() for task in self.tasks if task.done() and not task.cancelled()]
        for task in self.tasks:
            task.cancel()
            self._cluster.tasks.remove(task)
        await asyncio.gather(*self.tasks, return_exceptions=True)
        assert not broken, broken


def _placement(cluster: Cluster) -> Placement:
    return Placement(cluster, profile_named(DEFAULT_POLICY, cluster, PodMix()))


def start_scheduler(
    cluster: SmallCluster,
    api: Api | None = None,
    *,
    watch: WatchSettings | None = None,
    settings: SchedulingLoopSettings | None = None,
    prepare: Prepare | None = None,
) -> LiveScheduler:
    """It ends with the cluster."""
    live = LiveScheduler(cluster, api, watch, settings)
    if prepare is not None:
        prepare(live)
    live.start()
    return live


async def add_node(
    cluster: SmallCluster,
    name: str,
    *,
    gpus: int = 0,
    cpu: str = "8",
    memory: str = "32Gi",
    pods: int = 110,
    labels: dict[str, str] | None = None,
    taints: list[Obj] | None = None,
) -> None:
    """Without the taint that the server puts on nodes nobody has called ready."""
    has = {"cpu": cpu, "memory": memory, "pods": str(pods)} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}
    await cluster.create(NODES, {"metadata": meta, "status": {"capacity": has, "allocatable": has}})
    await cluster.patch(NODES, name, {"spec": {"taints": taints}})


def pod(
    name: str,
    *,
    gpus: int = 0,
    cpu: str = "",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> Obj:
    """For Shoal to place; `spec` may name another scheduler."""
    resources: Obj = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    if cpu:
        resources["requests"] = {"cpu": cpu}
    container = {"name": "main", "image": "pause", "resources": resources}
    meta = {"name": name, "labels": labels or {}, "annotations": annotations or {}}
    return {"metadata": meta, "spec": {"schedulerName": "shoal", "containers": [container], **spec}}


async def places(cluster: SmallCluster) -> dict[str, str]:
    """Pod -> node, empty while it has none."""
    return {one["metadata"]["name"]: one["spec"].get("nodeName", "") for one in await cluster.pods()}


async def is_bound(cluster: SmallCluster, *names: str) -> bool:
    there = await places(cluster)
    return all(there.get(name) for name in names)


async def condition(cluster: SmallCluster, name: str, type_: str = "PodScheduled") -> Obj:
    status = (await cluster.get(PODS, name)).get("status", {})
    return next((one for one in status.get("conditions", ()) if one["type"] == type_), {})
