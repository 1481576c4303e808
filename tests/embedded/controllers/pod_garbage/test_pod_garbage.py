"""Pods that nobody else would end."""

from __future__ import annotations

from pathlib import Path

from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import NODES, PODS
from shoal.client.port import Deletion
from shoal.embedded.controllers.pod_garbage.controller import PodGarbage, pod_garbage_collector


async def _pod(cluster: SmallCluster, name: str, node: str = "", **meta: object) -> None:
    spec: Obj = {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 30}
    if node:
        spec["nodeName"] = node
    await cluster.create(PODS, {"metadata": {"name": name, **meta}, "spec": spec})


async def _names(cluster: SmallCluster) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in await cluster.pods())


@virtual
async def test_pods_of_a_node_that_is_gone_fail_and_go_after_quarantine(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [pod_garbage_collector]) as cluster:
        await cluster.create(NODES, {"metadata": {"name": "n"}})
        await _pod(cluster, "pod", "n")
        await _pod(cluster, "held", "n", finalizers=["example.com/hold"])
        await cluster.pass_time(100)
        assert await _names(cluster) == ["held", "pod"]
        await cluster.delete(NODES, "n")
        await cluster.pass_time(35)
        assert await _names(cluster) == ["held", "pod"]
        await cluster.pass_time(40)
        assert await _names(cluster) == ["held"]
        held = await cluster.get(PODS, "held")
        assert held["status"]["phase"] == "Failed"
        (told,) = [one for one in held["status"]["conditions"] if one["type"] == "DisruptionTarget"]
        assert (told["reason"], told["message"]) == ("DeletionByPodGC", "PodGC: node no longer exists")


@virtual
async def test_a_node_that_comes_back_in_time_keeps_its_pods(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [pod_garbage_collector]) as cluster:
        await cluster.create(NODES, {"metadata": {"name": "n"}})
        await _pod(cluster, "pod", "n")
        await cluster.delete(NODES, "n")
        await cluster.pass_time(35)
        await cluster.create(NODES, {"metadata": {"name": "n"}})
        await cluster.pass_time(200)
        assert (await cluster.get(PODS, "pod"))["status"]["phase"] == "Pending"


@virtual
async def test_pods_of_a_node_out_of_service_end_when_they_are_deleted(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [pod_garbage_collector]) as cluster:
        taint = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
        await cluster.create(NODES, {"metadata": {"name": "n"}, "spec": {"taints": [taint]}})
        await _pod(cluster, "asked", "n")
        await _pod(cluster, "other", "n")
        await cluster.delete(PODS, "asked")
        await cluster.pass_time(45)
        assert await _names(cluster) == ["other"]


@virtual
async def test_the_oldest_of_too_many_finished_pods_go(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [lambda context: PodGarbage(context, threshold=2)]) as cluster:
        await cluster.create(NODES, {"metadata": {"name": "n"}})
        for name in ("first", "second", "third", "fourth", "running"):
            await _pod(cluster, name, "n")
            if name != "running":
                await cluster.patch(PODS, name, {"status": {"phase": "Succeeded"}}, "status")
            await cluster.pass_time(1)
        await cluster.pass_time(30)
        assert await _names(cluster) == ["fourth", "running", "third"]


@virtual
async def test_a_pod_being_deleted_that_was_never_bound_goes(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [pod_garbage_collector]) as cluster:
        await _pod(cluster, "held", finalizers=["example.com/hold"])
        await cluster.delete(PODS, "held", Deletion(grace_s=30))
        await cluster.pass_time(45)
        assert (await cluster.get(PODS, "held"))["status"]["phase"] == "Failed"
