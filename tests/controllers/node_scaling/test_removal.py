"""Nodes are removed when they are not needed, old, drifted or broken; replacements start first, and budgets hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from build.scaled_clusters import ScaledCluster, scaled_cluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import NODE_CLAIMS, NODE_POOLS
from shoal.client.item import Obj
from shoal.client.kind import DEPLOYMENTS, DISRUPTION_BUDGETS, NODES, PODS
from shoal.client.presence import KARPENTER, Presence

ANY: dict[str, Any] = {"budgets": [{"nodes": "100%"}]}
AFTER_30_S = {"consolidateAfter": "30s", **ANY}


async def _one_node(world: ScaledCluster, **spec: Any) -> str:
    """The name of the node on which `solo` runs."""
    await world.add_pool(disruption=AFTER_30_S, **spec)
    await world.pod("solo", 8)
    await world.until_running("solo", 1, within_s=120)
    (node,) = await world.nodes()
    name: str = node["metadata"]["name"]
    return name


async def _are(world: ScaledCluster, count: int) -> bool:
    return len(await world.nodes()) == len(await world.instances()) == count


@virtual
async def test_an_empty_node_is_removed_once_it_was_quiet_for_long_enough(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path) as world:
        await _one_node(world)
        await world.cluster.delete(PODS, "solo")
        await world.cluster.pass_time(25)
        assert await _are(world, 1)
        await world.until(lambda: _are(world, 0), 90)
        assert await world.claims() == []


@virtual
async def test_a_node_with_work_stays(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path) as world:
        await _one_node(world)
        await world.cluster.pass_time(600)
        assert await _are(world, 1)
        assert len(world.cloud.requests) == 1


@virtual
async def test_a_drifted_node_goes_after_its_replacement_has_started(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path) as world:
        old = await _one_node(world)
        labels = {"spec": {"template": {"metadata": {"labels": {"team": "vision"}}}}}
        await world.cluster.patch(NODE_POOLS, "gpu", labels)
        most = 0

        async def is_replaced() -> bool:
            nonlocal most
            nodes = await world.nodes()
            most = max(most, len(nodes))
            names = [node["metadata"]["name"] for node in nodes]
            return len(names) == 1 and old not in names

        await world.until(is_replaced, 300)
        assert most == 2
        (node,) = await world.nodes()
        assert node["metadata"]["labels"]["team"] == "vision"


@virtual
async def test_a_node_older_than_its_pool_allows_is_removed_by_force(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path) as world:
        old = await _one_node(world, template={"expireAfter": "10m"})
        await world.cluster.pass_time(400)
        assert [node["metadata"]["name"] for node in await world.nodes()] == [old]

        async def is_gone() -> bool:
            return old not in [node["metadata"]["name"] for node in await world.nodes()]

        await world.until(is_gone, 400)


@virtual
async def test_a_disruption_budget_keeps_the_pods_of_an_expired_node_until_its_grace_is_over(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path) as world:
        budget = {"metadata": {"name": "all"}, "spec": {"minAvailable": 1, "selector": {}}}
        await world.cluster.create(DISRUPTION_BUDGETS, budget)
        old = await _one_node(world, template={"expireAfter": "5m", "terminationGracePeriod": "10m"})
        await world.cluster.pass_time(600)
        assert [node["metadata"]["name"] for node in await world.nodes()] == [old], "its grace is not over"
        await world.cluster.pass_time(400)
        assert old not in [node["metadata"]["name"] for node in await world.nodes()]


@virtual
async def test_a_node_whose_gpus_stay_unhealthy_is_replaced(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path) as world:
        broken = await _one_node(world)
        await world.cluster.patch(NODES, broken, {"metadata": {"annotations": {"shoal.dev/gpu-faults": '{"0": 79}'}}})
        await world.cluster.pass_time(500)
        assert broken in [node["metadata"]["name"] for node in await world.nodes()]

        async def is_gone() -> bool:
            return broken not in [node["metadata"]["name"] for node in await world.nodes()]

        await world.until(is_gone, 400)


@virtual
async def test_nothing_is_done_while_karpenter_runs(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path) as world:
        assert world.controller is not None
        deployment: Obj = {
            "metadata": {"name": "karpenter", "namespace": "kube-system"},
            "spec": {
                "selector": {"matchLabels": {"app": "karpenter"}},
                "template": {
                    "metadata": {"labels": {"app": "karpenter"}},
                    "spec": {"containers": [{"name": "main", "image": "karpenter"}]},
                },
            },
        }
        await world.kill_controller()
        await world.cluster.create(DEPLOYMENTS, deployment, "kube-system")
        ready = {"status": {"replicas": 1, "readyReplicas": 1}}
        await world.cluster.patch(DEPLOYMENTS, "karpenter", ready, "status", "kube-system")
        world.others = [Presence(world.cluster.context(), sign) for sign in KARPENTER]
        await world.start_controller()
        await world.add_pool()
        await world.pod("solo", 8)
        await world.cluster.pass_time(60)
        assert world.cloud.requests == []
        await world.cluster.delete(DEPLOYMENTS, "karpenter", namespace="kube-system")
        await world.until_running("solo", 1, within_s=120)


@virtual
async def test_a_claim_of_karpenter_and_its_node_are_left_alone(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path) as world:
        await world.add_pool(disruption=AFTER_30_S)
        spec = {"requirements": [], "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "d"}}
        labels = {"karpenter.sh/nodepool": "gpu", "node.kubernetes.io/instance-type": "p5.48xlarge"}
        await world.cluster.create(NODE_CLAIMS, {"metadata": {"name": "old", "labels": labels}, "spec": spec})
        since = "2025-01-01T00:00:00Z"
        launched = {"type": "Launched", "status": "True", "reason": "Launched", "lastTransitionTime": since}
        status = {"providerID": "aws:///a/i-1", "nodeName": "old", "conditions": [launched]}
        await world.cluster.patch(NODE_CLAIMS, "old", {"status": status}, "status")
        await world.cluster.create(NODES, {"metadata": {"name": "old", "labels": labels}})
        await world.cluster.pass_time(300)
        assert [node["metadata"]["name"] for node in await world.nodes()] == ["old"]
        assert [claim["metadata"]["name"] for claim in await world.claims()] == ["old"]


@virtual
async def test_a_node_with_a_pod_whose_rules_cannot_be_read_is_not_removed_as_empty(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path) as world:
        await world.add_pool(types=["g5.xlarge"], disruption={"consolidateAfter": "10s"})
        await world.pod("first", 1)
        await world.until_running("first", 1, within_s=120)
        (home,) = await world.nodes()
        rule = {"key": "generation", "operator": "Gt", "values": ["new"]}
        preferred = [{"weight": 1, "preference": {"matchExpressions": [rule]}}]
        affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
        await world.pod("odd", 0, nodeName=home["metadata"]["name"], affinity=affinity)
        await world.cluster.delete(PODS, "first")
        await world.cluster.pass_time(90)
        assert (len(await world.nodes()), await world.running("odd")) == (1, 1)
