"""All of Shoal in one process beside a few nodes, a tenant that means no good, and others who only want to work.

    async with poisoned_cluster(tmp_path) as scene:
        await scene.poison(PODS, {...})
        await scene.check()

What the server refuses has done no harm. What it lets in may wait for ever; nothing that reads it may fall over it, and
the work of others goes on as if it were not there.
"""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from build.cluster_laws import Laws
from build.fleets import machine
from build.foreign_kinds import established
from build.gpu_pods import GPU
from build.kai_clusters import add_kai_queue
from build.small_clusters import SmallCluster, small_cluster
from build.storm_crews import NEEDED, ShoalCrew
from build.storm_replicas import Replica
from build.storm_stories import Complaints
from shoal.client.ecosystem_kinds import (
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    RESOURCE_FLAVORS,
    VOLCANO_JOBS,
    VOLCANO_QUEUES,
)
from shoal.client.item import Obj
from shoal.client.kind import DEFINITIONS, JOBS, NAMESPACES, NODES, PODS, Kind
from shoal.client.refusals import RefusedError
from shoal.embedded.apiserver.foreign.definitions import definitions
from shoal.wiring.shoal import PARTS

EVIL, GOOD = "evil", "good"
QUEUE = "kueue.x-k8s.io/queue-name"
_AT_ONCE = 60
_FINISHED = {"shoal.dev/run-for": "2s"}


class PoisonedScene:
    def __init__(self, cluster: SmallCluster) -> None:
        self.cluster = cluster
        self.refused: list[str] = []
        self._complaints = Complaints()
        self._laws = Laws(cluster)
        self._laws.watch({PODS: None, NODES: None})
        machines = [machine(name, gpus=4) for name in ("node-0", "node-1")]
        self._crew = ShoalCrew(cluster, machines, random.Random(1), needed=NEEDED)
        self._replica = Replica(self._crew, "one", parts=PARTS)
        self._count = 0

    async def begin(self) -> None:
        logging.getLogger().addHandler(self._complaints)
        for one in definitions():
            await self.cluster.create(DEFINITIONS, one)
        await established(self.cluster)
        for name in (EVIL, GOOD):
            await self.cluster.create(NAMESPACES, {"metadata": {"name": name}})
        await self.cluster.create(RESOURCE_FLAVORS, {"metadata": {"name": "default"}, "spec": {}})
        for name, gpus in ((GOOD, 4), (EVIL, 1)):
            quotas = [{"name": "cpu", "nominalQuota": 16}, {"name": GPU, "nominalQuota": gpus}]
            flavors = [{"name": "default", "resources": quotas}]
            groups = [{"coveredResources": ["cpu", GPU], "flavors": flavors}]
            spec = {"namespaceSelector": {}, "resourceGroups": groups}
            await self.cluster.create(CLUSTER_QUEUES, {"metadata": {"name": name}, "spec": spec})
            await self.cluster.create(
                LOCAL_QUEUES, {"metadata": {"name": "q"}, "spec": {"clusterQueue": name}}, namespace=name
            )
            await self.cluster.create(VOLCANO_QUEUES, {"metadata": {"name": name}, "spec": {"weight": 1}})
            await add_kai_queue(self.cluster, name, 2)
        self._replica.start()
        await self.cluster.pass_time(8)

    async def poison(self, kind: Kind, obj: Obj) -> Obj | None:
        """What the server made of it; None where it would not have it."""
        self._count += 1
        if self._count % _AT_ONCE == 0:
            # Of pods a node takes so many and no more, whoever they are.
            await self.cluster.pass_time(5)
        obj.setdefault("metadata", {}).setdefault("name", f"p{self._count}")
        try:
            return await self.cluster.create(kind, obj, namespace=EVIL)
        except RefusedError as error:
            self.refused.append(str(error))
            return None

    async def check(self, within_s: float = 90.0) -> None:
        """Others get their room and come to their end, nobody got what he has no right to, and nothing broke."""
        await self.cluster.pass_time(20)
        await self._work()

        async def are_done() -> bool:
            job = await self.cluster.get(JOBS, "queued", namespace=GOOD)
            pods = {one["metadata"]["name"]: one["status"].get("phase") for one in await self.cluster.pods(GOOD)}
            done = [pods.get(name) == "Succeeded" for name in ("plain", "kai", "volcano-w-0")]
            return job["status"].get("succeeded") == 2 and all(done)

        await self.cluster.until(are_done, within_s)
        broken = [*self._laws.broken, *self._complaints.found]
        broken += [repr(error) for error in (*self._crew.heard, *self._crew.broken())]
        assert not broken, "\n".join(broken)

    async def _work(self) -> None:
        """Of others: eight GPUs are there."""
        template = _pod(restartPolicy="Never", schedulerName="shoal")
        job = {"parallelism": 2, "completions": 2, "suspend": True, "template": template}
        await self.cluster.create(
            JOBS, {"metadata": {"name": "queued", "labels": {QUEUE: "q"}}, "spec": job}, namespace=GOOD
        )
        for name, more in (("plain", {}), ("kai", {"labels": {"kai.scheduler/queue": GOOD}})):
            pod = _pod(restartPolicy="Never", schedulerName="shoal")
            pod["metadata"] |= {"name": name, **more}
            await self.cluster.create(PODS, pod, namespace=GOOD)
        tasks = [{"name": "w", "replicas": 1, "template": _pod(restartPolicy="Never")}]
        await self.cluster.create(
            VOLCANO_JOBS,
            {"metadata": {"name": "volcano"}, "spec": {"queue": GOOD, "tasks": tasks, "minAvailable": 1}},
            namespace=GOOD,
        )

    async def end(self) -> None:
        logging.getLogger().removeHandler(self._complaints)
        await self._replica.kill(is_hard=False)
        await self._crew.end()
        await self._laws.end()


def _pod(**spec: Any) -> Obj:
    container = {"name": "main", "image": "pause", "resources": {"limits": {GPU: "1"}}}
    return {"metadata": {"annotations": dict(_FINISHED)}, "spec": {"containers": [container], **spec}}


@asynccontextmanager
async def poisoned_cluster(folder: Path) -> AsyncIterator[PoisonedScene]:
    async with small_cluster(folder) as cluster:
        scene = PoisonedScene(cluster)
        try:
            await scene.begin()
            yield scene
        finally:
            await scene.end()
