"""Places that are lost while something is made ready on their node, and pods that are to end before they are bound."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from build.live_schedulers import add_node, is_bound, places, pod, start_scheduler
from build.odd_writers import Deaf, Waiting, writing_by
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import in_virtual_time, virtual
from shoal.client.item import Listed
from shoal.client.kind import NODES, PODS, PRIORITY_CLASSES, Kind
from shoal.client.kueue_versions import KueueVersionsApi
from shoal.client.port import EVERYTHING, Api, Batches, Select
from shoal.engine.admission_failures import LASTS_S


async def _lose_the_place(cluster: SmallCluster, writer: Waiting) -> None:
    """`p` waits for something on n1, which goes; it is placed on n2; n1 comes back, and `q` is bound there."""
    await add_node(cluster, "n1", gpus=1)
    await cluster.create(PODS, pod("p", gpus=1))
    await cluster.until(lambda: "n1" in writer.nodes, 5)
    await cluster.delete(NODES, "n1")
    await cluster.pass_time(1)
    await add_node(cluster, "n2", gpus=1)
    await cluster.pass_time(1)
    await add_node(cluster, "n1", gpus=1)
    await cluster.create(PODS, pod("q", gpus=1))
    await cluster.until(lambda: is_bound(cluster, "q"), 5)
    assert await places(cluster) == {"p": "", "q": "n1"}


@pytest.mark.parametrize("asks", [{"gpus": 1}, {"cpu": "5"}], ids=str)
@virtual
async def test_a_pod_is_not_bound_where_another_scheduler_took_its_room_meanwhile(
    tmp_path: Path, asks: dict[str, Any]
) -> None:
    writer = Waiting("p")
    async with small_cluster(tmp_path) as cluster:
        start_scheduler(cluster, prepare=writing_by(writer))
        await add_node(cluster, "n1", gpus=1)
        await cluster.create(PODS, pod("p", **asks))
        await cluster.until(lambda: "n1" in writer.nodes, 5)
        body = {"metadata": {"name": "other"}, "target": {"kind": "Node", "name": "n1"}}
        await cluster.create(PODS, pod("other", schedulerName="default-scheduler", **asks))
        await cluster.api.post(PODS, "default", "other", "binding", body)
        await cluster.pass_time(1)
        writer.go_on("n1")
        await cluster.pass_time(5)
        assert await places(cluster) == {"p": "", "other": "n1"}
        writer.go_on("n2")
        await add_node(cluster, "n2", gpus=1)
        await cluster.until(lambda: is_bound(cluster, "p"), 5)
        assert await places(cluster) == {"p": "n2", "other": "n1"}


class LateWatches(KueueVersionsApi):
    """From `hold` on, what happens to pods is not heard by watches."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        self.is_held = False
        self.looks: list[str] = []

    async def list(self, kind: Kind, namespace: str = "", select: Select = EVERYTHING) -> Listed:
        if select.fields:
            self.looks.append(select.fields)
        return await super().list(kind, namespace, select)

    async def watch(self, kind: Kind, since: int, namespace: str = "", select: Select = EVERYTHING) -> Batches:
        async with aclosing(super().watch(kind, since, namespace, select)) as batches:
            async for batch in batches:
                if kind == PODS and self.is_held:
                    await asyncio.Event().wait()
                yield batch


async def bound_by_another(cluster: SmallCluster, name: str, gpus: int) -> None:
    await cluster.create(PODS, pod(name, gpus=gpus, schedulerName="default-scheduler"))
    body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "n1"}}
    await cluster.api.post(PODS, "default", name, "binding", body)


@virtual
async def test_beside_another_scheduler_the_node_is_looked_at_before_each_binding(tmp_path: Path) -> None:
    writer = Waiting("p")
    async with small_cluster(tmp_path) as cluster:
        api = LateWatches(cluster.api)
        start_scheduler(cluster, api, prepare=writing_by(writer))
        await add_node(cluster, "n1", gpus=4)
        await bound_by_another(cluster, "first", 1)
        await cluster.pass_time(1)
        for name in ("p1", "p2", "p3"):
            await cluster.create(PODS, pod(name, gpus=1))
        await cluster.until(lambda: len(writer.nodes) == 3, 5)
        api.is_held = True
        await bound_by_another(cluster, "second", 2)
        writer.go_on("n1")
        await cluster.pass_time(5)
        there = await places(cluster)
        assert [there[name] for name in ("p1", "p2", "p3")].count("n1") == 1
        assert set(api.looks) == {"spec.nodeName=n1"}


