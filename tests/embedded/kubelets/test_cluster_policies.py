"""A ClusterPolicy decides which ConfigMaps the GPUs of all nodes follow, as the GPU operator does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from build.fleets import FleetRun, machine, pod, statuses
from build.foreign_kinds import established
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import CLUSTER_POLICIES, MISPLACED_CLUSTER_POLICIES
from shoal.client.kind import CONFIG_MAPS, NAMESPACES, NODES, PODS
from shoal.embedded.gpus import mig_manager, plugin_manager
from shoal.embedded.kubelets.cluster_policy import ClusterPolicy
from shoal.embedded.kubelets.settings import FleetSettings
from shoal.wiring.foreign_kinds import provide_foreign

FOUR_TIMES = """
version: v1
sharing:
  timeSlicing:
    renameByDefault: false
    failRequestsGreaterThanOne: false
    resources:
      - name: nvidia.com/gpu
        replicas: 4
"""
LAYOUTS = """
version: v1
mig-configs:
  two-halves:
    - devices: all
      mig-enabled: true
      mig-devices: {"3g.40gb": 2}
"""
SHARING = {"devicePlugin": {"config": {"name": "time-slicing-config"}}}


@asynccontextmanager
async def _cluster(folder: Path, gpus: int = 2, **more: Any) -> AsyncIterator[SmallCluster]:
    async with small_cluster(folder) as cluster:
        await provide_foreign(cluster.api)
        await established(cluster)
        await cluster.create(NAMESPACES, {"metadata": {"name": "gpu-operator"}})
        machines = (machine("node-0", gpus=gpus, **more), machine("node-1", gpus=gpus, **more))
        run = FleetRun(cluster, machines, FleetSettings())
        try:
            await cluster.pass_time(5)
            yield cluster
        finally:
            await run.kill()


async def _config(cluster: SmallCluster, name: str, **data: str) -> None:
    await cluster.create(CONFIG_MAPS, {"metadata": {"name": name}, "data": data}, "gpu-operator")
    await cluster.pass_time(2)


async def _policy(cluster: SmallCluster, spec: dict[str, Any], name: str = "cluster-policy") -> None:
    await cluster.create(CLUSTER_POLICIES, {"metadata": {"name": name}, "spec": spec})
    await cluster.pass_time(2)


async def _offered(cluster: SmallCluster, node: str = "node-0", resource: str = "nvidia.com/gpu") -> str:
    found = (await cluster.get(NODES, node))["status"]["allocatable"]
    return str(found.get(resource, "0"))


async def _label(cluster: SmallCluster, node: str, label: str, value: str) -> None:
    await cluster.patch(NODES, node, {"metadata": {"labels": {label: value}}})
    await cluster.pass_time(2)


@virtual
async def test_a_default_makes_every_gpu_count_four(tmp_path: Path) -> None:
    async with _cluster(tmp_path) as cluster:
        await _config(cluster, "time-slicing-config", any=FOUR_TIMES)
        assert await _offered(cluster) == "2"
        await _policy(cluster, {"devicePlugin": {"config": {"name": "time-slicing-config", "default": "any"}}})
        assert [await _offered(cluster, node) for node in ("node-0", "node-1")] == ["8", "8"]
        product = (await cluster.get(NODES, "node-0"))["metadata"]["labels"]["nvidia.com/gpu.product"]
        assert product == "NVIDIA-H100-80GB-HBM3-SHARED"
        await cluster.delete(CLUSTER_POLICIES, "cluster-policy")
        await cluster.pass_time(2)
        assert await _offered(cluster) == "2"


@virtual
async def test_without_a_default_only_labelled_nodes_change_and_this_is_said(tmp_path: Path) -> None:
    async with _cluster(tmp_path) as cluster:
        await _config(cluster, "time-slicing-config", any=FOUR_TIMES)
        await _policy(cluster, SHARING)
        assert await _offered(cluster) == "2"
        said = [event["message"] for event in await cluster.events("cluster-policy")]
        words = (
            "spec.devicePlugin.config names ConfigMap time-slicing-config and no default: no effect on 2 of 2 GPU "
            "nodes, which lack the label nvidia.com/device-plugin.config"
        )
        assert said == [words]
        await _label(cluster, "node-1", plugin_manager.LABEL, "any")
        assert [await _offered(cluster, node) for node in ("node-0", "node-1")] == ["2", "8"]
        await cluster.patch(
            CLUSTER_POLICIES, "cluster-policy", {"spec": {"devicePlugin": {"config": {"default": "any"}}}}, namespace=""
        )
        await cluster.pass_time(2)
        assert await _offered(cluster) == "8"


@virtual
async def test_a_config_map_that_the_policy_does_not_name_has_no_say(tmp_path: Path) -> None:
    async with _cluster(tmp_path) as cluster:
        await _config(cluster, "another", any=FOUR_TIMES)
        await _label(cluster, "node-0", plugin_manager.LABEL, "any")
        assert await _offered(cluster) == "8", "without a policy all are looked through"
        await _policy(cluster, {"devicePlugin": {"enabled": True}})
        assert await _offered(cluster) == "2"
        await cluster.patch(CLUSTER_POLICIES, "cluster-policy", {"spec": SHARING})
        await cluster.pass_time(2)
        assert await _offered(cluster) == "2", "the plugin runs on as it was when a configuration is not to be had"
        assert "ConfigMapNotFound" in {event["reason"] for event in await cluster.events("cluster-policy")}


@virtual
async def test_a_layout_of_ones_own_needs_the_policy_to_name_its_config_map(tmp_path: Path) -> None:
    async with _cluster(tmp_path, mig_strategy="mixed") as cluster:
        await _config(cluster, "custom-mig-config", **{"config.yaml": LAYOUTS})
        await _policy(cluster, {"mig": {"strategy": "mixed"}})
        await _label(cluster, "node-0", mig_manager.LABEL, "two-halves")
        assert (await cluster.get(NODES, "node-0"))["metadata"]["labels"][mig_manager.STATE] == "failed"
        await cluster.patch(
            CLUSTER_POLICIES, "cluster-policy", {"spec": {"migManager": {"config": {"name": "custom-mig-config"}}}}
        )
        await cluster.pass_time(2)
        assert (await cluster.get(NODES, "node-0"))["metadata"]["labels"][mig_manager.STATE] == "success"
        assert await _offered(cluster, resource="nvidia.com/mig-3g.40gb") == "4"
        assert await _offered(cluster, "node-1") == "2"


@virtual
async def test_a_default_layout_is_written_on_nodes_that_have_none(tmp_path: Path) -> None:
    async with _cluster(tmp_path, mig_strategy="mixed") as cluster:
        await _label(cluster, "node-1", mig_manager.LABEL, "all-1g.10gb")
        await _policy(cluster, {"migManager": {"config": {"default": "all-3g.40gb"}}})
        nodes = [await cluster.get(NODES, name) for name in ("node-0", "node-1")]
        labels = [one["metadata"]["labels"] for one in nodes]
        assert [one[mig_manager.LABEL] for one in labels] == ["all-3g.40gb", "all-1g.10gb"]
        assert await _offered(cluster, "node-0", "nvidia.com/mig-3g.40gb") == "4"


@virtual
async def test_the_strategy_of_the_policy_names_the_instances(tmp_path: Path) -> None:
    async with _cluster(tmp_path, mig_strategy="mixed") as cluster:
        await _label(cluster, "node-0", mig_manager.LABEL, "all-1g.10gb")
        assert await _offered(cluster, resource="nvidia.com/mig-1g.10gb") == "14"
        await _policy(cluster, {"mig": {"strategy": "single"}})
        assert await _offered(cluster, resource="nvidia.com/mig-1g.10gb") == "0"
        assert await _offered(cluster) == "14"


@virtual
async def test_only_the_oldest_policy_is_honoured_and_a_misplaced_one_only_where_there_is_no_other(
    tmp_path: Path,
) -> None:
    sharing = {"devicePlugin": {"config": {"name": "time-slicing-config", "default": "any"}}}
    async with _cluster(tmp_path) as cluster:
        await _config(cluster, "time-slicing-config", any=FOUR_TIMES)
        await cluster.create(MISPLACED_CLUSTER_POLICIES, {"metadata": {"name": "gpu-cluster-policy"}, "spec": sharing})
        await cluster.pass_time(2)
        assert await _offered(cluster) == "8"
        await _policy(cluster, {"operator": {}})
        assert await _offered(cluster) == "2"
        await _policy(cluster, sharing, "a-second")
        assert await _offered(cluster) == "2"
        said = [event["message"] for event in await cluster.events("a-second")]
        assert said == ["only one ClusterPolicy is honoured, and that is cluster-policy"]


@virtual
async def test_a_kind_that_comes_later_is_followed_from_then_on(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        run = FleetRun(cluster, (machine(gpus=2),), FleetSettings())
        await cluster.create(NAMESPACES, {"metadata": {"name": "gpu-operator"}})
        await _config(cluster, "time-slicing-config", any=FOUR_TIMES)
        await cluster.pass_time(300)
        await provide_foreign(cluster.api)
        await established(cluster)
        await _policy(cluster, {"devicePlugin": {"config": {"name": "time-slicing-config", "default": "any"}}})
        await cluster.pass_time(70)
        assert await _offered(cluster) == "8"
        await run.kill()


def test_a_policy_leaves_labels_and_config_maps_of_others_alone() -> None:
    labels = {"team": "a", mig_manager.LABEL: "all-1g.10gb"}
    configs: dict[str, dict[str, Any]] = {"gpu-operator/mine": {}, "gpu-operator/other": {}}
    policy = ClusterPolicy()
    followed, found = policy.applied(labels, configs)
    assert (followed["team"], followed[mig_manager.LABEL], found) == ("a", "all-1g.10gb", {})
    assert labels == {"team": "a", mig_manager.LABEL: "all-1g.10gb"}


@virtual
async def test_eight_shares_on_two_gpus_all_run_though_two_of_them_were_given_whole_gpus(tmp_path: Path) -> None:
    async with _cluster(tmp_path) as cluster:
        await _shares(cluster, 0, 2)
        await _config(cluster, "time-slicing-config", any=FOUR_TIMES)
        await _policy(cluster, {"devicePlugin": {"config": {"name": "time-slicing-config", "default": "any"}}})
        assert await _offered(cluster) == "8"
        await _shares(cluster, 2, 8)
        await cluster.pass_time(30)
        found = await cluster.pods("default")
        assert [one["status"]["phase"] for one in found] == ["Running"] * 8
        assert {status["restartCount"] for one in found for status in statuses(one).values()} == {0}


async def _shares(cluster: SmallCluster, first: int, end: int) -> None:
    for number in range(first, end):
        await cluster.create(PODS, pod(f"share-{number}", gpus=1))
    await cluster.pass_time(2)
