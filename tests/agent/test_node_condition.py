"""The agent writes the health of GPUs to its Node: a condition, a taint by policy, and Events."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.agent.health.node_condition import NodeConditionWriter, PodUser
from shoal.client.item import Obj
from shoal.client.kind import EVENTS, NODES, PODS
from shoal.devices.device_health import DeviceHealth, HealthCause
from shoal.devices.health_reports import HealthChange, HealthTaint

UUID = "GPU-a"
FAILED = HealthCause("xid-79", "Xid 79: GPU has fallen off the bus", "replace it", is_unhealthy=True)
TAINT = HealthTaint("gpu-health", "failed", "NoSchedule")
OTHER = {"key": "team", "value": "a", "effect": "NoSchedule"}


class Written:
    """A node `n0` with one GPU, and the writer of its condition."""

    def __init__(self, cluster: SmallCluster, taint: HealthTaint | None) -> None:
        self.cluster = cluster
        self.gpus: Sequence[DeviceHealth] = (DeviceHealth(0, UUID),)
        users = [PodUser("default", "train"), PodUser("default", "deleted")]
        self.writer = NodeConditionWriter(
            cluster.api, cluster.clock, "n0", lambda: self.gpus, taint=taint, users=lambda uuid: users if uuid else []
        )

    def fail(self) -> None:
        self.gpus = (DeviceHealth(0, UUID, (FAILED,)),)
        self.writer.changed([HealthChange(self.gpus[0], FAILED)])

    async def node(self) -> Obj:
        return await self.cluster.get(NODES, "n0")

    async def condition(self) -> Obj:
        return next(one for one in (await self.node())["status"]["conditions"] if one["type"] == "GPUHealthy")

    async def taints(self) -> list[Obj]:
        taints = (await self.node())["spec"].get("taints") or ()
        return [one for one in taints if not one["key"].startswith("node.kubernetes.io/")]


@asynccontextmanager
async def written(folder: Path, taint: HealthTaint | None = None) -> AsyncIterator[Written]:
    async with small_cluster(folder) as cluster:
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": cluster.clock.text()}
        node = {"metadata": {"name": "n0"}, "spec": {"taints": [OTHER]}, "status": {"conditions": [ready]}}
        await cluster.create(NODES, node)
        spec = {"nodeName": "n0", "containers": [{"name": "main", "image": "cuda"}]}
        await cluster.create(PODS, {"metadata": {"name": "train"}, "spec": spec})
        found = Written(cluster, taint)
        task = asyncio.create_task(found.writer.run())
        await cluster.pass_time(1)
        try:
            yield found
        finally:
            task.cancel()


@virtual
async def test_the_condition_is_there_from_the_start_beside_the_others(tmp_path: Path) -> None:
    async with written(tmp_path) as node:
        conditions = (await node.node())["status"]["conditions"]
        assert {one["type"]: one["status"] for one in conditions} == {"Ready": "True", "GPUHealthy": "True"}


@virtual
async def test_an_unhealthy_gpu_changes_the_condition_and_its_time(tmp_path: Path) -> None:
    async with written(tmp_path) as node:
        before = await node.condition()
        await node.cluster.pass_time(60)
        node.fail()
        await node.cluster.pass_time(1)
        now = await node.condition()
        assert (now["status"], now["reason"]) == ("False", "GPUsUnhealthy")
        assert now["lastTransitionTime"] > before["lastTransitionTime"]


@virtual
async def test_an_unchanged_condition_is_not_written_again(tmp_path: Path) -> None:
    async with written(tmp_path) as node:
        before = (await node.node())["metadata"]["resourceVersion"]
        await node.writer.written()
        assert (await node.node())["metadata"]["resourceVersion"] == before


@virtual
async def test_the_taint_comes_and_goes_and_others_stay(tmp_path: Path) -> None:
    async with written(tmp_path, TAINT) as node:
        assert await node.taints() == [OTHER]
        node.fail()
        await node.cluster.pass_time(1)
        assert await node.taints() == [OTHER, {"key": "gpu-health", "value": "failed", "effect": "NoSchedule"}]
        node.gpus = (DeviceHealth(0, UUID),)
        node.writer.changed([HealthChange(node.gpus[0], None)])
        await node.cluster.pass_time(1)
        assert await node.taints() == [OTHER]


@virtual
async def test_without_a_policy_there_is_no_taint(tmp_path: Path) -> None:
    async with written(tmp_path) as node:
        node.fail()
        await node.cluster.pass_time(1)
        assert await node.taints() == [OTHER]


@virtual
async def test_events_are_about_the_node_and_about_each_pod_that_uses_the_gpu(tmp_path: Path) -> None:
    async with written(tmp_path) as node:
        node.fail()
        await node.cluster.pass_time(5)
        events = [one for one in await node.cluster.all(EVENTS) if one["source"]["component"] == "shoal-agent"]
        found = {one["involvedObject"]["kind"]: one for one in events}
        assert set(found) == {"Node", "Pod"}
        assert {one["reason"] for one in found.values()} == {"GPUUnhealthy"}
        assert {one["type"] for one in found.values()} == {"Warning"}
        pod = await node.cluster.get(PODS, "train")
        assert found["Pod"]["involvedObject"]["uid"] == pod["metadata"]["uid"]
        words = "GPU 0 (GPU-a): Xid 79: GPU has fallen off the bus; replace it"
        assert found["Node"]["message"] == f"{words}; used by default/train, default/deleted"
        assert found["Pod"]["message"] == words


@virtual
async def test_a_node_that_does_not_exist_yet_gets_its_condition_later(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        writer = NodeConditionWriter(cluster.api, cluster.clock, "n0", lambda: ())
        task = asyncio.create_task(writer.run())
        await cluster.pass_time(20)
        await cluster.create(NODES, {"metadata": {"name": "n0"}})
        await cluster.pass_time(20)
        conditions = (await cluster.get(NODES, "n0"))["status"]["conditions"]
        assert [one["type"] for one in conditions] == ["GPUHealthy"]
        task.cancel()


@virtual
async def test_those_who_report_a_fault_do_not_wait_for_the_kubelet(tmp_path: Path) -> None:
    """The thread that waits for Xids reports them, and must not wait for a kubelet that does not answer."""
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(NODES, {"metadata": {"name": "n0"}})
        is_asked = threading.Event()

        def users(uuid: str) -> list[PodUser]:
            is_asked.set()
            return [] if uuid else [PodUser("default", "train")]

        writer = NodeConditionWriter(cluster.api, cluster.clock, "n0", lambda: (), users=users)
        task = asyncio.create_task(writer.run())
        await cluster.pass_time(1)
        writer.changed([HealthChange(DeviceHealth(0, UUID, (FAILED,)), FAILED)])
        assert not is_asked.is_set()
        await cluster.pass_time(1)
        assert await asyncio.to_thread(is_asked.wait, 30)
        task.cancel()
