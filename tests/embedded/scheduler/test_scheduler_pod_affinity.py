"""Devices, spread, budgets and restarts: the scheduler's harder cases, on a control plane in virtual time."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import in_virtual_time, virtual
from shoal.client.item import Obj
from shoal.client.kind import (
    DEVICE_CLASSES,
    DISRUPTION_BUDGETS,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from shoal.embedded.scheduler.controller import default_scheduler

GPU = "nvidia.com/gpu"


async def add_node(cluster: SmallCluster, name: str, gpus: int = 1, **labels: str) -> None:
    has = {"cpu": "8", "memory": "32Gi", "pods": "110", GPU: str(gpus)}
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}}
    await cluster.create(NODES, {"metadata": meta, "status": {"capacity": has, "allocatable": has}})
    await cluster.patch(NODES, name, {"spec": {"taints": None}})


def pod(name: str, *, gpus: int = 0, labels: dict[str, str] | None = None, **spec: Any) -> Obj:
    container: Obj = {"name": "main", "image": "i", "resources": {"limits": {GPU: str(gpus)} if gpus else {}}}
    if "resourceClaims" in spec:
        container["resources"]["claims"] = [{"name": one["name"]} for one in spec["resourceClaims"]]
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": {"containers": [container], **spec}}


async def places(cluster: SmallCluster) -> dict[str, str]:
    return {one["metadata"]["name"]: one["spec"].get("nodeName", "") for one in await cluster.pods()}


@virtual
async def test_pods_spread_over_zones_and_wait_where_that_is_impossible(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [default_scheduler]) as cluster:
        await add_node(cluster, "n1", 8, zone="a")
        await add_node(cluster, "n2", 8, zone="b")
        await add_node(cluster, "n3", 2, zone="c")
        rule = {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
        for number in range(10):
            wish = pod(f"p{number}", gpus=1, labels={"app": "web"}, topologySpreadConstraints=[rule])
            await cluster.create(PODS, wish)
        await cluster.pass_time(3)
        assert Counter((await places(cluster)).values()) == {"n1": 3, "n2": 3, "n3": 2, "": 2}


@virtual
async def test_a_namespace_that_is_relabelled_lets_its_pods_in(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [default_scheduler]) as cluster:
        await cluster.create(NAMESPACES, {"metadata": {"name": "team", "labels": {"noisy": "yes"}}})
        await add_node(cluster, "n1")
        term = {
            "labelSelector": {},
            "namespaceSelector": {"matchLabels": {"noisy": "yes"}},
            "topologyKey": "kubernetes.io/hostname",
        }
        alone = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        await cluster.create(PODS, pod("quiet", affinity=alone))
        await cluster.pass_time(1)
        await cluster.create(PODS, pod("loud"), "team")
        await cluster.pass_time(20)
        assert await places(cluster) == {"quiet": "n1", "loud": ""}
        await cluster.patch(NAMESPACES, "team", {"metadata": {"labels": {"noisy": "no"}}})
        await cluster.pass_time(1)
        assert await places(cluster) == {"quiet": "n1", "loud": "n1"}


@virtual
async def test_pods_that_stand_somewhere_count_by_the_labels_that_their_namespace_has_now(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [default_scheduler]) as cluster:
        await cluster.create(NAMESPACES, {"metadata": {"name": "team", "labels": {"data": "no"}}})
        await add_node(cluster, "n1")
        await cluster.create(PODS, pod("base"), "team")
        term = {
            "labelSelector": {},
            "namespaceSelector": {"matchLabels": {"data": "yes"}},
            "topologyKey": "kubernetes.io/hostname",
        }
        near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        await cluster.create(PODS, pod("reader", affinity=near))
        await cluster.pass_time(20)
        assert await places(cluster) == {"base": "n1", "reader": ""}
        await cluster.patch(NAMESPACES, "team", {"metadata": {"labels": {"data": "yes"}}})
        await cluster.pass_time(1)
        assert await places(cluster) == {"base": "n1", "reader": "n1"}


def _claim(name: str, count: int) -> Obj:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}}
    return {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}


async def add_devices(cluster: SmallCluster, node: str, count: int) -> None:
    devices = [{"name": f"gpu-{number}", "attributes": {"model": {"string": "A100"}}} for number in range(count)]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": devices}
    await cluster.create(RESOURCE_SLICES, {"metadata": {"name": f"{node}-gpus"}, "spec": spec})


@virtual
async def test_claims_get_devices_where_there_are_enough_and_none_twice(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [default_scheduler]) as cluster:
        expression = 'device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].model == "A100"'
        spec = {"selectors": [{"cel": {"expression": expression}}]}
        await cluster.create(DEVICE_CLASSES, {"metadata": {"name": "gpu"}, "spec": spec})
        for node, count in (("n1", 1), ("n2", 3)):
            await add_node(cluster, node)
            await add_devices(cluster, node, count)
        for name, count in (("a", 2), ("b", 1), ("c", 2)):
            await cluster.create(RESOURCE_CLAIMS, _claim(name, count))
            claims = [{"name": "gpus", "resourceClaimName": name}]
            await cluster.create(PODS, pod(name, resourceClaims=claims))
            await cluster.pass_time(2)
        found = await places(cluster)
        assert (found["a"], found["c"]) == ("n2", "")
        given = [
            (result["pool"], result["device"])
            for claim in await cluster.all(RESOURCE_CLAIMS)
            for result in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
        ]
        assert len(given) == len(set(given)) == 3
        claim = await cluster.get(RESOURCE_CLAIMS, "a")
        uid = (await cluster.get(PODS, "a"))["metadata"]["uid"]
        assert claim["status"]["reservedFor"] == [{"resource": "pods", "name": "a", "uid": uid}]
        assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
        field = {"key": "metadata.name", "operator": "In", "values": ["n2"]}
        assert claim["status"]["allocation"]["nodeSelector"] == {"nodeSelectorTerms": [{"matchFields": [field]}]}
        told = next(one for one in (await cluster.get(PODS, "c"))["status"]["conditions"] if one["status"] == "False")
        assert "2 cannot allocate all claims" in told["message"]


@virtual
async def test_of_two_that_could_yield_the_one_without_a_budget_does(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [default_scheduler]) as cluster:
        await cluster.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 100})
        selector = {"matchLabels": {"app": "guarded"}}
        await cluster.create(
            DISRUPTION_BUDGETS, {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": selector}}
        )
        for name, label in (("n1", "guarded"), ("n2", "free")):
            await add_node(cluster, name)
            await cluster.create(PODS, pod(label, gpus=1, labels={"app": label}))
            await cluster.pass_time(1)
        await cluster.create(PODS, pod("urgent", gpus=1, priorityClassName="high"))
        await cluster.pass_time(2)
        leaving = [one["metadata"]["name"] for one in await cluster.pods() if "deletionTimestamp" in one["metadata"]]
        assert leaving == ["free"]


@pytest.mark.parametrize("after", [1, 3, 8, 20, 45, 90])
def test_killed_at_any_moment_a_successor_places_every_pod_once_and_gives_no_gpu_twice(
    tmp_path: Path, after: int
) -> None:
    async def story() -> None:
        async with small_cluster(tmp_path) as cluster:
            for number in range(3):
                await add_node(cluster, f"n{number}", 4)
            for number in range(14):
                await cluster.create(PODS, pod(f"p{number}", gpus=1))
            cluster.start(default_scheduler)
            for _ in range(after):
                await asyncio.sleep(0)
            doomed, cluster.tasks = cluster.tasks, []
            for task in doomed:
                task.cancel()
            await asyncio.gather(*doomed, return_exceptions=True)
            cluster.start(default_scheduler)
            await cluster.pass_time(30)
            counts = Counter((await places(cluster)).values())
            assert counts == {"n0": 4, "n1": 4, "n2": 4, "": 2}

    in_virtual_time(story())
