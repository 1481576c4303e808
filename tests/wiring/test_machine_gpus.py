"""A GPU of this machine that fails leaves the Node, and returns when it is healthy again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from build.changing_driver import ChangingDriver
from build.gpu_pods import gpu_pod, watched
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.agent.health.node_condition import PodUser
from shoal.agent.kubelet.machine import ThisMachine
from shoal.agent.kubelet.node import NodeDescription, NodeOfThisMachine
from shoal.client.kind import NODES, PODS
from shoal.units.errors import UserError
from shoal.wiring.gpu_driver import open_driver
from shoal.wiring.machine_gpus import GpuScene, MachineGpus, Named, OpenGpus, open_machine_gpus

GPU = "nvidia.com/gpu"
MACHINE = ThisMachine("n", 8, 16 << 30, 100 << 30, "127.0.0.1")


def scene_of(cluster: SmallCluster, node: NodeOfThisMachine, named: Named = lambda _: None) -> GpuScene:
    informer = cluster.informers.of(NODES)

    def labels() -> Mapping[str, str]:
        item = informer.get("", "n")
        return (item.obj()["metadata"].get("labels") or {}) if item is not None else {}

    def tell(reason: str, message: str) -> None:
        raise AssertionError(reason, message)

    return GpuScene(cluster.api, cluster.clock, node.name, node.wake, named, labels, tell)


class Running:
    def __init__(self, cluster: SmallCluster) -> None:
        self.cluster = cluster
        self.driver = ChangingDriver(open_driver("dgx-h100"))
        self.listed = self.driver.list
        self.health = watched(self.driver)
        self.gpus = MachineGpus(OpenGpus(self.driver, self.health))

    def describe(self) -> NodeDescription:
        resources, healthy = self.gpus.node.capacity(), self.gpus.node.allocatable()
        return NodeDescription(MACHINE, "process", resources=resources, healthy=healthy)

    def scene(self, node: NodeOfThisMachine, named: Named) -> GpuScene:
        return scene_of(self.cluster, node, named)

    async def amounts(self) -> tuple[str, str, str]:
        """Capacity, allocatable, and the status of the condition."""
        status = (await self.cluster.get(NODES, "n"))["status"]
        found = [one["status"] for one in status["conditions"] if one["type"] == "GPUHealthy"]
        return status["capacity"][GPU], status["allocatable"][GPU], "".join(found)


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Running]:
    async with small_cluster(folder) as cluster:
        found = Running(cluster)
        node = NodeOfThisMachine(cluster.api, cluster.clock, found.describe)
        await node.register()
        spec = {"nodeName": "n", "containers": [{"name": "main", "image": "cuda"}]}
        pod = await cluster.create(PODS, {"metadata": {"name": "train"}, "spec": spec})
        uid = pod["metadata"]["uid"]
        assert found.gpus.node.admit(gpu_pod(uid, 8)) is None
        scene = found.scene(node, lambda one: PodUser("default", "train") if one == uid else None)
        tasks = [asyncio.ensure_future(node.run()), asyncio.ensure_future(found.gpus.run(scene))]
        await cluster.pass_time(1.0)
        try:
            yield found
        finally:
            for one in tasks:
                one.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await found.gpus.end()


def reasons(events: list[dict[str, Any]]) -> list[str]:
    return [one["reason"] for one in events]


@virtual
async def test_a_gpu_that_fails_leaves_the_node_and_returns_when_it_is_healthy_again(tmp_path: Path) -> None:
    async with running(tmp_path) as machine:
        assert await machine.amounts() == ("8", "8", "True")
        machine.driver.lose_first()
        machine.health.read()
        await machine.cluster.pass_time(2.0)
        assert await machine.amounts() == ("8", "7", "False")
        assert reasons(await machine.cluster.events("train")) == ["GPUUnhealthy"]
        assert "used by default/train" in (await machine.cluster.events("n"))[0]["message"]
        machine.driver.list = machine.listed
        machine.health.read()
        await machine.cluster.pass_time(2.0)
        assert await machine.amounts() == ("8", "8", "True")
        assert reasons(await machine.cluster.events("train")) == ["GPUUnhealthy", "GPURecovered"]


@virtual
async def test_the_node_follows_a_change_of_the_mig_layout(tmp_path: Path) -> None:
    async with running(tmp_path) as machine:
        machine.driver.divide_first()
        machine.health.read()
        await machine.cluster.pass_time(20.0)
        assert await machine.amounts() == ("7", "7", "True")


@virtual
async def test_a_gpu_that_has_failed_before_the_start_is_reported_by_an_event(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        machine = Running(cluster)
        machine.driver.lose_first()
        machine.health.read()
        node = NodeOfThisMachine(cluster.api, cluster.clock, machine.describe)
        await node.register()
        task = asyncio.ensure_future(machine.gpus.run(machine.scene(node, lambda _: None)))
        await cluster.pass_time(2.0)
        assert await machine.amounts() == ("8", "7", "False")
        assert reasons(await cluster.events("n")) == ["GPUUnhealthy"]
        task.cancel()
        await machine.gpus.end()


async def test_a_machine_of_another_name_is_refused() -> None:
    with pytest.raises(UserError, match="--fake"):
        await open_machine_gpus("no-such-machine")