@virtual
async def test_alone_in_a_cluster_nothing_is_read_before_a_binding(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        api = LateWatches(cluster.api)
        start_scheduler(cluster, api)
        await add_node(cluster, "n1", gpus=2)
        await cluster.create(PODS, pod("web", schedulerName="default-scheduler"))
        await cluster.create(PODS, pod("p", gpus=1))
        await cluster.until(lambda: is_bound(cluster, "p"), 5)
        assert api.looks == []


@virtual
async def test_free_devices_are_bound_while_another_pod_waits_for_those_of_one_that_ends(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1", gpus=2)
        await cluster.create(PODS, pod("ends", gpus=1))
        body = {"metadata": {"name": "ends"}, "target": {"kind": "Node", "name": "n1"}}
        await cluster.api.post(PODS, "default", "ends", "binding", body)
        # There is no kubelet here that would end it.
        await cluster.delete(PODS, "ends")
        await cluster.create(PODS, pod("p", gpus=1))
        await cluster.create(PODS, pod("q", gpus=1))
        start_scheduler(cluster)

        async def is_either_bound() -> bool:
            return await is_bound(cluster, "p") or await is_bound(cluster, "q")

        await cluster.until(is_either_bound, 5)


@pytest.mark.parametrize("made", [Waiting, Deaf])
def test_a_pod_is_not_bound_to_the_place_that_it_lost_while_it_was_made_ready(
    made: type[Waiting], tmp_path: Path
) -> None:
    async def story() -> None:
        writer = made("p")
        async with small_cluster(tmp_path) as cluster:
            start_scheduler(cluster, prepare=writing_by(writer))
            await _lose_the_place(cluster, writer)
            writer.go_on("n1")
            await cluster.pass_time(2)
            assert await places(cluster) == {"p": "", "q": "n1"}
            writer.go_on("n2")
            await cluster.until(lambda: is_bound(cluster, "p"), 5)
            assert await places(cluster) == {"p": "n2", "q": "n1"}
            assert writer.most_at_once == 1

    in_virtual_time(story())


@virtual
async def test_the_wait_for_a_place_that_is_lost_is_not_waited_out(tmp_path: Path) -> None:
    writer = Waiting("p")
    async with small_cluster(tmp_path) as cluster:
        start_scheduler(cluster, prepare=writing_by(writer))
        await _lose_the_place(cluster, writer)
        await cluster.until(lambda: writer.nodes == ["n1", "n2"], 2)


@virtual
async def test_a_pod_that_yields_before_it_is_bound_is_never_bound(tmp_path: Path) -> None:
    writer = Waiting("low")
    async with small_cluster(tmp_path) as cluster:
        start_scheduler(cluster, prepare=writing_by(writer))
        await cluster.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000})
        await add_node(cluster, "n1", gpus=1)
        await cluster.create(PODS, pod("low", gpus=1))
        await cluster.until(lambda: bool(writer.nodes), 5)
        await cluster.create(PODS, pod("high", gpus=1, priorityClassName="high"))
        await cluster.until(lambda: is_bound(cluster, "high"), 5)
        writer.go_on("n1")
        await cluster.pass_time(60)
        assert await places(cluster) == {"high": "n1", "low": ""}


@virtual
async def test_pods_that_yield_while_they_wait_for_something_keep_no_others_from_yielding(tmp_path: Path) -> None:
    """Of all that write beside bindings, as many as may at once would wait for pods whose waiting nobody ends."""
    writer = Deaf("slow")
    async with small_cluster(tmp_path) as cluster:
        start_scheduler(cluster, prepare=writing_by(writer))
        await cluster.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000})
        await add_node(cluster, "n1", gpus=20, labels={"disk": "slow"})
        for number in range(20):
            await cluster.create(PODS, pod(f"slow-{number}", gpus=1))
        await cluster.until(lambda: len(writer.nodes) == 20, 5)
        for number in range(20):
            first = pod(f"first-{number}", gpus=1, priorityClassName="high", nodeSelector={"disk": "slow"})
            await cluster.create(PODS, first)
        await cluster.pass_time(5)
        await add_node(cluster, "n2", gpus=1, labels={"disk": "fast"})
        await cluster.create(PODS, pod("runs", gpus=1, nodeSelector={"disk": "fast"}))
        await cluster.until(lambda: is_bound(cluster, "runs"), 5)
        await cluster.create(PODS, pod("second", gpus=1, nodeSelector={"disk": "fast"}, priorityClassName="high"))

        async def has_yielded() -> bool:
            return "deletionTimestamp" in (await cluster.get(PODS, "runs"))["metadata"]

        await cluster.until(has_yielded, 10)


@virtual
async def test_a_node_that_refused_a_pod_is_tried_again_after_a_while_though_nothing_happens_there(
    tmp_path: Path,
) -> None:
    async with small_cluster(tmp_path) as cluster:
        start_scheduler(cluster)
        await add_node(cluster, "n1", gpus=2)
        await cluster.create(PODS, pod("p", gpus=1))
        await cluster.until(lambda: is_bound(cluster, "p"), 5)
        status = {"phase": "Failed", "reason": "UnexpectedAdmissionError"}
        await cluster.patch(PODS, "p", {"status": status}, "status")
        await cluster.create(PODS, pod("q", gpus=1))
        await cluster.pass_time(LASTS_S - 5)
        assert not await is_bound(cluster, "q")
        await cluster.until(lambda: is_bound(cluster, "q"), 10)
