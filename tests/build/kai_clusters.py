"""Builds a small cluster that serves KAI's kinds, a scheduling loop with the KAI admission, and KAI's objects."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from build.live_schedulers import LiveScheduler, places, pod
from build.small_clusters import SmallCluster, small_cluster
from shoal.client.ecosystem_kinds import KAI_POD_GROUPS, KAI_QUEUES
from shoal.client.kind import DEFINITIONS, LEASES, NAMESPACES, PODS, PRIORITY_CLASSES
from shoal.client.port import Api
from shoal.client.presence import KAI, Presence
from shoal.controllers.kai.admission import KaiAdmission
from shoal.controllers.kai.usage_reader import Ask
from shoal.controllers.scheduling_loop.disciplines import Disciplines
from shoal.embedded.apiserver.foreign.definitions import definitions_of, tables
from shoal.store.watched.cluster import WatchSettings

QUEUE_LABEL = "kai.scheduler/queue"
GROUP = "pod-group-name"
_CLASSES = {"train": 50, "build": 100, "inference": 125}


@asynccontextmanager
async def kai_cluster(folder: Path, *others: str) -> AsyncIterator[SmallCluster]:
    """`others`: projects whose kinds are there, too."""
    files = {f"{name}.yaml" for name in ("kai", *others)}
    async with small_cluster(folder) as cluster:
        for file, table in tables():
            if file in files:
                for definition in definitions_of(file, table):
                    await cluster.create(DEFINITIONS, definition)

        async def are_served() -> bool:
            return {KAI_QUEUES, KAI_POD_GROUPS} <= {one.kind for one in await cluster.api.served()}

        await cluster.until(are_served)
        for name, value in _CLASSES.items():
            await cluster.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
        yield cluster


class KaiCluster:
    def __init__(self, live: LiveScheduler, discipline: KaiAdmission) -> None:
        self.loop = live
        self.discipline = discipline

    async def kill(self) -> None:
        await self.loop.kill()


def start_kai(
    cluster: SmallCluster, api: Api | None = None, *, asks_for_kai: bool = False, ask: Ask | None = None
) -> KaiCluster:
    """`asks_for_kai`: whether KAI itself runs here is looked at. `ask`: what Prometheus servers say."""
    live, discipline = kai_scheduler(cluster, api, asks_for_kai=asks_for_kai, ask=ask)
    live.start()
    return KaiCluster(live, discipline)


def kai_scheduler(
    cluster: SmallCluster, api: Api | None = None, *, asks_for_kai: bool = False, ask: Ask | None = None
) -> tuple[LiveScheduler, KaiAdmission]:
    """Not started."""
    live = LiveScheduler(cluster, api, WatchSettings(frozenset({"shoal", "kai-scheduler"})))
    made: list[KaiAdmission] = []

    def make(onward: Any) -> KaiAdmission:
        presence = Presence(live.context, KAI) if asks_for_kai else None
        made.append(KaiAdmission(live.context, live.served, live.loop, onward, presence, ask))
        live.loop.queue_steps.add(made[0])
        return made[0]

    disciplines = Disciplines(live.loop.intake, live.loop.clock)
    disciplines.add(make)
    live.loop.discipline = disciplines
    return live, made[0]


async def add_kai_itself(cluster: SmallCluster) -> None:
    """Its leader renews a Lease."""
    now = cluster.clock.micro_text()
    spec = {"holderIdentity": "kai", "leaseDurationSeconds": 86_400, "renewTime": now}
    await cluster.create(NAMESPACES, {"metadata": {"name": "kai-scheduler"}})
    await cluster.create(LEASES, {"metadata": {"name": "kai-scheduler-default"}, "spec": spec}, "kai-scheduler")


async def add_kai_queue(
    cluster: SmallCluster, name: str, gpu: float = -1, *, limit: float = -1, weight: float = 1, **spec: Any
) -> None:
    """Of GPUs; of everything else as much as anybody likes. `parent` is short for `parentQueue`."""
    endless = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    resources = {"gpu": {"quota": gpu, "limit": limit, "overQuotaWeight": weight}, "cpu": endless, "memory": endless}
    if "parent" in spec:
        spec["parentQueue"] = spec.pop("parent")
    await cluster.create(KAI_QUEUES, {"metadata": {"name": name}, "spec": {"resources": resources, **spec}})


async def add_work(cluster: SmallCluster, name: str, queue: str, gpus: int = 1, **more: Any) -> None:
    """A pod that has no group."""
    await cluster.create(PODS, pod(name, gpus=gpus, labels={QUEUE_LABEL: queue}, **more))


async def add_gang(cluster: SmallCluster, name: str, queue: str, count: int, least: int, **spec: Any) -> None:
    await cluster.create(
        KAI_POD_GROUPS, {"metadata": {"name": name}, "spec": {"queue": queue, "minMember": least, **spec}}
    )
    for index in range(count):
        body = pod(f"{name}-{index}", gpus=1, labels={QUEUE_LABEL: queue}, annotations={GROUP: name})
        await cluster.create(PODS, body)


async def terminating(cluster: SmallCluster) -> list[str]:
    return sorted(one["metadata"]["name"] for one in await cluster.pods() if one["metadata"].get("deletionTimestamp"))


async def bound(cluster: SmallCluster, start: str = "") -> list[str]:
    return sorted(name for name, node in (await places(cluster)).items() if node and name.startswith(start))
