"""Volumes chosen with a node, and pods that wait for theirs, in kube-scheduler's words."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from build.deciders import Decider, decider
from build.frozen_api import FrozenApi
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import in_virtual_time, virtual
from shoal.client.item import Obj
from shoal.client.kind import NODES, PODS, STORAGE_CLASSES, VOLUME_CLAIMS, VOLUMES
from shoal.embedded.controllers.volumes.controller import volume_binder, volume_provisioner
from shoal.units.errors import ConflictError, TemporaryError

ALL = [volume_binder, volume_provisioner]
NOWHERE = "node(s) didn't find available persistent volumes to bind"
HOST = "kubernetes.io/hostname"


async def add_nodes(cluster: SmallCluster, *names: str) -> None:
    for name in names:
        has = {"cpu": "8", "memory": "32Gi", "pods": "110"}
        meta = {"name": name, "labels": {HOST: name, "zone": name[-1]}}
        await cluster.create(NODES, {"metadata": meta, "status": {"capacity": has, "allocatable": has}})
        await cluster.patch(NODES, name, {"spec": {"taints": None}})


async def add_class(cluster: SmallCluster, name: str = "local", provisioner: str = "", **more: Any) -> None:
    by = provisioner or "kubernetes.io/no-provisioner"
    made = {"metadata": {"name": name}, "provisioner": by, "volumeBindingMode": "WaitForFirstConsumer", **more}
    await cluster.create(STORAGE_CLASSES, made)


async def add_claim(cluster: SmallCluster, name: str, of: str = "local", mode: str = "ReadWriteOnce") -> None:
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": [mode], "storageClassName": of, "resources": resources}
    await cluster.create(VOLUME_CLAIMS, {"metadata": {"name": name}, "spec": spec})


async def add_volume(cluster: SmallCluster, name: str, node: str) -> None:
    term = {"matchExpressions": [{"key": HOST, "operator": "In", "values": [node]}]}
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "storageClassName": "local",
        "local": {"path": "/mnt/x"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    await cluster.create(VOLUMES, {"metadata": {"name": name}, "spec": spec})


async def add_pod(cluster: SmallCluster, name: str, *claims: str) -> None:
    volumes = [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims]
    spec: Obj = {"containers": [{"name": "main", "image": "i"}], "volumes": volumes}
    await cluster.create(PODS, {"metadata": {"name": name}, "spec": spec})
    await cluster.pass_time(1)


async def volume_of(cluster: SmallCluster, claim: str) -> str:
    found: str = (await cluster.get(VOLUME_CLAIMS, claim))["spec"].get("volumeName", "")
    return found


@virtual
async def test_a_volume_is_made_where_the_pod_goes(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ALL) as cluster:
        await add_nodes(cluster, "n1", "n2")
        topology = {"matchLabelExpressions": [{"key": "zone", "values": ["2"]}]}
        await add_class(cluster, "disks", "shoal.dev/local", allowedTopologies=[topology])
        await add_claim(cluster, "data", "disks")
        await add_pod(cluster, "a", "data")
        async with decider(cluster) as first:
            assert (await first.bind("a")).node == "n2"
        noted = (await cluster.get(VOLUME_CLAIMS, "data"))["metadata"]["annotations"]
        assert noted["volume.kubernetes.io/selected-node"] == "n2"
        assert await volume_of(cluster, "data")


@virtual
async def test_a_pod_goes_where_its_volume_is(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ALL) as cluster:
        await add_nodes(cluster, "n1", "n2", "n3")
        await add_class(cluster)
        await add_volume(cluster, "v2", "n2")
        await add_claim(cluster, "data")
        await add_pod(cluster, "a", "data")
        await add_pod(cluster, "b", "data")
        async with decider(cluster) as first:
            assert (await first.bind("a")).node == "n2"
            # Bound by now.
            assert (await first.bind("b")).node == "n2"
        assert await volume_of(cluster, "data") == "v2"


@virtual
async def test_two_claims_of_one_pod_want_two_volumes_of_one_node(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ALL) as cluster:
        await add_nodes(cluster, "n1", "n2", "n3")
        await add_class(cluster)
        for name, node in (("v1", "n1"), ("v2", "n2"), ("v3", "n3"), ("w2", "n2")):
            await add_volume(cluster, name, node)
        for name in ("one", "other"):
            await add_claim(cluster, name)
        await add_pod(cluster, "a", "one", "other")
        async with decider(cluster) as first:
            assert (await first.bind("a")).node == "n2"
        assert {await volume_of(cluster, "one"), await volume_of(cluster, "other")} == {"v2", "w2"}


@virtual
async def test_a_volume_that_is_promised_is_nobody_elses_and_who_waits_for_it_is_told(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ALL) as cluster:
        await add_nodes(cluster, "n1")
        await add_class(cluster)
        await add_volume(cluster, "v1", "n1")
        for name in ("one", "other"):
            await add_claim(cluster, name)
        await add_pod(cluster, "a", "one")
        await add_pod(cluster, "b", "other")
        async with decider(cluster) as first:
            decided, late = first.decided("a"), first.decided("b")
            assert not isinstance(decided, str)
            assert not isinstance(late, str)
            assert first.volumes.stirred() == set()
            work = asyncio.ensure_future(first.writer.prepare(*decided))
            await asyncio.sleep(0)
            assert "default/b" in first.volumes.stirred()
            assert first.decided("b") == NOWHERE
            with pytest.raises(ConflictError, match="available persistent volumes"):
                await first.writer.prepare(*late)
            await work
            assert first.decided("b") == NOWHERE
            await add_volume(cluster, "v2", "n1")
            await cluster.pass_time(1)
            assert "default/b" in first.volumes.stirred()
            await first.bind("b")
        assert [await volume_of(cluster, name) for name in ("one", "other")] == ["v1", "v2"]


@virtual
async def test_what_a_pod_waits_for_is_said_as_kube_scheduler_says_it(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_nodes(cluster, "n1")
        await add_class(cluster)
        at_once = {"metadata": {"name": "now"}, "provisioner": "x.example.com", "volumeBindingMode": "Immediate"}
        await cluster.create(STORAGE_CLASSES, at_once)
        await add_pod(cluster, "a", "data")
        await add_pod(cluster, "b", "soon")
        async with decider(cluster) as first:
            assert first.decided("a") == 'persistentvolumeclaim "data" not found'
            await add_claim(cluster, "data")
            await add_claim(cluster, "soon", "now")
            await cluster.pass_time(1)
            assert first.volumes.stirred() == {"default/a"}
            assert first.decided("a") == NOWHERE
            assert first.decided("b") == "pod has unbound immediate PersistentVolumeClaims"


@virtual
async def test_a_claim_for_one_pod_keeps_the_second_waiting_until_the_first_is_gone(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ALL) as cluster:
        await add_nodes(cluster, "n1")
        await add_class(cluster, "disks", "shoal.dev/local")
        await add_claim(cluster, "data", "disks", "ReadWriteOncePod")
        await add_pod(cluster, "a", "data")
        await add_pod(cluster, "b", "data")
        async with decider(cluster) as first:
            await first.bind("a")
            await cluster.pass_time(1)
            taken = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
            assert first.decided("b") == taken
            first.volumes.stirred()
            await cluster.patch(PODS, "a", {"status": {"phase": "Succeeded"}}, "status")
            await cluster.pass_time(1)
            assert "default/b" in first.volumes.stirred()
            assert not isinstance(first.decided("b"), str)


@virtual
async def test_a_volume_that_nobody_makes_is_given_up_in_the_end(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_nodes(cluster, "n1")
        await add_class(cluster, "disks", "nobody.example.com")
        await add_claim(cluster, "data", "disks")
        await add_pod(cluster, "a", "data")
        async with decider(cluster) as first:
            decided = first.decided("a")
            assert not isinstance(decided, str)
            with pytest.raises(TemporaryError, match="context deadline exceeded"):
                await first.writer.prepare(*decided)


@pytest.mark.parametrize("is_lost", [False, True])
@pytest.mark.parametrize("writes", range(4))
def test_whoever_follows_a_writer_that_died_binds_the_pod_to_the_same_volumes(
    tmp_path: Path, writes: int, *, is_lost: bool
) -> None:
    async def story() -> None:
        async with small_cluster(tmp_path, ALL) as cluster:
            await add_nodes(cluster, "n1", "n2")
            await add_class(cluster)
            await add_class(cluster, "disks", "shoal.dev/local")
            await add_volume(cluster, "v2", "n2")
            await add_claim(cluster, "kept")
            await add_claim(cluster, "made", "disks")
            await add_pod(cluster, "a", "kept", "made")
            api = FrozenApi(cluster.api, writes, is_lost=is_lost)
            async with decider(cluster, api) as first:
                work = asyncio.ensure_future(first.bind("a"))
                frozen = asyncio.ensure_future(api.frozen.wait())
                await asyncio.wait([work, frozen], return_when="FIRST_COMPLETED")
                for task in (work, frozen):
                    task.cancel()
                await asyncio.gather(work, frozen, return_exceptions=True)
            await cluster.pass_time(2)
            async with decider(cluster) as second:
                await _bind(second, "a")
            assert (await cluster.get(PODS, "a"))["spec"]["nodeName"] == "n2"
            assert await volume_of(cluster, "kept") == "v2"
            assert await volume_of(cluster, "made")

    in_virtual_time(story())


async def _bind(one: Decider, name: str) -> None:
    item = one.informers.of(PODS).get("default", name)
    assert item is not None
    if not item.obj()["spec"].get("nodeName"):
        await one.bind(name)
