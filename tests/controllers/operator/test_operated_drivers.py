"""NVIDIADrivers on a cluster: the labels of their nodes, their DaemonSets, and their statuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from build.operated_clusters import SPACE, daemon_sets, gpu_node, make_ready, operated_cluster, policy, status
from build.small_clusters import SmallCluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import CLUSTER_POLICIES, NVIDIA_DRIVERS
from shoal.client.item import Obj
from shoal.client.kind import DAEMON_SETS, NODES
from shoal.operator.components.nvidia_drivers import POOL_LABEL

BY_DRIVERS: Obj = {"driver": {"useNvidiaDriverCRD": True}}


async def _driver(cluster: SmallCluster, name: str, **spec: Any) -> Obj:
    return await cluster.create(NVIDIA_DRIVERS, {"metadata": {"name": name}, "spec": spec})


async def _state(cluster: SmallCluster, name: str) -> tuple[str, str]:
    found: Obj = (await cluster.get(NVIDIA_DRIVERS, name)).get("status") or {}
    by_type = {one["type"]: one for one in found.get("conditions", ())}
    told = by_type.get("Ready" if found.get("state") == "ready" else "Error", {})
    return found.get("state", ""), told.get("reason", "")


async def _driver_sets(cluster: SmallCluster) -> list[str]:
    return sorted(one for one in await daemon_sets(cluster) if one.startswith("nvidia-driver-daemonset"))


@virtual
async def test_each_driver_gets_its_nodes_and_its_daemon_set(tmp_path: Path) -> None:
    async with operated_cluster(tmp_path) as cluster:
        await cluster.create(NODES, gpu_node("gpu-1", pool="new"))
        await policy(cluster, BY_DRIVERS)
        rest = await _driver(cluster, "rest", default=True)
        await _driver(cluster, "new", nodeSelector={"pool": "new"}, version="590.1")
        await cluster.pass_time(5)
        sets = await _driver_sets(cluster)
        assert len(sets) == 2
        labels = [(await cluster.get(NODES, name))["metadata"]["labels"][POOL_LABEL] for name in ("gpu-0", "gpu-1")]
        assert [f"nvidia-driver-daemonset-{one}" for one in sorted(labels)] == sets
        owner = (await cluster.get(DAEMON_SETS, f"nvidia-driver-daemonset-{labels[0]}", SPACE))["metadata"][
            "ownerReferences"
        ][0]
        assert (owner["kind"], owner["uid"]) == ("NVIDIADriver", rest["metadata"]["uid"])
        assert await _state(cluster, "rest") == ("notReady", "DriverNotReady")
        assert (await status(cluster))[:2] == ("notReady", "DriverNotReady")
        await make_ready(cluster)
        await cluster.pass_time(6)
        assert await _state(cluster, "new") == ("ready", "Reconciled")
        assert (await status(cluster))[0] == "ready"
        await cluster.delete(NVIDIA_DRIVERS, "new")
        await cluster.pass_time(5)
        assert await _driver_sets(cluster) == [f"nvidia-driver-daemonset-{labels[0]}"]
        assert (await cluster.get(NODES, "gpu-1"))["metadata"]["labels"][POOL_LABEL] == labels[0]


@virtual
async def test_without_the_field_of_the_policy_its_own_driver_is_installed(tmp_path: Path) -> None:
    async with operated_cluster(tmp_path) as cluster:
        await policy(cluster)
        await _driver(cluster, "all")
        await cluster.pass_time(5)
        assert await _driver_sets(cluster) == ["nvidia-driver-daemonset"]
        assert await _state(cluster, "all") == ("notReady", "PrerequisiteNotMet")
        await cluster.patch(CLUSTER_POLICIES, "cluster-policy", {"spec": BY_DRIVERS})
        await cluster.pass_time(5)
        assert "nvidia-driver-daemonset" not in await _driver_sets(cluster)
        assert len(await _driver_sets(cluster)) == 1


@virtual
async def test_a_conflict_is_reported_by_the_younger_one(tmp_path: Path) -> None:
    async with operated_cluster(tmp_path) as cluster:
        await policy(cluster, BY_DRIVERS)
        await _driver(cluster, "first")
        await cluster.pass_time(2)
        await _driver(cluster, "second")
        await cluster.pass_time(5)
        assert await _state(cluster, "second") == ("notReady", "ConflictingNodeSelector")
        assert (await _state(cluster, "first"))[1] == "DriverNotReady"
        assert len(await _driver_sets(cluster)) == 1


@virtual
async def test_a_driver_that_becomes_wrong_keeps_its_pods(tmp_path: Path) -> None:
    async with operated_cluster(tmp_path) as cluster:
        await policy(cluster, BY_DRIVERS)
        await _driver(cluster, "all")
        await cluster.pass_time(5)
        before = await _driver_sets(cluster)
        label = (await cluster.get(NODES, "gpu-0"))["metadata"]["labels"][POOL_LABEL]
        change = {"spec": {"default": True, "nodeSelector": {"a": "b"}}}
        await cluster.patch(NVIDIA_DRIVERS, "all", change)
        await cluster.pass_time(5)
        assert await _state(cluster, "all") == ("notReady", "ReconcileFailed")
        assert await _driver_sets(cluster) == before
        # Without the label, the pods would be deleted.
        assert (await cluster.get(NODES, "gpu-0"))["metadata"]["labels"][POOL_LABEL] == label
        assert "NVIDIADriver all: spec.default: selects nodes" in (await status(cluster))[2]
