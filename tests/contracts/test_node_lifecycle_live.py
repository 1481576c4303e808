"""Nodes that are not well: taints, pods that are told or evicted, and what is left when a node goes.

The nodes are objects of the test; no kubelet is behind them.
"""

from __future__ import annotations

from typing import Any

import pytest

from build.api_objects import make_pod
from build.cluster_api import STRATEGIC, Api, Obj
from build.live_waits import conditions, until, until_gone
from build.live_workloads import node_ready, own_node

pytestmark = pytest.mark.needs("controllers")


def at(node: str) -> str:
    return f"/api/v1/nodes/{node}"


def taints(node: Obj) -> set[tuple[str, str]]:
    return {(one["key"], one["effect"]) for one in node["spec"].get("taints") or ()}


async def taint(api: Api, node: str, key: str, effect: str = "NoExecute") -> None:
    (await api.patch(at(node), {"spec": {"taints": [{"key": key, "effect": effect}]}})).ok()


def tolerating(**more: Any) -> Obj:
    return {"key": "example.com/out", "operator": "Exists", "effect": "NoExecute", **more}


async def test_a_node_that_says_it_is_not_ready_is_tainted_until_it_is_well(api: Api) -> None:
    async with own_node(api) as node:
        await until(api, at(node), lambda one: not taints(one))
        broken = {"status": {"conditions": [node_ready("False", "KubeletNotReady")]}}
        (await api.patch(f"{at(node)}/status", broken, STRATEGIC)).ok()
        wanted = {("node.kubernetes.io/not-ready", "NoSchedule"), ("node.kubernetes.io/not-ready", "NoExecute")}
        await until(api, at(node), lambda one: taints(one) == wanted)
        well = {"status": {"conditions": [node_ready("True")]}}
        (await api.patch(f"{at(node)}/status", well, STRATEGIC)).ok()
        await until(api, at(node), lambda one: not taints(one))


async def test_a_cordon_is_a_taint_too(api: Api) -> None:
    async with own_node(api) as node:
        (await api.patch(at(node), {"spec": {"unschedulable": True}})).ok()
        await until(api, at(node), lambda one: ("node.kubernetes.io/unschedulable", "NoSchedule") in taints(one))
        (await api.patch(at(node), {"spec": {"unschedulable": None}})).ok()
        await until(api, at(node), lambda one: not taints(one))


async def test_pressure_is_a_taint_that_keeps_new_pods_away(api: Api) -> None:
    async with own_node(api) as node:
        pressed = {"type": "MemoryPressure", "status": "True", "reason": "KubeletHasInsufficientMemory"}
        (await api.patch(f"{at(node)}/status", {"status": {"conditions": [pressed]}}, STRATEGIC)).ok()
        await until(api, at(node), lambda one: ("node.kubernetes.io/memory-pressure", "NoSchedule") in taints(one))


async def test_a_taint_that_nobody_may_stay_with_evicts_pods(api: Api) -> None:
    async with own_node(api) as node:
        await make_pod(api, "goes", nodeName=node)
        await make_pod(api, "stays", nodeName=node, tolerations=[tolerating()])
        await taint(api, node, "example.com/out")
        going = await until(api, api.core("pods", "goes"), lambda one: "deletionTimestamp" in one["metadata"])
        assert conditions(going)["DisruptionTarget"] == (
            "True",
            "DeletionByTaintManager",
            "Taint manager: deleting due to NoExecute taint",
        )
        assert "deletionTimestamp" not in (await api.get(api.core("pods", "stays"))).ok()["metadata"]


async def test_who_tolerates_a_taint_for_a_time_stays_that_long(api: Api) -> None:
    async with own_node(api) as node:
        await make_pod(api, "short", nodeName=node, tolerations=[tolerating(tolerationSeconds=1)])
        await make_pod(api, "long", nodeName=node, tolerations=[tolerating(tolerationSeconds=600)])
        await make_pod(api, "none", nodeName=node)
        await taint(api, node, "example.com/out")
        await until(api, api.core("pods", "none"), lambda one: "deletionTimestamp" in one["metadata"])
        await until(api, api.core("pods", "short"), lambda one: "deletionTimestamp" in one["metadata"])
        assert "deletionTimestamp" not in (await api.get(api.core("pods", "long"))).ok()["metadata"]


async def test_a_pod_that_is_bound_to_a_tainted_node_goes_at_once(api: Api) -> None:
    async with own_node(api, taints=[{"key": "example.com/out", "effect": "NoExecute"}]) as node:
        await make_pod(api, "late", nodeName=node)
        await until(api, api.core("pods", "late"), lambda one: "deletionTimestamp" in one["metadata"])


@pytest.mark.slow
async def test_a_pod_that_is_stuck_on_a_node_out_of_service_is_cleared_away(api: Api) -> None:
    async with own_node(api) as node:
        await make_pod(api, "stuck", nodeName=node)
        (await api.delete(api.core("pods", "stuck"))).ok()
        taint_ = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
        broken = {"status": {"conditions": [node_ready("False", "KubeletNotReady")]}}
        (await api.patch(f"{at(node)}/status", broken, STRATEGIC)).ok()
        (await api.patch(at(node), {"spec": {"taints": [taint_]}})).ok()
        await until_gone(api, api.core("pods", "stuck"))
