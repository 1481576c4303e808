"""Generic ephemeral volumes: a claim for each, which is the pod's own."""

from __future__ import annotations

from pathlib import Path

from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import NODES, PODS, STORAGE_CLASSES, VOLUME_CLAIMS
from shoal.embedded.controllers.volumes.classes import local_class
from shoal.embedded.controllers.volumes.controller import claim_protection, volume_binder, volume_provisioner
from shoal.embedded.controllers.volumes.ephemeral import ephemeral_volume_controller
from shoal.embedded.scheduler.controller import default_scheduler

SPEC: Obj = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


async def user(cluster: SmallCluster) -> Obj:
    template = {"metadata": {"labels": {"team": "a"}}, "spec": SPEC}
    volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]
    spec = {"containers": [{"name": "main", "image": "i"}], "volumes": volumes}
    return await cluster.create(PODS, {"metadata": {"name": "user"}, "spec": spec})


@virtual
async def test_a_pod_gets_a_claim_of_its_own(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [ephemeral_volume_controller]) as cluster:
        pod = await user(cluster)
        await cluster.pass_time(1)
        claim = await cluster.get(VOLUME_CLAIMS, "user-scratch")
        assert claim["metadata"]["labels"] == {"team": "a"}
        assert claim["spec"]["resources"] == SPEC["resources"]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "user", "uid": pod["metadata"]["uid"]}
        assert claim["metadata"]["ownerReferences"] == [owner | {"controller": True, "blockOwnerDeletion": True}]


@virtual
async def test_a_claim_of_somebody_else_is_left_alone_and_the_pod_told(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [ephemeral_volume_controller]) as cluster:
        await cluster.create(VOLUME_CLAIMS, {"metadata": {"name": "user-scratch"}, "spec": SPEC})
        await user(cluster)
        await cluster.pass_time(1)
        assert "ownerReferences" not in (await cluster.get(VOLUME_CLAIMS, "user-scratch"))["metadata"]
        (event, *_) = [one for one in await cluster.events("user") if one["reason"] == "FailedBinding"]
        words = "PVC default/user-scratch was not created for pod default/user (pod is not owner)"
        assert event["message"] == f"ephemeral volume scratch: {words}"
        await cluster.patch(VOLUME_CLAIMS, "user-scratch", {"metadata": {"finalizers": None}})
        await cluster.delete(VOLUME_CLAIMS, "user-scratch")
        await cluster.pass_time(1)
        assert (await cluster.get(VOLUME_CLAIMS, "user-scratch"))["metadata"]["ownerReferences"]


@virtual
async def test_a_claim_that_is_lost_comes_back_while_the_pod_is_there(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [ephemeral_volume_controller]) as cluster:
        await user(cluster)
        await cluster.pass_time(1)
        first = (await cluster.get(VOLUME_CLAIMS, "user-scratch"))["metadata"]["uid"]
        await cluster.patch(VOLUME_CLAIMS, "user-scratch", {"metadata": {"finalizers": None}})
        await cluster.delete(VOLUME_CLAIMS, "user-scratch")
        await cluster.pass_time(1)
        assert (await cluster.get(VOLUME_CLAIMS, "user-scratch"))["metadata"]["uid"] != first


@virtual
async def test_a_pod_is_placed_once_its_own_claim_can_be_served(tmp_path: Path) -> None:
    together = [ephemeral_volume_controller, volume_binder, volume_provisioner, claim_protection, default_scheduler]
    async with small_cluster(tmp_path, together) as cluster:
        await cluster.create(STORAGE_CLASSES, local_class())
        has = {"cpu": "8", "memory": "32Gi", "pods": "110"}
        node = {"metadata": {"name": "node"}, "status": {"capacity": has, "allocatable": has}}
        await cluster.create(NODES, node)
        await cluster.patch(NODES, "node", {"spec": {"taints": None}})
        await user(cluster)
        await cluster.pass_time(10)
        assert (await cluster.get(PODS, "user"))["spec"]["nodeName"] == "node"
        assert (await cluster.get(VOLUME_CLAIMS, "user-scratch"))["status"]["phase"] == "Bound"
