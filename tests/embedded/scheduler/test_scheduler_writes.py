"""What is written beside the decisions: who holds the few turns there are, and what a run leaves to the next one."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import in_virtual_time, virtual
from shoal.client.item import Item, Obj
from shoal.client.kind import NODES, PODS, PRIORITY_CLASSES, STORAGE_CLASSES, VOLUME_CLAIMS, Kind
from shoal.client.port import GENTLY, Deletion
from shoal.client.refusals import BusyError
from shoal.client.write_through import WriteThroughApi
from shoal.embedded.scheduler.controller import default_scheduler
from shoal.embedded.scheduler.scheduler import Scheduler

APART = "requiredDuringSchedulingIgnoredDuringExecution"


async def add_node(cluster: SmallCluster, name: str, cpu: str = "8") -> None:
    has = {"cpu": cpu, "memory": "32Gi", "pods": "110"}
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    await cluster.create(NODES, {"metadata": meta, "status": {"capacity": has, "allocatable": has}})
    await cluster.patch(NODES, name, {"spec": {"taints": None}})


def pod(name: str, cpu: str = "1", **spec: object) -> Obj:
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": name, "labels": {"app": name}}, "spec": {"containers": [container], **spec}}


async def add_claiming(cluster: SmallCluster, *names: str) -> None:
    """Pods with claims of a class whose volumes nobody makes."""
    waiting = {"provisioner": "nobody.example.com", "volumeBindingMode": "WaitForFirstConsumer"}
    await cluster.create(STORAGE_CLASSES, {"metadata": {"name": "slow"}, **waiting})
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "slow", "resources": resources}
    for name in names:
        await cluster.create(VOLUME_CLAIMS, {"metadata": {"name": name}, "spec": dict(spec)})
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
        await cluster.create(PODS, pod(name, volumes=[volume]))


async def places(cluster: SmallCluster) -> dict[str, str]:
    return {one["metadata"]["name"]: one["spec"].get("nodeName", "") for one in await cluster.pods()}


async def failures(cluster: SmallCluster, name: str) -> list[str]:
    return [one["message"] for one in await cluster.events(name) if one["type"] == "Warning"]


class HeldBindings(WriteThroughApi):
    """Bindings wait until somebody lets them go."""

    def __init__(self, cluster: SmallCluster) -> None:
        super().__init__(cluster.api, cluster.informers)
        self.asked = 0
        self.go = asyncio.Event()

    async def post(self, kind: Kind, namespace: str, name: str, subresource: str, obj: Obj) -> Obj:
        self.asked += 1
        await self.go.wait()
        return await super().post(kind, namespace, name, subresource, obj)


@virtual
async def test_pods_whose_volumes_nobody_makes_do_not_keep_others_from_their_places(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [partial(default_scheduler, max_writes=2)]) as cluster:
        await add_node(cluster, "n1")
        await add_claiming(cluster, "v0", "v1", "v2")
        await cluster.pass_time(2)
        await cluster.create(PODS, pod("plain"))
        await cluster.pass_time(1)
        assert await places(cluster) == {"plain": "n1", "v0": "", "v1": "", "v2": ""}
        await cluster.pass_time(700)
        assert await failures(cluster, "v0") == ["binding volumes: context deadline exceeded"]


@virtual
async def test_a_run_ends_at_once_though_more_wait_for_volumes_than_may_write(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        scheduler = default_scheduler(cluster.context(), max_writes=2)
        run = asyncio.ensure_future(scheduler.run())
        await add_node(cluster, "n1")
        await add_claiming(cluster, "v0", "v1", "v2", "v3", "v4")
        await cluster.pass_time(2)
        run.cancel()
        await cluster.pass_time(1)
        assert run.done()
        cluster.tasks.append(asyncio.ensure_future(scheduler.run()))
        await cluster.create(PODS, pod("plain"))
        await cluster.pass_time(1)
        assert (await places(cluster))["plain"] == "n1"


@virtual
async def test_the_room_of_a_pod_that_is_deleted_before_its_volume_comes_is_free_at_once(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [default_scheduler]) as cluster:
        await add_node(cluster, "n1", cpu="1")
        await add_claiming(cluster, "v")
        await cluster.pass_time(2)
        await cluster.create(PODS, pod("next"))
        await cluster.pass_time(2)
        assert (await places(cluster))["next"] == ""
        waiting = len(asyncio.all_tasks())
        await cluster.delete(PODS, "v", Deletion(grace_s=0))
        await cluster.pass_time(12)
        assert await places(cluster) == {"next": "n1"}
        assert len(asyncio.all_tasks()) < waiting


@virtual
async def test_a_pod_is_decided_on_as_it_is_when_its_turn_comes(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1")
        api = HeldBindings(cluster)
        cluster.start(partial(default_scheduler, max_writes=1), api=api)
        term = {"labelSelector": {"matchLabels": {"app": "second"}}, "topologyKey": "kubernetes.io/hostname"}
        await cluster.create(PODS, pod("first", affinity={"podAntiAffinity": {APART: [term]}}))
        await cluster.until(lambda: api.asked == 1)
        await cluster.create(PODS, pod("second"))
        await cluster.pass_time(1)
        await cluster.patch(PODS, "second", {"metadata": {"labels": {"app": "welcome"}}})
        await cluster.pass_time(1)
        api.go.set()
        await cluster.pass_time(1)
        assert await places(cluster) == {"first": "n1", "second": "n1"}
        assert not await failures(cluster, "second")


@virtual
async def test_a_bug_on_the_way_costs_its_pod_a_delay_and_nothing_else(tmp_path: Path) -> None:
    class Broken(HeldBindings):
        async def post(self, kind: Kind, namespace: str, name: str, subresource: str, obj: Obj) -> Obj:
            self.asked += 1
            if self.asked == 1:
                raise KeyError("surprise")
            return await WriteThroughApi.post(self, kind, namespace, name, subresource, obj)

    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", cpu="1")
        cluster.start(default_scheduler, api=Broken(cluster))
        await cluster.create(PODS, pod("a"))
        await cluster.pass_time(3)
        assert await places(cluster) == {"a": "n1"}


@virtual
async def test_a_pod_without_a_place_is_tried_again_after_five_minutes_though_nothing_happens(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        scheduler = Scheduler(cluster.context(), frozenset({"default-scheduler"}))
        cluster.tasks.append(asyncio.ensure_future(scheduler.run()))
        await cluster.create(PODS, pod("a"))
        await cluster.pass_time(290)
        (waiting,) = scheduler.event_handlers.queue._pods.values()
        assert waiting.tries == 1
        await cluster.pass_time(20)
        assert waiting.tries == 2


@virtual
async def test_whoever_could_not_be_ended_because_the_server_was_busy_is_ended_soon_after(tmp_path: Path) -> None:
    class Busy(WriteThroughApi):
        refused = 0

        async def delete(self, kind: Kind, namespace: str, name: str, how: Deletion = GENTLY) -> Item | None:
            if not self.refused:
                self.refused += 1
                raise BusyError("busy")
            return await super().delete(kind, namespace, name, how)

    async with small_cluster(tmp_path) as cluster:
        await cluster.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 100})
        await add_node(cluster, "n1", cpu="1")
        cluster.start(default_scheduler, api=Busy(cluster.api, cluster.informers))
        await cluster.create(PODS, pod("low"))
        await cluster.pass_time(1)
        await cluster.create(PODS, pod("urgent", priorityClassName="high"))
        await cluster.pass_time(5)
        assert "deletionTimestamp" in (await cluster.get(PODS, "low"))["metadata"]


@pytest.mark.parametrize("after", range(12))
def test_one_scheduler_runs_again_after_it_was_stopped_at_any_moment(tmp_path: Path, after: int) -> None:
    async def story() -> None:
        async with small_cluster(tmp_path) as cluster:
            for number in range(3):
                await add_node(cluster, f"n{number}", cpu="4")
            for number in range(14):
                await cluster.create(PODS, pod(f"p{number}"))
            scheduler = default_scheduler(cluster.context(), max_writes=3)
            for _ in range(4):
                run = asyncio.ensure_future(scheduler.run())
                await cluster.informers.synced((PODS, NODES))
                for _ in range(after):
                    await asyncio.sleep(0)
                run.cancel()
                await asyncio.gather(run, return_exceptions=True)
            cluster.tasks.append(asyncio.ensure_future(scheduler.run()))
            await cluster.pass_time(30)
            assert Counter((await places(cluster)).values()) == {"n0": 4, "n1": 4, "n2": 4, "": 2}

    in_virtual_time(story())


@pytest.mark.parametrize("after", range(8))
def test_who_was_to_yield_yields_to_the_next_run_too(tmp_path: Path, after: int) -> None:
    async def story() -> None:
        async with small_cluster(tmp_path) as cluster:
            await cluster.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 100})
            await add_node(cluster, "n1", cpu="1")
            scheduler = default_scheduler(cluster.context())
            run = asyncio.ensure_future(scheduler.run())
            await cluster.create(PODS, pod("low"))
            await cluster.pass_time(1)
            await cluster.create(PODS, pod("urgent", priorityClassName="high"))
            for _ in range(after):
                await asyncio.sleep(0)
            run.cancel()
            await asyncio.gather(run, return_exceptions=True)
            cluster.tasks.append(asyncio.ensure_future(scheduler.run()))
            await cluster.pass_time(12)
            assert "deletionTimestamp" in (await cluster.get(PODS, "low"))["metadata"]
            assert (await cluster.get(PODS, "urgent"))["status"]["nominatedNodeName"] == "n1"

    in_virtual_time(story())
