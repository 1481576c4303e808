"""SchedulingShards divide a cluster into node pools, each with its queues, its pods and its settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.kai_clusters import (
    GROUP,
    QUEUE_LABEL,
    add_kai_itself,
    add_kai_queue,
    bound,
    kai_cluster,
    start_kai,
    terminating,
)
from build.live_schedulers import add_node, places, pod
from build.small_clusters import SmallCluster
from build.virtual_time import virtual
from shoal.api.groups.kai import NODE_POOL_LABEL
from shoal.client.ecosystem_kinds import KAI_CONFIGS, KAI_POD_GROUPS, KAI_QUEUES, KAI_SHARDS
from shoal.client.kind import LEASES, PODS, Kind
from shoal.client.port import Api
from shoal.units.errors import TemporaryError


async def _shard(cluster: SmallCluster, name: str, value: str = "", **spec: Any) -> None:
    spec |= {"partitionLabelValue": value} if value else {}
    await cluster.create(KAI_SHARDS, {"metadata": {"name": name}, "spec": spec})


async def _queue(cluster: SmallCluster, name: str, pool: str = "", gpus: float = 0) -> None:
    await add_kai_queue(cluster, name, gpus)
    if pool:
        await cluster.patch(KAI_QUEUES, name, {"metadata": {"labels": {NODE_POOL_LABEL: pool}}})


async def _work(cluster: SmallCluster, name: str, queue: str, pool: str = "", gpus: int = 1) -> None:
    labels = {QUEUE_LABEL: queue} | ({NODE_POOL_LABEL: pool} if pool else {})
    await cluster.create(PODS, pod(name, gpus=gpus, labels=labels, priorityClassName="train"))


async def _node(cluster: SmallCluster, name: str, pool: str = "", gpus: int = 4) -> None:
    await add_node(cluster, name, gpus=gpus, labels={NODE_POOL_LABEL: pool} if pool else {})


async def _words(cluster: SmallCluster, name: str) -> str:
    return " ".join(event["message"] for event in await cluster.events(name))


@virtual
async def test_each_shard_places_the_pods_of_its_pool_on_its_own_nodes(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await _shard(cluster, "default")
        await _shard(cluster, "big", "big")
        await _node(cluster, "plain")
        await _node(cluster, "large", "big")
        await _queue(cluster, "a")
        await _queue(cluster, "b", "big")
        for index in range(6):
            await _work(cluster, f"a{index}", "a")
            await _work(cluster, f"b{index}", "b", "big")
        await cluster.pass_time(10)
        where = {name: node for name, node in (await places(cluster)).items() if node}
        assert {node for name, node in where.items() if name.startswith("a")} == {"plain"}
        assert {node for name, node in where.items() if name.startswith("b")} == {"large"}
        assert len(where) == 8


@virtual
async def test_fair_shares_are_of_the_nodes_of_the_pool(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await _shard(cluster, "default")
        await _shard(cluster, "big", "big")
        await _node(cluster, "plain", gpus=8)
        await _node(cluster, "large", "big", gpus=4)
        for name in ("a", "b"):
            await _queue(cluster, name, "big")
        for index in range(4):
            await _work(cluster, f"a{index}", "a", "big")
        await cluster.until(lambda: _count(cluster, "a", 4))
        for index in range(4):
            await _work(cluster, f"b{index}", "b", "big")
        await cluster.pass_time(10)
        assert len(await terminating(cluster)) == 2


@virtual
async def test_a_pod_in_a_pool_without_a_shard_waits_and_its_event_names_the_pools_that_have_one(
    tmp_path: Path,
) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await _shard(cluster, "default")
        await _shard(cluster, "big", "big")
        await _node(cluster, "plain")
        await _queue(cluster, "a", "bigg")
        await _work(cluster, "lost", "a", "bigg")
        await cluster.pass_time(10)
        assert await bound(cluster) == []
        words = await _words(cluster, "lost")
        assert "NodePoolDoesNotExist: No SchedulingShard has the node pool 'bigg'" in words
        assert "Node pools with one: the nodes without the label, big" in words


@virtual
async def test_a_pod_in_another_pool_than_its_queue_waits_and_its_event_names_both(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await _shard(cluster, "default")
        await _shard(cluster, "big", "big")
        await _node(cluster, "plain")
        await _queue(cluster, "a", "big")
        await _work(cluster, "lost", "a")
        await cluster.pass_time(10)
        assert await bound(cluster) == []
        assert "Queue 'a' is in node pool 'big'" in await _words(cluster, "lost")


@virtual
async def test_the_label_of_a_pod_group_moves_all_its_pods_to_another_pool(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await _shard(cluster, "default")
        await _shard(cluster, "big", "big")
        await _node(cluster, "large", "big")
        await _queue(cluster, "b", "big")
        await cluster.create(KAI_POD_GROUPS, {"metadata": {"name": "g"}, "spec": {"queue": "b", "minMember": 2}})
        for index in range(2):
            labels, notes = {QUEUE_LABEL: "b"}, {GROUP: "g"}
            await cluster.create(PODS, pod(f"g-{index}", gpus=1, labels=labels, annotations=notes))
        await cluster.pass_time(10)
        assert await bound(cluster) == []
        status = (await cluster.get(KAI_POD_GROUPS, "g"))["status"]
        assert [each["reason"] for each in status["schedulingConditions"]] == ["QueueDoesNotExist"]
        await cluster.patch(KAI_POD_GROUPS, "g", {"metadata": {"labels": {NODE_POOL_LABEL: "big"}}})
        await cluster.pass_time(10)
        assert await places(cluster) == {"g-0": "large", "g-1": "large"}


@virtual
async def test_pods_that_wait_are_decided_anew_when_the_cluster_is_divided_and_when_it_is_one_again(
    tmp_path: Path,
) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await _node(cluster, "large", "big", gpus=1)
        await _queue(cluster, "a")
        await _work(cluster, "first", "a")
        await cluster.pass_time(5)
        assert await bound(cluster) == ["first"], "without shards labels of nodes mean nothing"
        await _shard(cluster, "default")
        await _node(cluster, "large2", "big", gpus=1)
        await _work(cluster, "second", "a")
        await cluster.pass_time(5)
        assert await bound(cluster) == ["first"]
        assert await terminating(cluster) == []
        await cluster.delete(KAI_SHARDS, "default")
        await cluster.pass_time(5)
        assert await bound(cluster) == ["first", "second"]


@virtual
async def test_the_placement_strategy_of_a_shard_decides_how_its_pods_spread(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await _shard(cluster, "default", placementStrategy={"gpu": "binpack", "cpu": "binpack"})
        await _shard(cluster, "wide", "wide", placementStrategy={"gpu": "spread", "cpu": "spread"})
        for name in ("n1", "n2"):
            await _node(cluster, name)
            await _node(cluster, f"{name}-wide", "wide")
        await _queue(cluster, "a")
        await _queue(cluster, "b", "wide")
        for index in range(2):
            await _work(cluster, f"a{index}", "a")
            await _work(cluster, f"b{index}", "b", "wide")
        await cluster.pass_time(10)
        where = await places(cluster)
        assert where["a0"] == where["a1"]
        assert {where["b0"], where["b1"]} == {"n1-wide", "n2-wide"}


async def _count(cluster: SmallCluster, start: str, count: int) -> bool:
    return len(await bound(cluster, start)) == count


@virtual
async def test_pods_stay_in_their_pools_after_kai_itself_has_gone(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        await _shard(cluster, "default")
        await _node(cluster, "large", "big")
        await _queue(cluster, "a")
        await add_kai_itself(cluster)
        start_kai(cluster, asks_for_kai=True)
        await cluster.pass_time(5)
        lease = (await cluster.all(LEASES, "kai-scheduler"))[0]["metadata"]["name"]
        await cluster.delete(LEASES, lease, namespace="kai-scheduler")
        await cluster.pass_time(90)
        await _work(cluster, "kept", "a")
        await cluster.pass_time(5)
        assert await bound(cluster) == []
        await _node(cluster, "plain")
        await cluster.pass_time(5)
        assert await places(cluster) == {"kept": "plain"}


class _WithoutShards:
    """An API that does not answer lists of SchedulingShards at first."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.answers = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    async def list(self, kind: Kind, *more: Any, **named: Any) -> Any:
        if kind.name == KAI_SHARDS.name and not self.answers:
            raise TemporaryError("not now", 1.0)
        return await self._api.list(kind, *more, **named)


