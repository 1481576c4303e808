"""A claim that is to go stays for a pod that its protector has not been told of: two watches keep no order."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.context import Context
from shoal.client.informers import Informers
from shoal.client.kind import PODS, VOLUME_CLAIMS, Kind
from shoal.client.port import EVERYTHING, Batches, Deletion, Select
from shoal.client.recorder import Recorder
from shoal.client.refusals import NotFoundError
from shoal.client.write_through import WriteThroughApi
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.embedded.controllers.volumes.controller import claim_protection


class LateOfPods(InsideApi):
    """Tells nothing of pods until it is let."""

    def __init__(self, *inside: Any) -> None:
        super().__init__(*inside)
        self.is_let = asyncio.Event()

    async def watch(self, kind: Kind, since: int, namespace: str = "", select: Select = EVERYTHING) -> Batches:
        if kind is PODS:
            await self.is_let.wait()
        async for batch in super().watch(kind, since, namespace, select):
            yield batch


def protected(cluster: SmallCluster) -> LateOfPods:
    api = LateOfPods(cluster.plane, Actor("late", ("system:masters", "system:authenticated")), "late")
    informers = Informers(api, cluster.clock, cluster.draw)
    told = Recorder(api, cluster.clock, "late")
    context = Context("late", WriteThroughApi(api, informers), informers, cluster.clock, cluster.draw, told)
    protector = claim_protection(context)
    cluster.tasks += [asyncio.ensure_future(informers.run()), asyncio.ensure_future(protector.run())]
    return api


@virtual
async def test_a_claim_stays_for_a_pod_that_nobody_has_told_of_yet(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        api = protected(cluster)
        await cluster.pass_time(1)
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        await cluster.create(VOLUME_CLAIMS, {"metadata": {"name": "data"}, "spec": spec})
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
        holds = {"nodeName": "n", "containers": [{"name": "main", "image": "i"}], "volumes": [volume]}
        await cluster.create(PODS, {"metadata": {"name": "user"}, "spec": holds})
        await cluster.delete(VOLUME_CLAIMS, "data")
        await cluster.pass_time(60)
        assert "deletionTimestamp" in (await cluster.get(VOLUME_CLAIMS, "data"))["metadata"]
        api.is_let.set()
        await cluster.pass_time(60)
        assert not await is_gone(cluster)
        await cluster.delete(PODS, "user", Deletion(grace_s=0))
        await cluster.until(lambda: is_gone(cluster))


async def is_gone(cluster: SmallCluster) -> bool:
    try:
        await cluster.get(VOLUME_CLAIMS, "data")
    except NotFoundError:
        return True
    return False
