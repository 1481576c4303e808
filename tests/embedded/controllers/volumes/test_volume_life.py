"""Claims and volumes on a whole control plane in virtual time, with the scheduler that chooses nodes for them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import in_virtual_time, virtual
from shoal.client.item import Obj
from shoal.client.kind import NODES, PODS, STORAGE_CLASSES, VOLUME_CLAIMS, VOLUMES
from shoal.client.port import Deletion
from shoal.client.refusals import BusyError, NotFoundError
from shoal.embedded.controllers.volumes.classes import local_class
from shoal.embedded.controllers.volumes.controller import (
    claim_protection,
    volume_binder,
    volume_protection,
    volume_provisioner,
)
from shoal.embedded.scheduler.controller import default_scheduler

ALL = [volume_binder, volume_provisioner, claim_protection, volume_protection, default_scheduler]


def claim(name: str, size: str = "1Gi", **spec: Any) -> Obj:
    whole = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return {"metadata": {"name": name}, "spec": whole}


def volume(name: str, size: str, **spec: Any) -> Obj:
    whole = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "hostPath": {"path": "/tmp/x"},  # noqa: S108 - never opened
        **spec,
    }
    return {"metadata": {"name": name}, "spec": whole}


def using(name: str, *claims: str) -> Obj:
    volumes = [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims]
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "i"}], "volumes": volumes}}


async def add_node(cluster: SmallCluster, name: str, **labels: str) -> None:
    has = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}}
    await cluster.create(NODES, {"metadata": meta, "status": {"capacity": has, "allocatable": has}})
    await cluster.patch(NODES, name, {"spec": {"taints": None}})


async def phase(cluster: SmallCluster, name: str, kind: Any = VOLUME_CLAIMS) -> str:
    found: str = (await cluster.get(kind, name)).get("status", {}).get("phase", "")
    return found


async def is_bound(cluster: SmallCluster, name: str) -> bool:
    return await phase(cluster, name) == "Bound"


async def is_gone(cluster: SmallCluster, name: str, kind: Any = VOLUME_CLAIMS) -> bool:
    try:
        await cluster.get(kind, name)
    except NotFoundError:
        return True
    return False


async def reasons(cluster: SmallCluster, name: str) -> list[str]:
    return [event["reason"] for event in await cluster.events(name)]


@virtual
async def test_a_claim_that_waits_is_made_where_its_pod_goes(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ALL) as cluster:
        await cluster.create(STORAGE_CLASSES, local_class())
        await add_node(cluster, "n1")
        await cluster.create(VOLUME_CLAIMS, claim("data"))
        await cluster.pass_time(5)
        assert await phase(cluster, "data") == "Pending"
        assert await reasons(cluster, "data") == ["WaitForFirstConsumer"]
        await cluster.create(PODS, using("p", "data"))
        await cluster.until(lambda: is_bound(cluster, "data"))
        found = await cluster.get(VOLUME_CLAIMS, "data")
        assert found["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == "n1"
        assert found["status"]["capacity"] == {"storage": "1Gi"}
        name = found["spec"]["volumeName"]
        assert name == f"pvc-{found['metadata']['uid']}"
        made = await cluster.get(VOLUMES, name)
        assert made["status"]["phase"] == "Bound"
        assert made["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] == "shoal.dev/local"
        await cluster.pass_time(2)
        assert (await cluster.get(PODS, "p"))["spec"]["nodeName"] == "n1"
        assert "Provisioning" in await reasons(cluster, "data")


@virtual
async def test_an_immediate_claim_takes_the_smallest_volume_that_does(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ALL) as cluster:
        for name, size in (("large", "10Gi"), ("right", "2Gi"), ("small", "512Mi")):
            await cluster.create(VOLUMES, volume(name, size))
        await cluster.until(lambda: _is(cluster, "right", "Available"))
        await cluster.create(VOLUME_CLAIMS, claim("data", storageClassName=""))
        await cluster.until(lambda: is_bound(cluster, "data"))
        found = await cluster.get(VOLUME_CLAIMS, "data")
        assert found["spec"]["volumeName"] == "right"
        assert found["status"]["capacity"] == {"storage": "2Gi"}
        assert found["metadata"]["annotations"] == {
            "pv.kubernetes.io/bind-completed": "yes",
            "pv.kubernetes.io/bound-by-controller": "yes",
        }


async def _is(cluster: SmallCluster, name: str, wanted: str) -> bool:
    return await phase(cluster, name, VOLUMES) == wanted


@virtual
async def test_without_class_and_volume_the_claim_says_why_it_waits(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ALL) as cluster:
        await cluster.create(VOLUME_CLAIMS, claim("data", storageClassName=""))
        await cluster.pass_time(1)
        said = await cluster.events("data")
        assert [(one["reason"], one["message"]) for one in said] == [
            ("FailedBinding", "no persistent volumes available for this claim and no storage class is set")
        ]


@virtual
async def test_a_claim_older_than_the_default_class_gets_it(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ALL) as cluster:
        await cluster.create(VOLUME_CLAIMS, claim("data"))
        await cluster.pass_time(1)
        await cluster.create(STORAGE_CLASSES, local_class())
        await cluster.pass_time(2)
        assert (await cluster.get(VOLUME_CLAIMS, "data"))["spec"]["storageClassName"] == "shoal-local"


@pytest.mark.parametrize("policy", ["Delete", "Retain"])
def test_what_a_claim_leaves_is_reclaimed_as_its_policy_says(tmp_path: Path, policy: str) -> None:
    async def story() -> None:
        async with small_cluster(tmp_path, ALL) as cluster:
            made = {**local_class(), "reclaimPolicy": policy, "volumeBindingMode": "Immediate"}
            await cluster.create(STORAGE_CLASSES, made)
            await cluster.create(VOLUME_CLAIMS, claim("data"))
            await cluster.until(lambda: is_bound(cluster, "data"))
            name = (await cluster.get(VOLUME_CLAIMS, "data"))["spec"]["volumeName"]
            await cluster.delete(VOLUME_CLAIMS, "data")
            await cluster.until(lambda: is_gone(cluster, "data"))
            await cluster.pass_time(3)
            assert await is_gone(cluster, name, VOLUMES) == (policy == "Delete")
            if policy == "Retain":
                assert await phase(cluster, name, VOLUMES) == "Released"

    in_virtual_time(story())


@virtual
async def test_a_claim_in_use_outlives_its_deletion_until_the_pod_is_gone(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ALL) as cluster:
        await cluster.create(STORAGE_CLASSES, local_class())
        await add_node(cluster, "n1")
        await cluster.create(VOLUME_CLAIMS, claim("data"))
        await cluster.create(PODS, using("p", "data"))
        await cluster.until(lambda: is_bound(cluster, "data"))
        await cluster.pass_time(2)
        await cluster.delete(VOLUME_CLAIMS, "data")
        await cluster.pass_time(30)
        assert not await is_gone(cluster, "data")
        await cluster.api.delete(PODS, "default", "p", Deletion(grace_s=0))
        await cluster.until(lambda: is_gone(cluster, "data"))


@virtual
async def test_a_claim_grows_where_its_class_lets_it(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ALL) as cluster:
        await cluster.create(STORAGE_CLASSES, {**local_class(), "volumeBindingMode": "Immediate"})
        await cluster.create(VOLUME_CLAIMS, claim("data"))
        await cluster.until(lambda: is_bound(cluster, "data"))
        await cluster.patch(VOLUME_CLAIMS, "data", {"spec": {"resources": {"requests": {"storage": "3Gi"}}}})
        await cluster.pass_time(2)
        found = await cluster.get(VOLUME_CLAIMS, "data")
        assert found["status"]["capacity"] == {"storage": "3Gi"}
        made = await cluster.get(VOLUMES, found["spec"]["volumeName"])
        assert made["spec"]["capacity"] == {"storage": "3Gi"}


@virtual
async def test_a_claim_whose_volume_is_gone_is_lost(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ALL) as cluster:
        await cluster.create(VOLUMES, volume("v", "2Gi"))
        await cluster.create(VOLUME_CLAIMS, claim("data", storageClassName="", volumeName="v"))
        await cluster.until(lambda: is_bound(cluster, "data"))
        await cluster.delete(VOLUMES, "v")
        with suppress(BusyError):
            await cluster.patch(VOLUMES, "v", {"metadata": {"finalizers": None}})
        await cluster.until(lambda: _claim_is(cluster, "Lost"))
        await cluster.pass_time(0.1)
        assert "ClaimLost" in await reasons(cluster, "data")


async def _claim_is(cluster: SmallCluster, wanted: str) -> bool:
    return await phase(cluster, "data") == wanted


@virtual
async def test_a_pod_goes_where_its_bound_volume_is(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ALL) as cluster:
        for name in ("n1", "n2", "n3"):
            await add_node(cluster, name)
        term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n3"]}]}
        made = volume("v", "1Gi", nodeAffinity={"required": {"nodeSelectorTerms": [term]}})
        await cluster.create(VOLUMES, made)
        await cluster.create(VOLUME_CLAIMS, claim("data", storageClassName=""))
        await cluster.until(lambda: is_bound(cluster, "data"))
        await cluster.create(PODS, using("p", "data"))
        await cluster.pass_time(3)
        assert (await cluster.get(PODS, "p"))["spec"]["nodeName"] == "n3"


@virtual
async def test_a_pod_whose_claim_is_missing_is_told_which(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ALL) as cluster:
        await add_node(cluster, "n1")
        await cluster.create(PODS, using("p", "data"))
        await cluster.pass_time(1)
        conditions = (await cluster.get(PODS, "p"))["status"]["conditions"]
        told = next(one for one in conditions if one["type"] == "PodScheduled")
        assert told["message"].startswith(
            '0/1 nodes are available: persistentvolumeclaim "data" not found. no new claims to deallocate, '
        )


@virtual
async def test_a_claim_on_its_way_to_one_node_keeps_its_pod_for_that_node(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ALL) as cluster:
        await cluster.create(STORAGE_CLASSES, local_class())
        for name in ("n1", "n2", "n3"):
            await add_node(cluster, name)
        wanted = claim("data")
        wanted["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": "n3"}
        await cluster.create(VOLUME_CLAIMS, wanted)
        await cluster.create(PODS, using("p", "data"))
        await cluster.pass_time(5)
        assert (await cluster.get(PODS, "p"))["spec"]["nodeName"] == "n3"


@virtual
async def test_a_claim_meant_for_a_node_that_is_gone_is_made_for_another(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ALL) as cluster:
        await cluster.create(STORAGE_CLASSES, local_class())
        await add_node(cluster, "n1")
        wanted = claim("data")
        wanted["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": "gone"}
        await cluster.create(VOLUME_CLAIMS, wanted)
        await cluster.create(PODS, using("p", "data"))
        await cluster.pass_time(20)
        assert (await cluster.get(PODS, "p"))["spec"]["nodeName"] == "n1"


@pytest.mark.parametrize("after", range(12))
def test_killed_after_any_turn_a_successor_binds_each_claim_to_one_volume(tmp_path: Path, after: int) -> None:
    async def story() -> None:
        async with small_cluster(tmp_path) as cluster:
            await cluster.create(STORAGE_CLASSES, {**local_class(), "volumeBindingMode": "Immediate"})
            for number in range(3):
                await cluster.create(VOLUME_CLAIMS, claim(f"c{number}"))
            cluster.start(volume_binder, volume_provisioner)
            for _ in range(after * 6):
                await asyncio.sleep(0)
            doomed, cluster.tasks = cluster.tasks, []
            for task in doomed:
                task.cancel()
            await asyncio.gather(*doomed, return_exceptions=True)
            cluster.start(volume_binder, volume_provisioner)
            await cluster.pass_time(60)
            claims, volumes = await cluster.all(VOLUME_CLAIMS), await cluster.all(VOLUMES)
            assert [one["status"]["phase"] for one in claims] == ["Bound"] * 3
            assert len(volumes) == 3
            assert {one["spec"]["volumeName"] for one in claims} == {one["metadata"]["name"] for one in volumes}

    in_virtual_time(story())