@virtual
async def test_nothing_is_decided_before_it_is_known_how_the_cluster_is_divided(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        await _shard(cluster, "default")
        await _node(cluster, "large", "big")
        await _queue(cluster, "a")
        api: Any = _WithoutShards(cluster.api)
        start_kai(cluster, api)
        await _work(cluster, "p", "a")
        # After half a minute the loop begins without what it lacks.
        await cluster.pass_time(60)
        assert await bound(cluster) == []
        api.answers = True
        await _node(cluster, "plain")
        await cluster.pass_time(60)
        assert await places(cluster) == {"p": "plain"}


@virtual
async def test_a_shard_that_cannot_be_read_decides_as_before(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await _shard(cluster, "default")
        await _node(cluster, "large", "big")
        await _queue(cluster, "a")
        await cluster.pass_time(5)
        # The schema of the kind allows this.
        await cluster.patch(KAI_SHARDS, "default", {"spec": {"kValue": 10**400}})
        await _work(cluster, "p", "a")
        await cluster.pass_time(10)
        assert await bound(cluster) == []
        assert any("SchedulingShard default cannot be read" in one.message for one in caplog.records)


@virtual
async def test_the_label_of_node_pools_is_the_one_that_kais_config_names(tmp_path: Path) -> None:
    own = "example.com/pool"
    async with kai_cluster(tmp_path) as cluster:
        await cluster.create(KAI_CONFIGS, _config("kai-config", own))
        await cluster.create(KAI_CONFIGS, _config("another", "other.com/pool"))
        start_kai(cluster)
        await _shard(cluster, "default")
        await _shard(cluster, "big", "big")
        await add_node(cluster, "plain", gpus=1, labels={NODE_POOL_LABEL: "big"})
        await add_node(cluster, "large", gpus=1, labels={own: "big"})
        await _queue(cluster, "a")
        await add_kai_queue(cluster, "b", 0)
        await cluster.patch(KAI_QUEUES, "b", {"metadata": {"labels": {own: "big"}}})
        labels = {QUEUE_LABEL: "b", own: "big"}
        await cluster.create(PODS, pod("b0", gpus=1, labels=labels, priorityClassName="train"))
        await _work(cluster, "a0", "a")
        await cluster.pass_time(10)
        assert await places(cluster) == {"a0": "plain", "b0": "large"}
        await cluster.patch(KAI_CONFIGS, "kai-config", _config("kai-config", "another.com/pool"))
        await cluster.create(PODS, pod("b1", gpus=1, labels=labels, priorityClassName="train"))
        await cluster.pass_time(10)
        assert await places(cluster) == {"a0": "plain", "b0": "large", "b1": ""}, "its nodes are all without the label"


def _config(name: str, label: str) -> dict[str, Any]:
    spec = {"global": {"nodePoolLabelKey": label, "replicaCount": 1}, "scheduler": {"replicas": 1}}
    return {"metadata": {"name": name}, "spec": spec}
