"""The cluster's own scheduler: where pods go, and what those that cannot go anywhere are told."""

from __future__ import annotations

import re

import pytest

from build.cluster_api import Api, Obj
from build.live_waits import conditions, name_of, until
from build.live_workloads import own_node
from build.simulated_pods import (
    GPU,
    container,
    place,
    pod,
    schedule,
    simulated_nodes,
    until_phase,
    until_pod,
    vacant,
)

pytestmark = [pytest.mark.needs("kubelet", "controllers"), pytest.mark.usefixtures("simulated_gpus")]


async def put(api: Api, made: Obj) -> None:
    await until(api, api.core("serviceaccounts", "default"), bool)
    (await api.post(api.core("pods"), made)).ok(201)


def unschedulable(one: Obj) -> bool:
    return conditions(one).get("PodScheduled", ("", "", ""))[1] == "Unschedulable"


async def test_a_selector_that_no_node_fits_is_said(api: Api) -> None:
    await put(api, pod(nodeSelector={"example.com/no": "such"}))
    found = await until_pod(api, unschedulable)
    message = conditions(found)["PodScheduled"][2]
    number = len((await api.get("/api/v1/nodes")).ok()["items"])
    # The scheduler may not have heard yet that a node of another test is gone.
    assert int(re.match(r"0/(\d+) nodes are available: ", message)[1]) >= number  # type: ignore[index]
    assert "node(s) didn't match Pod's node affinity/selector" in message
    assert found["status"]["phase"] == "Pending"


async def test_a_pod_goes_where_its_selector_fits_and_when_it_fits(api: Api) -> None:
    labels = {"example.com/place": api.namespace}
    async with own_node(api) as node:
        await put(api, pod(nodeSelector=labels))
        await until_pod(api, unschedulable)
        (await api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": labels}})).ok()
        found = await until_pod(api, lambda one: "nodeName" in one["spec"])
        assert found["spec"]["nodeName"] == node
        assert conditions(found)["PodScheduled"][0] == "True"


async def test_a_taint_keeps_a_pod_waiting_until_it_is_gone(api: Api) -> None:
    labels = {"example.com/place": api.namespace}
    taint = {"key": "example.com/team", "value": "a", "effect": "NoSchedule"}
    async with own_node(api, labels, taints=[taint]) as node:
        await put(api, pod(nodeSelector=labels))
        found = await until_pod(api, unschedulable)
        assert "untolerated taint" in conditions(found)["PodScheduled"][2]
        tolerating = pod("tolerating", nodeSelector=labels, tolerations=[{"key": "example.com/team"}])
        tolerating["spec"]["tolerations"] = [{"key": "example.com/team", "operator": "Exists"}]
        await put(api, tolerating)
        await until_pod(api, lambda one: one["spec"].get("nodeName") == node, "tolerating")
        (await api.patch(f"/api/v1/nodes/{node}", {"spec": {"taints": None}})).ok()
        await until_pod(api, lambda one: one["spec"].get("nodeName") == node)


async def test_a_gated_pod_waits_for_its_gate(api: Api) -> None:
    node = name_of((await simulated_nodes(api))[0])
    gated = pod(schedulingGates=[{"name": "example.com/hold"}], nodeSelector={"kubernetes.io/hostname": node})
    await put(api, gated)
    found = (await api.get(api.core("pods", "pod"))).ok()
    assert conditions(found)["PodScheduled"][:2] == ("False", "SchedulingGated")
    (await api.patch(api.core("pods", "pod"), {"spec": {"schedulingGates": None}})).ok()
    found = await until_phase(api, "Running")
    assert found["spec"]["nodeName"] == node


async def test_a_pod_of_another_scheduler_is_left_alone(api: Api) -> None:
    await put(api, pod("other", schedulerName="example-scheduler"))
    await put(api, pod("ours", nodeSelector={"example.com/no": "such"}))
    await until_pod(api, unschedulable, "ours")
    other = (await api.get(api.core("pods", "other"))).ok()
    assert "nodeName" not in other["spec"]
    assert "conditions" not in other["status"]


async def test_whoever_is_more_important_takes_the_place_of_others(api: Api) -> None:
    node = (await simulated_nodes(api))[0]
    has, name = int(node["status"]["allocatable"][GPU]), name_of(node)
    low = pod("low", container(gpus=has), says={"stop-after": "100ms"})
    await place(api, low, await vacant(api, name))
    await until_phase(api, "Running", "low")
    high = pod("high", container(gpus=has), priorityClassName=api.namespace)
    high["spec"]["nodeSelector"] = {"kubernetes.io/hostname": name}
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    rank = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": api.namespace}}
    (await api.post(classes, {**rank, "value": 1000})).ok(201)
    try:
        await put(api, high)
        found = await until_phase(api, "Running", "high")
        assert found["spec"]["nodeName"] == name
        assert (await api.get(api.core("pods", "low"))).code == 404
    finally:
        await api.delete(f"{classes}/{api.namespace}")


async def test_pods_that_keep_apart_go_to_different_nodes(api: Api) -> None:
    number = len(await simulated_nodes(api))
    term = {"labelSelector": {"matchLabels": {"app": "apart"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for index in range(number + 1):
        made = pod(f"p-{index}", affinity=affinity)
        made["metadata"]["labels"] = {"app": "apart"}
        await schedule(api, made)
    pods = await until(
        api,
        api.core("pods"),
        lambda found: (
            sum("nodeName" in one["spec"] for one in found["items"]) == number
            and any(unschedulable(one) for one in found["items"])
        ),
    )
    placed = [one["spec"]["nodeName"] for one in pods["items"] if "nodeName" in one["spec"]]
    assert len(set(placed)) == number
    (left,) = [one for one in pods["items"] if "nodeName" not in one["spec"]]
    assert "node(s) didn't match pod anti-affinity rules" in conditions(left)["PodScheduled"][2]
