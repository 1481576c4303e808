"""The pods of a node as the device plugin follows them: the scheduler's choice, and the devices that they have."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from build.gpu_pods import container, device_manager
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.agent.plugin.node_pods import FollowedPods
from shoal.agent.plugin.scheduler_choice import SchedulerChoice
from shoal.client.item import Obj
from shoal.client.kind import PODS
from shoal.client.port import Patch
from shoal.devices.advertised_devices import inventory
from shoal.devices.device_ids import ids_in
from shoal.devices.names import OWN_DEVICES
from shoal.devices.plugin_config import PluginConfig
from shoal.devices.waiting_requests import Held, PodName
from shoal.units.errors import TemporaryError

GPU = "nvidia.com/gpu"
_MANAGER = device_manager("dgx-h100")
FREE = inventory(_MANAGER.machine.gpus, _MANAGER.gpus, PluginConfig()).devices[GPU]


class Followed:
    """A node `n0`, whose kubelet lists what is in `holders`."""

    def __init__(self, cluster: SmallCluster) -> None:
        self.cluster = cluster
        self.choice = SchedulerChoice(wait_s=0)
        self.holders: dict[PodName, Held] = {}
        self.calls = 0
        self.is_silent = False
        self.pods = FollowedPods(cluster.api, cluster.clock, "n0", self.choice, self._list)

    def _list(self) -> dict[PodName, Held]:
        self.calls += 1
        if self.is_silent:
            raise TemporaryError("the kubelet does not answer", 1.0)
        return self.holders

    async def bind(self, name: str, choice: str = "", node: str = "n0") -> Obj:
        meta = {"name": name, "annotations": {OWN_DEVICES: choice} if choice else {}}
        containers = [{**container("main", 1), "image": "cuda"}]
        pod = await self.cluster.create(PODS, {"metadata": meta, "spec": {"nodeName": node, "containers": containers}})
        await self.cluster.pass_time(0.1)
        return pod

    def wanted(self) -> list[int]:
        return [device.gpu for device in self.choice.wanted(GPU, 1, FREE)]

    def hold(self, pod: str, gpu: int) -> None:
        self.holders[PodName("default", pod)] = {"main": {GPU: [FREE[gpu].id]}}

    async def annotated(self, pod: str) -> list[str]:
        annotations = (await self.cluster.get(PODS, pod))["metadata"].get("annotations") or {}
        return [*ids_in(annotations.get(OWN_DEVICES, "")).get("main", {}).get(GPU, ())]


@asynccontextmanager
async def followed(folder: Path) -> AsyncIterator[Followed]:
    async with small_cluster(folder) as cluster:
        found = Followed(cluster)
        task = asyncio.create_task(found.pods.run())
        await cluster.pass_time(1)
        try:
            yield found
        finally:
            task.cancel()


@virtual
async def test_a_pod_of_this_node_gets_its_choice_and_one_of_another_node_does_not(tmp_path: Path) -> None:
    async with followed(tmp_path) as node:
        await node.bind("elsewhere", "1", node="n1")
        assert node.wanted() == []
        await node.bind("here", "4")
        assert node.wanted() == [4]


@virtual
async def test_pods_that_were_there_before_are_followed_too(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        node = Followed(cluster)
        await node.bind("early", "4")
        task = asyncio.create_task(node.pods.run())
        await cluster.pass_time(1)
        assert node.wanted() == [4]
        task.cancel()


@virtual
async def test_other_devices_than_the_chosen_ones_are_written_on_the_pod_soon_after_the_allocation(
    tmp_path: Path,
) -> None:
    async with followed(tmp_path) as node:
        await node.bind("one", "4")
        node.choice.allocated(GPU, [FREE[2].id])
        node.hold("one", 2)
        await node.cluster.pass_time(0.5)
        assert await node.annotated("one") == [FREE[2].id]


@virtual
async def test_the_kubelet_is_asked_every_second_until_it_lists_the_pod(tmp_path: Path) -> None:
    async with followed(tmp_path) as node:
        await node.bind("one", "4")
        node.choice.allocated(GPU, [FREE[2].id])
        await node.cluster.pass_time(3)
        assert await node.annotated("one") == []
        node.hold("one", 2)
        await node.cluster.pass_time(1.1)
        assert await node.annotated("one") == [FREE[2].id]
        before = node.calls
        await node.cluster.pass_time(20)
        assert node.calls == before


@virtual
async def test_a_pod_with_the_devices_that_were_chosen_is_not_written(tmp_path: Path) -> None:
    async with followed(tmp_path) as node:
        await node.bind("one")
        node.hold("one", 4)
        await node.cluster.pass_time(31)
        written = await node.cluster.get(PODS, "one")
        await node.cluster.pass_time(100)
        assert (await node.cluster.get(PODS, "one"))["metadata"]["resourceVersion"] == (
            written["metadata"]["resourceVersion"]
        )
        assert await node.annotated("one") == [FREE[4].id]


@virtual
async def test_a_kubelet_that_does_not_answer_is_asked_again(tmp_path: Path) -> None:
    async with followed(tmp_path) as node:
        await node.bind("one", "4")
        node.is_silent = True
        node.choice.allocated(GPU, [FREE[2].id])
        node.hold("one", 2)
        await node.cluster.pass_time(5)
        assert await node.annotated("one") == []
        node.is_silent = False
        await node.cluster.pass_time(1.1)
        assert await node.annotated("one") == [FREE[2].id]


@virtual
async def test_a_deleted_pod_waits_for_nothing(tmp_path: Path) -> None:
    async with followed(tmp_path) as node:
        await node.bind("one", "4")
        await node.cluster.delete(PODS, "one")
        await node.cluster.pass_time(40)
        assert node.wanted() == []


@pytest.mark.parametrize("is_synced", [True, False], ids=["the pods were listed", "the first list is still to come"])
def test_a_request_waits_until_the_watch_brings_its_pod(is_synced: bool) -> None:
    choice = SchedulerChoice(wait_s=30)
    if is_synced:
        choice.set_pods([])
    found: list[int] = []
    asking = threading.Thread(target=lambda: found.extend(one.gpu for one in choice.wanted(GPU, 1, FREE)))
    asking.start()
    meta = {"name": "one", "namespace": "default", "uid": "u", "annotations": {OWN_DEVICES: "4"}}
    choice.set_pods([{"metadata": meta, "spec": {"containers": [container("main", 1)]}}])
    asking.join(20)
    assert found == [4]


def test_a_request_that_no_pod_has_is_answered_after_a_while() -> None:
    assert SchedulerChoice(wait_s=0.01).wanted(GPU, 1, FREE) == []


@virtual
async def test_a_new_pod_is_reported_once(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        seen: list[str] = []
        following = FollowedPods(
            cluster.api,
            cluster.clock,
            "n0",
            SchedulerChoice(wait_s=0),
            dict,
            on_new=lambda pod: seen.append(pod["metadata"]["name"]),
        )
        task = asyncio.create_task(following.run())
        spec = {"nodeName": "n0", "containers": [{**container("main", 1), "image": "cuda"}]}
        await cluster.create(PODS, {"metadata": {"name": "a"}, "spec": spec})
        await cluster.pass_time(0.1)
        body = {"metadata": {"labels": {"changed": "yes"}}}
        await cluster.api.patch(PODS, "default", "a", Patch("merge", body))
        await cluster.create(PODS, {"metadata": {"name": "elsewhere"}, "spec": {**spec, "nodeName": "n1"}})
        await cluster.pass_time(0.1)
        task.cancel()
        assert seen == ["a"]
