"""Places of an admission are on nodes that can reach the volumes of its pods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.live_schedulers import add_node, is_bound, places, pod
from build.queue_admission import (
    POD_SET_LABEL,
    WORKLOAD_ANNOTATION,
    RunningAdmission,
    add_flavor,
    add_queue,
    is_so,
    queued_cluster,
    said,
    start_admission,
    until_so,
    workload,
)
from build.small_clusters import SmallCluster
from build.virtual_time import in_virtual_time, virtual
from shoal.client.ecosystem_kinds import WORKLOADS
from shoal.client.item import Obj
from shoal.client.kind import PODS, STORAGE_CLASSES, VOLUME_CLAIMS, VOLUMES
from shoal.embedded.controllers.volumes.controller import volume_binder, volume_provisioner

HOST = "kubernetes.io/hostname"


async def add_class(cluster: SmallCluster, name: str = "local", provisioner: str = "", **more: Any) -> None:
    by = provisioner or "kubernetes.io/no-provisioner"
    made = {"metadata": {"name": name}, "provisioner": by, "volumeBindingMode": "WaitForFirstConsumer", **more}
    await cluster.create(STORAGE_CLASSES, made)


async def add_claim(cluster: SmallCluster, name: str = "data", of: str = "local") -> None:
    spec = {"accessModes": ["ReadWriteMany"], "storageClassName": of, "resources": {"requests": {"storage": "1Gi"}}}
    await cluster.create(VOLUME_CLAIMS, {"metadata": {"name": name}, "spec": spec})


async def add_volume(cluster: SmallCluster, name: str, node: str) -> None:
    term = {"matchExpressions": [{"key": HOST, "operator": "In", "values": [node]}]}
    spec = {
        "accessModes": ["ReadWriteMany"],
        "capacity": {"storage": "1Gi"},
        "storageClassName": "local",
        "local": {"path": "/mnt/x"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    await cluster.create(VOLUMES, {"metadata": {"name": name}, "spec": spec})


def mounting(claim: str = "data") -> Obj:
    return {"name": "data", "persistentVolumeClaim": {"claimName": claim}}


def made_for_each(of: str | None = "local") -> Obj:
    spec: Obj = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    spec |= {} if of is None else {"storageClassName": of}
    return {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}


async def submit_with(cluster: SmallCluster, name: str, volume: Obj, cpu: str = "2") -> Obj:
    obj = workload(name, cpu=cpu)
    obj["spec"]["podSets"][0]["template"]["spec"]["volumes"] = [volume]
    await cluster.create(WORKLOADS, obj)
    spec: Obj = obj["spec"]["podSets"][0]["template"]["spec"]
    return spec


async def start_pod(cluster: SmallCluster, name: str, spec: Obj) -> None:
    meta = {"name": f"{name}-0", "labels": {POD_SET_LABEL: "main"}, "annotations": {WORKLOAD_ANNOTATION: name}}
    await cluster.create(PODS, {"metadata": meta, "spec": spec})


async def furnished(cluster: SmallCluster, *nodes: str) -> RunningAdmission:
    cluster.start(volume_binder, volume_provisioner)
    process = start_admission(cluster)
    for name in nodes:
        await add_node(cluster, name, cpu="2", labels={"zone": name[-1]})
    await add_flavor(cluster)
    await add_queue(cluster, cpu="100")
    return process


def where(process: RunningAdmission, name: str) -> set[str]:
    """Nodes on which places are kept."""
    cluster = process.loop.loop.cluster
    return {cluster.names[cluster.pods[key].row] for key in process.admission.placeholders.keys(f"default/{name}")}


@virtual
async def test_the_place_is_where_the_bound_volume_is_and_the_pod_takes_it(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        process = await furnished(cluster, "n1", "n2", "n3")
        await add_class(cluster)
        await add_volume(cluster, "v", "n3")
        await add_claim(cluster)
        await cluster.create(PODS, pod("first", volumes=[mounting()]))
        await cluster.until(lambda: is_bound(cluster, "first"))
        spec = await submit_with(cluster, "work", mounting())
        await until_so(cluster, "work")
        assert where(process, "work") == {"n3"}
        await start_pod(cluster, "work", spec)
        await cluster.until(lambda: is_bound(cluster, "work-0"), 5)
        assert (await places(cluster))["work-0"] == "n3"


@pytest.mark.parametrize("volume", [mounting(), made_for_each()], ids=["claimed", "ephemeral"])
def test_no_workload_is_admitted_to_nodes_that_cannot_reach_its_volume(volume: Obj, tmp_path: Path) -> None:
    async def story() -> None:
        async with queued_cluster(tmp_path) as cluster:
            process = await furnished(cluster, "n1", "n2")
            await add_class(cluster)
            await add_claim(cluster)
            await add_volume(cluster, "v2", "n2")
            await cluster.create(PODS, pod("there", cpu="2", nodeName="n2"))
            await cluster.pass_time(2)
            await submit_with(cluster, "work", volume)
            await until_so(cluster, "work", "QuotaReserved", "False")
            await cluster.pass_time(5)
            assert (await said(cluster, "work", "QuotaReserved"))[1] == "TopologyPlacementFailed"
            # A volume on the node that has room is all that lacks.
            await add_volume(cluster, "v1", "n1")
            await until_so(cluster, "work")
            assert where(process, "work") == {"n1"}

    in_virtual_time(story())


@virtual
async def test_volumes_are_provisioned_where_their_class_allows_it(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        process = await furnished(cluster, "n1", "n2")
        topology = {"matchLabelExpressions": [{"key": "zone", "values": ["2"]}]}
        default = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
        await add_class(cluster, "disks", "shoal.dev/local", allowedTopologies=[topology])
        await cluster.patch(STORAGE_CLASSES, "disks", {"metadata": default})
        await submit_with(cluster, "work", made_for_each(None))
        await until_so(cluster, "work")
        assert where(process, "work") == {"n2"}


@virtual
async def test_places_move_when_the_claim_gets_its_volume_elsewhere(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        process = await furnished(cluster, "n1", "n2")
        await add_class(cluster)
        await add_volume(cluster, "v1", "n1")
        await add_volume(cluster, "v2", "n2")
        await add_claim(cluster)
        spec = await submit_with(cluster, "work", mounting(), cpu="1")
        await until_so(cluster, "work")
        (before,) = where(process, "work")
        other = {"n1": "n2", "n2": "n1"}[before]
        await cluster.create(PODS, pod("first", volumes=[mounting()], nodeSelector={HOST: other}))
        await cluster.until(lambda: is_bound(cluster, "first"))
        await cluster.pass_time(2)
        assert where(process, "work") == {other}
        await start_pod(cluster, "work", spec)
        await cluster.until(lambda: is_bound(cluster, "work-0"), 10)
        assert (await places(cluster))["work-0"] == other


@virtual
async def test_a_missing_claim_does_not_prevent_the_admission(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        await furnished(cluster, "n1")
        await submit_with(cluster, "work", mounting("later"))
        await until_so(cluster, "work")
        assert await is_so(cluster, "work")
