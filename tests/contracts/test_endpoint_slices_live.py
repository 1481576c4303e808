"""Services and who stands behind them: slices as pods become ready, leave and end. The test plays the kubelet."""

from __future__ import annotations

from typing import Any

import pytest

from build.api_objects import IMAGE, make_pod
from build.cluster_api import Api, Obj
from build.live_waits import until, until_gone, until_items
from build.live_workloads import own_node
from build.played_pods import run

pytestmark = pytest.mark.needs("controllers")
ZONE = "topology.kubernetes.io/zone"


async def make(api: Api, **spec: Any) -> Obj:
    ports = [{"name": "http", "port": 80, "targetPort": "web"}]
    whole = {"selector": {"app": "web"}, "ports": ports, **spec}
    body = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "labels": {"team": "a"}},
        "spec": whole,
    }
    return (await api.post(api.core("services"), body)).ok(201)


async def add_pod(api: Api, name: str, node: str, ip: str, *, ready: bool = True) -> Obj:
    ports = [{"name": "web", "containerPort": 8080}]
    containers = [{"name": "main", "image": IMAGE, "ports": ports}]
    made = await make_pod(api, name, labels={"app": "web"}, nodeName=node, containers=containers)
    await run(api, name, ready=ready, ip=ip)
    return made


def states(slices: list[Obj]) -> dict[str, tuple[bool, bool, bool]]:
    """Ready, serving and terminating by address."""
    return {
        one["addresses"][0]: tuple(one["conditions"].get(name) for name in ("ready", "serving", "terminating"))
        for each in slices
        for one in each.get("endpoints") or ()
    }


async def until_states(api: Api, wanted: dict[str, tuple[bool, bool, bool]]) -> list[Obj]:
    """And the empty slice has gone that was there before the ports of the first pod were known."""

    def are_as_wanted(slices: list[Obj]) -> bool:
        return bool(slices) and states(slices) == wanted and (not wanted or all(one.get("endpoints") for one in slices))

    return await until_items(
        api,
        api.group("discovery.k8s.io/v1", "endpointslices"),
        are_as_wanted,
        labelSelector="kubernetes.io/service-name=web",
    )


UP, STARTING, LEAVING = (True, True, False), (False, False, False), (False, True, True)


async def test_a_slice_says_address_node_zone_and_pod(api: Api) -> None:
    async with own_node(api, {ZONE: "z1"}) as node:
        service = await make(api)
        pod = await add_pod(api, "one", node, "10.250.0.1")
        (found,) = await until_states(api, {"10.250.0.1": UP})
        labels = found["metadata"]["labels"]
        assert labels["kubernetes.io/service-name"] == "web"
        assert labels["endpointslice.kubernetes.io/managed-by"] == "endpointslice-controller.k8s.io"
        assert labels["team"] == "a"
        assert found["metadata"]["generateName"] == "web-"
        assert found["metadata"]["ownerReferences"][0]["uid"] == service["metadata"]["uid"]
        assert found["addressType"] == "IPv4"
        assert found["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
        (endpoint,) = found["endpoints"]
        assert (endpoint["nodeName"], endpoint["zone"]) == (node, "z1")
        assert endpoint["targetRef"] == {
            "kind": "Pod",
            "namespace": api.namespace,
            "name": "one",
            "uid": pod["metadata"]["uid"],
        }


async def test_pods_are_told_as_they_get_ready_and_as_they_leave(api: Api) -> None:
    async with own_node(api) as node:
        await make(api)
        await add_pod(api, "one", node, "10.250.0.1")
        await add_pod(api, "two", node, "10.250.0.2", ready=False)
        await until_states(api, {"10.250.0.1": UP, "10.250.0.2": STARTING})
        await run(api, "two", ip="10.250.0.2")
        await until_states(api, {"10.250.0.1": UP, "10.250.0.2": UP})
        (await api.delete(api.core("pods", "one"))).ok()
        await until_states(api, {"10.250.0.1": LEAVING, "10.250.0.2": UP})
        await api.delete(api.core("pods", "one"), gracePeriodSeconds=0)
        await until_states(api, {"10.250.0.2": UP})


async def test_the_old_kind_has_those_that_are_ready_and_those_that_are_not(api: Api) -> None:
    async with own_node(api) as node:
        await make(api)
        await add_pod(api, "one", node, "10.250.0.1")
        await add_pod(api, "two", node, "10.250.0.2", ready=False)

        def holds(one: Obj) -> bool:
            subsets = one.get("subsets") or [{}]
            ready, others = subsets[0].get("addresses") or [], subsets[0].get("notReadyAddresses") or []
            return [each["ip"] for each in ready] == ["10.250.0.1"] and [each["ip"] for each in others] == [
                "10.250.0.2"
            ]

        found = await until(api, api.core("endpoints", "web"), holds)
        assert found["subsets"][0]["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]


async def test_whoever_wants_all_addresses_gets_them_before_they_are_ready(api: Api) -> None:
    async with own_node(api) as node:
        await make(api, publishNotReadyAddresses=True, clusterIP="None")
        await add_pod(api, "two", node, "10.250.0.2", ready=False)
        await until_states(api, {"10.250.0.2": (True, False, False)})


async def test_another_selector_brings_other_pods_and_none_is_left_alone(api: Api) -> None:
    async with own_node(api) as node:
        await make(api)
        await add_pod(api, "one", node, "10.250.0.1")
        await until_states(api, {"10.250.0.1": UP})
        (await api.patch(api.core("services", "web"), {"spec": {"selector": {"app": "other"}}})).ok()
        await until_states(api, {})
        (slice_,) = (await api.get(api.group("discovery.k8s.io/v1", "endpointslices"))).ok()["items"]
        (await api.delete(api.core("services", "web"))).ok()
        await until_gone(api, api.group("discovery.k8s.io/v1", "endpointslices", slice_["metadata"]["name"]))


async def test_slices_that_are_lost_are_made_again(api: Api) -> None:
    async with own_node(api) as node:
        await make(api)
        await add_pod(api, "one", node, "10.250.0.1")
        (first,) = await until_states(api, {"10.250.0.1": UP})
        path = api.group("discovery.k8s.io/v1", "endpointslices", first["metadata"]["name"])
        (await api.delete(path)).ok()
        (again,) = await until_states(api, {"10.250.0.1": UP})
        assert again["metadata"]["uid"] != first["metadata"]["uid"]
