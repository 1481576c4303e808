"""A whole cluster in calm weather and virtual time: nodes, Kubernetes' controllers, Shoal put together as it is.

    async with calm_cluster(tmp_path, machine("n0", gpus=8)) as cluster:
        await cluster.create(JOBS, queued("train", "a", 2, gpus=8))

`parts` without `scheduler` leave the pods to the cluster's own scheduler, and Shoal's queues to themselves.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from build.crews import Crew, Process, name_alike
from build.foreign_kinds import established
from build.small_clusters import SmallCluster, small_cluster
from build.storm_crews import NEEDED
from build.stormy_api import Weather
from shoal.api.run_configuration import RunConfiguration
from shoal.client.ecosystem_kinds import CLUSTER_QUEUES, KUEUE, LOCAL_QUEUES, WORKLOADS
from shoal.client.informers import Informers
from shoal.client.item import Obj
from shoal.client.kind import DEFINITIONS
from shoal.client.port import Api
from shoal.embedded.apiserver.foreign.definitions import definitions
from shoal.embedded.machines.machine import Machine
from shoal.engine.cycle import STEPS
from shoal.engine.profile import DEFAULT_POLICY, POLICIES
from shoal.wiring.controllers import CONTROLLERS, own_controllers
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.run_choice import RunChoice
from shoal.wiring.shoal import start_shoal

PARTS = ("scheduler", "queues", "jobs", "pods", "gatekeeper")
BESIDE_A_SCHEDULER = PARTS[1:]
GPU = "nvidia.com/gpu"
_QUEUE, _RANK = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"


class _Crew(Crew):
    """Those of Kubernetes' controllers that jobs need, and its scheduler where Shoal's is not there."""

    def __init__(self, cluster: SmallCluster, machines: Sequence[Machine], *, schedules: bool) -> None:
        self._schedules = schedules
        unneeded = (set(CONTROLLERS) | set(own_controllers(cluster.plane))) - set(NEEDED)
        super().__init__(cluster, machines, random.Random(1), without=unneeded)

    def _scheduler(self) -> Process:
        return super()._scheduler() if self._schedules else Process(self, [])


@asynccontextmanager
async def calm_cluster(
    folder: Path, *machines: Machine, parts: Sequence[str] = PARTS, seed: int = 1, lag_s: float = 0.0
) -> AsyncIterator[SmallCluster]:
    """`lag_s`: how late everybody may hear of what happened."""
    async with small_cluster(folder, seed=seed) as cluster:
        name_alike(cluster, seed)
        for one in definitions():
            if one["spec"]["group"] == KUEUE:
                await cluster.create(DEFINITIONS, one)
        await established(cluster)
        crew = _Crew(cluster, machines, schedules="scheduler" not in parts)

        def way_in(agent: str) -> Api:
            return crew.way_in("system:shoal", agent)

        life = ProcessTasks(way_in("life"), way_in("caches"), cluster.clock)
        life.random = random.Random(seed)
        life.informers = Informers(way_in("caches"), cluster.clock, life.random)
        choice = RunChoice(
            own=RunConfiguration(), builder=POLICIES[DEFAULT_POLICY], steps=STEPS, controllers=tuple(parts)
        )
        try:
            crew.change_weather(Weather(lag_s=lag_s))
            await start_shoal(life, way_in, choice)
            life.start("caches", life.informers.run)
            await cluster.pass_time(8)
            yield cluster
            assert not (broken := crew.broken()), broken
        finally:
            await life.end()
            await crew.end()
            await asyncio.sleep(0)


async def add_gpu_queue(cluster: SmallCluster, name: str, gpus: int, flavor: str = "h100", **spec: Any) -> None:
    """A cluster queue over whole GPUs, and a local queue of its name in `default`."""
    quota = {"name": flavor, "resources": [{"name": GPU, "nominalQuota": str(gpus)}]}
    groups = [{"coveredResources": [GPU], "flavors": [quota]}]
    body = {"namespaceSelector": {}, "resourceGroups": groups, **spec}
    await cluster.create(CLUSTER_QUEUES, {"metadata": {"name": name}, "spec": body})
    await cluster.create(LOCAL_QUEUES, {"metadata": {"name": name}, "spec": {"clusterQueue": name}})


def queued(
    name: str, queue: str, pods: int, *, gpus: int, rank: str = "", notes: Obj | None = None, **spec: Any
) -> Obj:
    """A batch Job of some pods, each with whole GPUs; `notes` stand on its pods."""
    container = {"name": "main", "image": "trainer", "resources": {"limits": {GPU: str(gpus)}}}
    pod: Obj = {"containers": [container], "restartPolicy": "Never", **spec.pop("pod", {})}
    labels = {_QUEUE: queue} | ({_RANK: rank} if rank else {})
    template = {"metadata": {"annotations": {"shoal.dev/run-for": "600s", **(notes or {})}}, "spec": pod}
    body = {"parallelism": pods, "completions": pods, "template": template, **spec}
    return {"metadata": {"name": name, "labels": labels}, "spec": body}


async def workload_of(cluster: SmallCluster, job: str) -> Obj:
    """Of the only workload that belongs to the job; empty while there is none."""
    for one in await cluster.all(WORKLOADS):
        if any(owner["name"] == job for owner in one["metadata"].get("ownerReferences", ())):
            return one
    return {}


async def is_true(cluster: SmallCluster, job: str, condition: str) -> bool:
    """Whether the workload of the job has the condition."""
    said = (await workload_of(cluster, job)).get("status", {}).get("conditions", ())
    return any(one["type"] == condition and one["status"] == "True" for one in said)
