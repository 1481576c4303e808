"""What Shoal's scheduler does with single pods, held against kube-scheduler wherever the two have the same words."""

from __future__ import annotations

import re

import pytest

from build.cluster_api import Api
from build.live_waits import conditions, create, until, until_items, until_said
from build.live_workloads import workload
from build.shoal_pods import (
    GPU,
    KUBE,
    SHOAL,
    asking,
    create_pod,
    node_of,
    own_nodes,
    until_all_bound,
    until_bound,
    until_refused,
    waiting_pod,
    words,
)

pytestmark = [pytest.mark.needs("controllers"), pytest.mark.usefixtures("shoal")]
both = pytest.mark.parametrize("scheduler", [KUBE, SHOAL])
PORT = [{"containerPort": 8080, "hostPort": 18080}]


@both
async def test_a_placed_pod_says_so(api: Api, scheduler: str) -> None:
    async with own_nodes(api) as (node,):
        await create_pod(api, waiting_pod(api, schedulerName=scheduler))
        found = await until_bound(api)
        assert node_of(found) == node
        assert conditions(found)["PodScheduled"] == ("True", "", "")
        (event,) = await until_said(api, "pod", "Scheduled")
        assert event["message"] == f"Successfully assigned {api.namespace}/pod to {node}"
        assert event["type"] == "Normal"
        assert scheduler in (event["reportingComponent"], event["source"].get("component"))


@both
async def test_a_gated_pod_waits_until_its_last_gate_is_gone(api: Api, scheduler: str) -> None:
    async with own_nodes(api) as (node,):
        gates = [{"name": "example.com/a"}, {"name": "example.com/b"}]
        await create_pod(api, waiting_pod(api, schedulerName=scheduler, schedulingGates=gates))
        (await api.patch(api.core("pods", "pod"), {"spec": {"schedulingGates": gates[1:]}})).ok()
        await create_pod(api, waiting_pod(api, "free", schedulerName=scheduler))
        await until_bound(api, "free")
        found = (await api.get(api.core("pods", "pod"))).ok()
        assert (node_of(found), conditions(found)["PodScheduled"][:2]) == ("", ("False", "SchedulingGated"))
        (await api.patch(api.core("pods", "pod"), {"spec": {"schedulingGates": None}})).ok()
        assert node_of(await until_bound(api)) == node


@both
async def test_a_taken_host_port_is_said_and_nothing_else_of_that_node(api: Api, scheduler: str) -> None:
    async with own_nodes(api, 2) as nodes:
        for name in ("first", "second"):
            await create_pod(api, waiting_pod(api, name, {**asking(), "ports": PORT}, schedulerName=scheduler))
        placed = [await until_bound(api, name) for name in ("first", "second")]
        assert {node_of(one) for one in placed} == set(nodes)
        await create_pod(api, waiting_pod(api, "third", {**asking(cpu="100"), "ports": PORT}, schedulerName=scheduler))
        taken = "2 node(s) didn't have free ports for the requested pod ports"
        said = words(await until_refused(api, "third", taken))
        assert "Insufficient cpu" not in said
        await api.delete(api.core("pods", "third"), gracePeriodSeconds=0)
        await create_pod(api, waiting_pod(api, "fourth", {**asking(), "ports": PORT}, schedulerName=scheduler))
        await until_refused(api, "fourth")
        await api.delete(api.core("pods", "first"), gracePeriodSeconds=0)
        assert node_of(await until_bound(api, "fourth")) == node_of(placed[0])


@both
async def test_a_node_counts_under_everything_that_it_lacks(api: Api, scheduler: str) -> None:
    async with own_nodes(api, 2):
        await create_pod(api, waiting_pod(api, container=asking(5, cpu="100", memory="1Ti"), schedulerName=scheduler))
        lacking = [f"2 Insufficient {resource}" for resource in (GPU, "cpu", "memory")]
        said = words(await until_refused(api, "pod", *lacking))
        # Other tests may have nodes of their own in the same cluster.
        assert int(re.match(r"0/(\d+) nodes are available: ", said)[1]) >= 2  # type: ignore[index]
        await until_items(
            api,
            api.core("events"),
            lambda events: ("Warning", said) in {(event["type"], event["message"]) for event in events},
            fieldSelector="involvedObject.name=pod,reason=FailedScheduling",
        )


@both
async def test_a_closed_node_opens_again(api: Api, scheduler: str) -> None:
    async with own_nodes(api) as (node,):
        (await api.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})).ok()
        # By then whoever watches nodes knows of it.
        await until(api, f"/api/v1/nodes/{node}", lambda one: one["spec"].get("taints"))
        await create_pod(api, waiting_pod(api, schedulerName=scheduler))
        await until_refused(api, "pod", "1 node(s) were unschedulable")
        (await api.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": None}})).ok()
        assert node_of(await until_bound(api)) == node


@both
async def test_pods_spread_as_evenly_as_they_must(api: Api, scheduler: str) -> None:
    rule = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    async with own_nodes(api, 3) as nodes:
        for number in range(6):
            made = waiting_pod(api, f"web-{number}", schedulerName=scheduler, topologySpreadConstraints=[rule])
            made["metadata"]["labels"] = {"app": "web"}
            await create_pod(api, made)
        placed = [node_of(await until_bound(api, f"web-{number}")) for number in range(6)]
        assert sorted(placed) == sorted(nodes * 2)


async def test_the_nearest_fit_is_named_behind_the_words_of_kubernetes(api: Api) -> None:
    async with own_nodes(api) as (node,):
        await create_pod(api, waiting_pod(api, container=asking(6)))
        await until_refused(api, "pod", node)


async def test_replicas_without_devices_are_spread_over_nodes(api: Api) -> None:
    async with own_nodes(api, 3) as nodes:
        template = {"metadata": {"labels": {"app": "web"}}, "spec": waiting_pod(api, schedulerName=KUBE)["spec"]}
        await create(api, workload("Deployment", replicas=3, template=template), "deployments")
        placed = await until_all_bound(api, 3)
        assert sorted(map(node_of, placed)) == sorted(nodes)
        (await api.delete(api.group("apps/v1", "deployments", "web"), propagationPolicy="Background")).ok()


async def test_replicas_on_gpus_are_packed_by_shoal(api: Api) -> None:
    async with own_nodes(api, 3):
        spec = waiting_pod(api, container=asking(1))["spec"]
        template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
        await create(api, workload("Deployment", replicas=3, template=template), "deployments")
        assert len({node_of(one) for one in await until_all_bound(api, 3)}) == 1
        (await api.delete(api.group("apps/v1", "deployments", "web"), propagationPolicy="Background")).ok()
