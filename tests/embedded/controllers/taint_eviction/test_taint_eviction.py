"""Pods leave tainted nodes at once, later, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.kind import NODES, PODS
from shoal.client.node_health import Taint
from shoal.embedded.controllers.taint_eviction.controller import taint_eviction_controller
from shoal.embedded.controllers.taint_eviction.toleration_time import FOR_EVER, Toleration, toleration_time_s

_TAINT = {"key": "example.com/leave", "effect": "NoExecute"}


async def _pod(cluster: SmallCluster, name: str, *tolerations: dict[str, Any]) -> None:
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}], "tolerations": list(tolerations)}
    await cluster.create(PODS, {"metadata": {"name": name}, "spec": spec})


async def _ending(cluster: SmallCluster) -> set[str]:
    return {pod["metadata"]["name"] for pod in await cluster.pods() if "deletionTimestamp" in pod["metadata"]}


@virtual
async def test_pods_go_when_what_they_tolerate_is_over(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [taint_eviction_controller]) as cluster:
        await cluster.create(NODES, {"metadata": {"name": "n"}})
        leave = {"key": "example.com/leave", "operator": "Exists"}
        await _pod(cluster, "stays", leave)
        await _pod(cluster, "later", leave | {"tolerationSeconds": 60, "effect": "NoExecute"})
        await _pod(cluster, "goes")
        await cluster.patch(NODES, "n", {"spec": {"taints": [_TAINT]}})
        await cluster.pass_time(5)
        assert await _ending(cluster) == {"goes"}
        await cluster.pass_time(50)
        assert await _ending(cluster) == {"goes"}
        await cluster.pass_time(10)
        assert await _ending(cluster) == {"goes", "later"}
        conditions = (await cluster.get(PODS, "later"))["status"]["conditions"]
        (told,) = [one for one in conditions if one["type"] == "DisruptionTarget"]
        assert (told["status"], told["reason"]) == ("True", "DeletionByTaintManager")
        assert told["message"] == "Taint manager: deleting due to NoExecute taint"
        (event,) = await cluster.events("later")
        assert (event["reason"], event["message"]) == ("TaintManagerEviction", "Marking for deletion Pod default/later")


@virtual
async def test_a_taint_that_goes_in_time_evicts_nobody(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [taint_eviction_controller]) as cluster:
        await cluster.create(NODES, {"metadata": {"name": "n"}})
        await _pod(cluster, "pod", {"operator": "Exists", "tolerationSeconds": 60, "effect": "NoExecute"})
        await cluster.patch(NODES, "n", {"spec": {"taints": [_TAINT]}})
        await cluster.pass_time(50)
        await cluster.patch(NODES, "n", {"spec": {"taints": None}})
        await cluster.pass_time(100)
        assert await _ending(cluster) == set()
        (event,) = await cluster.events("pod")
        assert event["message"] == "Cancelling deletion of Pod default/pod"


@virtual
async def test_a_pod_that_is_bound_to_a_tainted_node_later_goes_too(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [taint_eviction_controller]) as cluster:
        await cluster.create(NODES, {"metadata": {"name": "n"}, "spec": {"taints": [_TAINT]}})
        await cluster.pass_time(5)
        await _pod(cluster, "pod")
        await cluster.pass_time(5)
        assert await _ending(cluster) == {"pod"}


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        pytest.param([], 0, id="without a toleration a pod goes at once"),
        pytest.param([Toleration(operator="Exists")], FOR_EVER, id="one that tolerates everything stays"),
        pytest.param([Toleration("a", "Exists", toleration_seconds=5)], 0, id="each taint needs a toleration"),
        pytest.param(
            [Toleration("a", "Exists", toleration_seconds=5), Toleration("b", "Equal", "v")],
            5,
            id="the shortest counts",
        ),
        pytest.param(
            [Toleration("a", "Exists", toleration_seconds=-5), Toleration("b", value="v")],
            0,
            id="a negative time is over already",
        ),
        pytest.param([Toleration("a", "Exists"), Toleration("b", value="w")], 0, id="another value is another taint"),
        pytest.param([Toleration(operator="Exists", effect="NoSchedule")], 0, id="another effect is not meant"),
    ],
)
def test_how_long_a_pod_may_stay(tolerations: list[Toleration], expected: float) -> None:
    taints = (Taint("a", "NoExecute"), Taint("b", "NoExecute", "v"))
    assert toleration_time_s(tolerations, taints) == expected
