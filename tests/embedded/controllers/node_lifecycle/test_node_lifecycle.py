"""Nodes that fall silent, speak again, are cordoned, or go."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import LEASES, NODES, PODS
from shoal.embedded.controllers.node_lifecycle.controller import node_lifecycle_controller
from shoal.embedded.controllers.node_lifecycle.zones import ZoneHealth, health

_NOT_READY, _UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


async def _node(cluster: SmallCluster, name: str, zone: str = "a", **conditions: str) -> None:
    now = cluster.clock.text()
    told = [
        {"type": type_, "status": status, "reason": "Said", "message": "said", "lastHeartbeatTime": now}
        | {"lastTransitionTime": now}
        for type_, status in ({"Ready": "True"} | conditions).items()
    ]
    labels = {"topology.kubernetes.io/zone": zone}
    await cluster.create(NODES, {"metadata": {"name": name, "labels": labels}, "status": {"conditions": told}})
    lease = {"metadata": {"name": name}, "spec": {"holderIdentity": name, "renewTime": cluster.clock.micro_text()}}
    await cluster.create(LEASES, lease, "kube-node-lease")


async def _renew(cluster: SmallCluster, *names: str) -> None:
    while True:
        for name in names:
            body = {"spec": {"renewTime": cluster.clock.micro_text()}}
            await cluster.patch(LEASES, name, body, namespace="kube-node-lease")
        await cluster.pass_time(10)


async def _taints(cluster: SmallCluster, name: str) -> set[tuple[str, str]]:
    node = await cluster.get(NODES, name)
    return {(one["key"], one["effect"]) for one in node["spec"].get("taints", ())}


async def _condition(cluster: SmallCluster, name: str, type_: str = "Ready") -> tuple[str, str, str]:
    found = (await cluster.get(NODES, name))["status"]["conditions"]
    one: Obj = next(one for one in found if one["type"] == type_)
    return one["status"], one["reason"], one["message"]


@virtual
async def test_a_silent_node_is_unknown_after_fifty_seconds_and_tainted(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [node_lifecycle_controller]) as cluster:
        for name in ("lively", "silent"):
            await _node(cluster, name)
        pod = {"metadata": {"name": "pod"}, "spec": {"nodeName": "silent", "containers": [{"name": "c", "image": "i"}]}}
        await cluster.create(PODS, pod)
        conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": cluster.clock.text()}]
        await cluster.patch(PODS, "pod", {"status": {"phase": "Running", "conditions": conditions}}, "status")
        beats = asyncio.ensure_future(_renew(cluster, "lively"))
        await cluster.pass_time(45)
        assert await _taints(cluster, "silent") == set()
        await cluster.pass_time(15)
        unknown = ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
        assert await _condition(cluster, "silent") == unknown
        never = ("Unknown", "NodeStatusNeverUpdated", "Kubelet never posted node status.")
        assert await _condition(cluster, "silent", "MemoryPressure") == never
        both = {(_UNREACHABLE, "NoSchedule"), (_UNREACHABLE, "NoExecute")}
        assert await _taints(cluster, "silent") == both
        assert await _taints(cluster, "lively") == set()
        (ready,) = (await cluster.get(PODS, "pod"))["status"]["conditions"]
        assert ready["status"] == "False"
        told = {(one["reason"], one["message"]) for one in await cluster.events("silent")}
        assert told == {
            ("RegisteredNode", "Node silent event: Registered Node silent in Controller"),
            ("NodeNotReady", "Node silent status is now: NodeNotReady"),
        }
        assert [one["message"] for one in await cluster.events("pod")] == ["Node is not ready"]
        beats.cancel()


@virtual
async def test_what_the_process_slept_through_is_nobody_s_silence(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [node_lifecycle_controller]) as cluster:
        for name in ("lively", "silent"):
            await _node(cluster, name)
        renewing = asyncio.ensure_future(_renew(cluster, "lively"))
        await cluster.pass_time(20)
        # A machine that was suspended, or a cluster at sixty times life's pace whose process had to wait for a second.
        cluster.clock.not_before(cluster.clock.seconds() + 60)
        await cluster.pass_time(8)
        assert (await _condition(cluster, "silent"))[0] == "True"
        assert (await _condition(cluster, "lively"))[0] == "True"
        await cluster.pass_time(40)
        assert (await _condition(cluster, "silent"))[0] == "Unknown"
        assert (await _condition(cluster, "lively"))[0] == "True"
        renewing.cancel()


@virtual
async def test_a_node_that_speaks_again_loses_its_taints(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [node_lifecycle_controller]) as cluster:
        for name in ("lively", "silent"):
            await _node(cluster, name)
        beats = asyncio.ensure_future(_renew(cluster, "lively"))
        await cluster.pass_time(70)
        assert await _taints(cluster, "silent")
        now = cluster.clock.text()
        ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now}
        await cluster.patch(NODES, "silent", {"status": {"conditions": [ready]}}, "status")
        await cluster.pass_time(10)
        assert await _taints(cluster, "silent") == set()
        beats.cancel()


@virtual
async def test_what_a_node_says_becomes_taints(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [node_lifecycle_controller]) as cluster:
        await _node(cluster, "well")
        await _node(cluster, "unwell", Ready="False", MemoryPressure="True", DiskPressure="False", PIDPressure="True")
        await cluster.patch(NODES, "well", {"spec": {"unschedulable": True}})
        await cluster.pass_time(2)
        assert await _taints(cluster, "well") == {("node.kubernetes.io/unschedulable", "NoSchedule")}
        assert await _taints(cluster, "unwell") == {
            (_NOT_READY, "NoSchedule"),
            (_NOT_READY, "NoExecute"),
            ("node.kubernetes.io/memory-pressure", "NoSchedule"),
            ("node.kubernetes.io/pid-pressure", "NoSchedule"),
        }
        await cluster.patch(NODES, "well", {"spec": {"unschedulable": None}})
        await cluster.pass_time(2)
        assert await _taints(cluster, "well") == set()


@virtual
async def test_nodes_of_a_zone_lose_their_pods_one_per_ten_seconds(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [node_lifecycle_controller]) as cluster:
        names = [f"n{number}" for number in range(6)]
        for name in names:
            await _node(cluster, name)
        beats = asyncio.ensure_future(_renew(cluster, *names[2:]))
        tainted = []
        for _ in range(9):
            await cluster.pass_time(10)
            found = [name for name in names if (_UNREACHABLE, "NoExecute") in await _taints(cluster, name)]
            tainted.append(len(found))
        assert tainted[-1] == 2
        assert 1 in tainted
        beats.cancel()


@virtual
async def test_nobody_is_evicted_when_no_node_at_all_is_heard_of(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [node_lifecycle_controller]) as cluster:
        for name, zone in (("one", "a"), ("two", "a"), ("three", "b")):
            await _node(cluster, name, zone)
        await cluster.pass_time(300)
        for name in ("one", "two", "three"):
            assert await _taints(cluster, name) == {(_UNREACHABLE, "NoSchedule")}


@virtual
async def test_a_node_that_goes_is_told_of(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [node_lifecycle_controller]) as cluster:
        await _node(cluster, "n")
        await cluster.pass_time(1)
        await cluster.delete(NODES, "n")
        await cluster.pass_time(10)
        told = [(one["reason"], one["message"]) for one in await cluster.events("n")]
        assert ("RemovingNode", "Node n event: Removing Node n from Controller") in told


@pytest.mark.parametrize(
    ("ready", "not_ready", "expected"),
    [
        pytest.param(3, 0, ZoneHealth.NORMAL, id="all are ready"),
        pytest.param(0, 1, ZoneHealth.FULLY, id="the only one is not"),
        pytest.param(1, 2, ZoneHealth.NORMAL, id="two are too few to count"),
        pytest.param(2, 3, ZoneHealth.PARTLY, id="three of five are more than 55 percent"),
        pytest.param(5, 5, ZoneHealth.NORMAL, id="half of them are not enough"),
        pytest.param(9, 11, ZoneHealth.PARTLY, id="55 percent are enough"),
    ],
)
def test_zones_are_as_disrupted_as_kubernetes_says(ready: int, not_ready: int, expected: ZoneHealth) -> None:
    assert health(ready, not_ready) is expected
