"""A joined machine that is cut off: its pods continue, and after its return no pod runs twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from build.joined_kubelet import JoinedKubelet
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import NODES, PODS
from shoal.client.port import Deletion
from shoal.client.refusals import NotFoundError
from shoal.embedded.controllers.node_lifecycle.controller import node_lifecycle_controller
from shoal.embedded.controllers.pod_garbage.controller import pod_garbage_collector
from shoal.embedded.controllers.taint_eviction.controller import taint_eviction_controller

_LIFECYCLE = (node_lifecycle_controller, taint_eviction_controller, pod_garbage_collector)


@asynccontextmanager
async def machines(folder: Path, *names: str) -> AsyncIterator[tuple[SmallCluster, list[JoinedKubelet]]]:
    async with small_cluster(folder, _LIFECYCLE, authorization="rbac") as cluster:
        kubelets = [JoinedKubelet(cluster, folder, name) for name in names]
        for one in kubelets:
            one.start()
        for name in names:
            await cluster.until(partial(ready, cluster, name))
        try:
            yield cluster, kubelets
        finally:
            for one in kubelets:
                await one.kill()


async def ready(cluster: SmallCluster, name: str, status: str = "True") -> bool:
    try:
        node = await cluster.get(NODES, name)
    except NotFoundError:
        return False
    return any(one["type"] == "Ready" and one["status"] == status for one in node["status"]["conditions"])


async def created(cluster: SmallCluster, node: str) -> str:
    """The uid of a pod `work` that is bound to the node."""
    spec: Obj = {"nodeName": node, "containers": [{"name": "c", "image": "x", "command": ["sleep"]}]}
    toleration = {"key": "shoal.dev/runtime", "operator": "Exists"}
    found = await cluster.create(PODS, {"metadata": {"name": "work"}, "spec": {**spec, "tolerations": [toleration]}})
    return str(found["metadata"]["uid"])


async def running(cluster: SmallCluster, node: str) -> str:
    uid = await created(cluster, node)
    await cluster.until(lambda: phase(cluster, "Running"))
    return uid


async def phase(cluster: SmallCluster, wanted: str) -> bool:
    return bool((await cluster.get(PODS, "work"))["status"].get("phase") == wanted)


async def taints(cluster: SmallCluster, name: str) -> set[str]:
    return {one["key"] for one in (await cluster.get(NODES, name))["spec"].get("taints", ())}


async def is_gone(cluster: SmallCluster) -> bool:
    return not await cluster.pods()


@virtual
async def test_a_short_interruption_changes_nothing(tmp_path: Path) -> None:
    async with machines(tmp_path, "n1") as (cluster, [n1]):
        uid = await running(cluster, "n1")

        n1.network.cut()
        await cluster.pass_time(30.0)
        n1.network.heal()
        await cluster.pass_time(120.0)

        assert await ready(cluster, "n1")
        assert (n1.runtime.running, len(n1.runtime.starts)) == ([uid], 1)
        assert await phase(cluster, "Running")


@virtual
async def test_pods_of_a_lost_machine_continue_until_it_returns_and_are_stopped_then(tmp_path: Path) -> None:
    # With one node only, all would be lost, and Kubernetes evicts nothing then.
    async with machines(tmp_path, "n1", "n2") as (cluster, [n1, _]):
        uid = await running(cluster, "n1")

        n1.network.cut()
        await cluster.until(lambda: ready(cluster, "n1", "Unknown"), within_s=60.0)
        await cluster.pass_time(400.0)
        pod = await cluster.get(PODS, "work")
        assert "deletionTimestamp" in pod["metadata"]
        assert n1.runtime.running == [uid]

        n1.network.heal()
        await cluster.until(lambda: is_gone(cluster), within_s=60.0)

        assert (n1.runtime.running, len(n1.runtime.starts)) == ([], 1)
        await cluster.until(lambda: ready(cluster, "n1"), within_s=60.0)


@virtual
async def test_a_pod_that_was_replaced_on_another_machine_is_stopped_at_the_return(tmp_path: Path) -> None:
    async with machines(tmp_path, "n1", "n2") as (cluster, [n1, n2]):
        first = await running(cluster, "n1")

        n1.network.cut()
        await cluster.delete(PODS, "work", Deletion(grace_s=0))
        second = await running(cluster, "n2")
        assert (n1.runtime.running, n2.runtime.running) == ([first], [second])
        n1.network.heal()
        await cluster.until(lambda: not n1.runtime.running)
        await cluster.pass_time(60.0)

        assert n2.runtime.running == [second]
        assert [len(one.runtime.starts) for one in (n1, n2)] == [1, 1]
        assert await phase(cluster, "Running")


@virtual
async def test_a_pod_that_was_deleted_while_the_agent_was_dead_is_stopped_by_the_next_one(tmp_path: Path) -> None:
    async with machines(tmp_path, "n1") as (cluster, [n1]):
        uid = await running(cluster, "n1")

        await n1.kill()
        await cluster.delete(PODS, "work", Deletion(grace_s=0))
        assert n1.runtime.running == [uid]
        n1.start()
        await cluster.until(lambda: not n1.runtime.running)

        assert len(n1.runtime.starts) == 1


@virtual
async def test_an_agent_that_starts_without_a_server_keeps_pods_and_continues_later(tmp_path: Path) -> None:
    async with machines(tmp_path, "n1") as (cluster, [n1]):
        uid = await running(cluster, "n1")

        await n1.kill()
        n1.network.cut()
        n1.start()
        await cluster.pass_time(20.0)
        assert n1.runtime.running == [uid]
        n1.network.heal()
        await cluster.pass_time(60.0)

        assert (n1.runtime.running, len(n1.runtime.starts)) == ([uid], 1)
        assert await ready(cluster, "n1")
        await cluster.delete(PODS, "work")
        await cluster.until(lambda: is_gone(cluster))


@virtual
async def test_an_agent_that_starts_again_on_a_lost_node_makes_it_ready(tmp_path: Path) -> None:
    async with machines(tmp_path, "n1", "n2") as (cluster, [n1, _]):
        await n1.kill()
        await cluster.until(lambda: ready(cluster, "n1", "Unknown"), within_s=60.0)
        await cluster.pass_time(10.0)
        assert {"node.kubernetes.io/unreachable", "shoal.dev/runtime"} <= await taints(cluster, "n1")

        # A node may not change its own taints, so it must leave them as they are.
        n1.start()
        await cluster.until(lambda: ready(cluster, "n1"), within_s=30.0)
        await cluster.pass_time(10.0)

        assert await taints(cluster, "n1") == {"shoal.dev/runtime"}
