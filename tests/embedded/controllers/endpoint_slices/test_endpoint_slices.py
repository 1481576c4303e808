"""Who stands behind a Service, told by slices and by Endpoints, on a control plane in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.item import Item, Obj
from shoal.client.kind import ENDPOINT_SLICES, ENDPOINTS, NODES, PODS, SERVICES
from shoal.client.port import Deletion
from shoal.embedded.controllers.endpoint_slices.controller import endpoint_controller, endpoint_slice_controller

ZONE = "topology.kubernetes.io/zone"
BOTH = [endpoint_slice_controller, endpoint_controller]


def service(name: str = "web", **spec: Any) -> Obj:
    ports = [{"name": "http", "port": 80, "targetPort": "web"}]
    return {
        "metadata": {"name": name, "labels": {"team": "a"}},
        "spec": {"selector": {"app": "web"}, "ports": ports, **spec},
    }


def container(port: int = 8080) -> Obj:
    return {"name": "main", "image": "i", "ports": [{"name": "web", "containerPort": port}]}


async def add_pod(cluster: SmallCluster, name: str, address: str, *, ready: bool = True, **spec: Any) -> None:
    whole = {"nodeName": "n1", "containers": [container()], **spec}
    await cluster.create(PODS, {"metadata": {"name": name, "labels": {"app": "web"}}, "spec": whole})
    await set_ready(cluster, name, address, ready=ready)


async def set_ready(cluster: SmallCluster, name: str, address: str, *, ready: bool) -> None:
    condition = {"type": "Ready", "status": str(ready)}
    status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": [condition]}
    await cluster.patch(PODS, name, {"status": status}, subresource="status")


async def slices(cluster: SmallCluster) -> list[Obj]:
    await cluster.pass_time(1)
    found = await cluster.all(ENDPOINT_SLICES, "default")
    return [one for one in found if one["metadata"]["labels"]["kubernetes.io/service-name"] == "web"]


@virtual
async def test_a_slice_tells_address_node_zone_and_state_of_each_pod(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, BOTH) as cluster:
        zone = {"topology.kubernetes.io/zone": "z1"}
        await cluster.create(NODES, {"metadata": {"name": "n1", "labels": zone}})
        await cluster.create(SERVICES, service())
        await add_pod(cluster, "a", "10.0.0.1")
        await add_pod(cluster, "b", "10.0.0.2", ready=False)
        (found,) = await slices(cluster)
        uid = (await cluster.get(PODS, "a"))["metadata"]["uid"]
        assert found["metadata"]["labels"] == {
            "team": "a",
            "kubernetes.io/service-name": "web",
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        }
        assert found["addressType"] == "IPv4"
        assert found["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
        first, second = found["endpoints"]
        assert first == {
            "addresses": ["10.0.0.1"],
            "conditions": {"ready": True, "serving": True, "terminating": False},
            "nodeName": "n1",
            "zone": "z1",
            "targetRef": {"kind": "Pod", "namespace": "default", "name": "a", "uid": uid},
        }
        assert second["conditions"] == {"ready": False, "serving": False, "terminating": False}


@virtual
async def test_a_node_that_comes_after_its_pod_or_moves_is_told_of(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, BOTH) as cluster:
        await cluster.create(SERVICES, service())
        await add_pod(cluster, "a", "10.0.0.1")
        (found,) = await slices(cluster)
        assert "zone" not in found["endpoints"][0]
        await cluster.create(NODES, {"metadata": {"name": "n1", "labels": {ZONE: "z1"}}})
        (found,) = await slices(cluster)
        assert found["endpoints"][0]["zone"] == "z1"
        await cluster.patch(NODES, "n1", {"metadata": {"labels": {ZONE: "z2"}}})
        (found,) = await slices(cluster)
        assert found["endpoints"][0]["zone"] == "z2"


@virtual
async def test_a_service_among_many_pods_is_looked_at_less_often(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, BOTH) as cluster:
        for number in range(500):
            await cluster.create(PODS, {"metadata": {"name": f"other-{number}"}, "spec": {"containers": [container()]}})
        await cluster.create(SERVICES, service())
        await add_pod(cluster, "a", "10.0.0.1")
        told: list[Item | None] = []
        await cluster.pass_time(1)
        cluster.informers.of(ENDPOINT_SLICES).on_change(lambda _, after: told.append(after))
        for number in range(40):
            await set_ready(cluster, "a", f"10.0.0.{number + 2}", ready=True)
            await cluster.pass_time(0.05)
        assert 2 <= len(told) <= 2 / 0.15 + 1


@virtual
async def test_a_service_without_members_has_one_slice_that_says_so(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, BOTH) as cluster:
        await cluster.create(SERVICES, service())
        (found,) = await slices(cluster)
        assert not found.get("endpoints")
        assert (await cluster.get(ENDPOINTS, "web")).get("subsets") in (None, [])


@virtual
async def test_a_pod_that_leaves_serves_to_the_end_but_is_not_ready(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, BOTH) as cluster:
        await cluster.create(SERVICES, service())
        await add_pod(cluster, "a", "10.0.0.1")
        await slices(cluster)
        await cluster.delete(PODS, "a", Deletion(grace_s=30))
        (found,) = await slices(cluster)
        assert found["endpoints"][0]["conditions"] == {"ready": False, "serving": True, "terminating": True}
        await cluster.delete(PODS, "a", Deletion(grace_s=0))
        (found,) = await slices(cluster)
        assert not found.get("endpoints")


@virtual
async def test_slices_hold_a_hundred_each_and_one_change_writes_one_slice(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, BOTH) as cluster:
        await cluster.create(SERVICES, service())
        for number in range(250):
            await add_pod(cluster, f"p{number}", f"10.0.{number // 200}.{number % 200 + 1}")
        found = await slices(cluster)
        assert sum(len(one["endpoints"]) for one in found) == 250
        assert max(len(one["endpoints"]) for one in found) <= 100
        before = {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in found}
        await set_ready(cluster, "p7", "10.0.0.8", ready=False)
        after = {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in await slices(cluster)}
        assert before.keys() == after.keys()
        assert sum(before[name] != after[name] for name in before) == 1


@virtual
async def test_nothing_is_written_when_nothing_is_new(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, BOTH) as cluster:
        await cluster.create(SERVICES, service())
        await add_pod(cluster, "a", "10.0.0.1")
        await slices(cluster)
        before = cluster.plane.context.state.revision
        await cluster.patch(PODS, "a", {"metadata": {"annotations": {"note": "new"}}})
        await cluster.pass_time(5)
        assert cluster.plane.context.state.revision == before + 1


@virtual
async def test_a_headless_service_names_its_members_and_may_publish_them_early(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, BOTH) as cluster:
        await cluster.create(SERVICES, service(clusterIP="None", publishNotReadyAddresses=True))
        await add_pod(cluster, "w-0", "10.0.0.1", ready=False, hostname="w-0", subdomain="web")
        (found,) = await slices(cluster)
        assert found["metadata"]["labels"]["service.kubernetes.io/headless"] == ""
        assert found["endpoints"][0]["hostname"] == "w-0"
        assert found["endpoints"][0]["conditions"] == {"ready": True, "serving": False, "terminating": False}


@virtual
async def test_endpoints_list_who_is_ready_and_who_is_not(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, BOTH) as cluster:
        await cluster.create(SERVICES, service())
        await add_pod(cluster, "a", "10.0.0.1")
        await add_pod(cluster, "b", "10.0.0.2", ready=False)
        await cluster.pass_time(1)
        (subset,) = (await cluster.get(ENDPOINTS, "web"))["subsets"]
        assert [one["ip"] for one in subset["addresses"]] == ["10.0.0.1"]
        assert [one["ip"] for one in subset["notReadyAddresses"]] == ["10.0.0.2"]
        assert subset["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
        await cluster.delete(SERVICES, "web")
        await cluster.pass_time(1)
        assert "web" not in [one["metadata"]["name"] for one in await cluster.all(ENDPOINTS)]


@virtual
async def test_pods_whose_ports_differ_stand_in_different_slices(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, BOTH) as cluster:
        await cluster.create(SERVICES, service())
        await add_pod(cluster, "a", "10.0.0.1")
        await add_pod(cluster, "b", "10.0.0.2", containers=[container(9090)])
        found = await slices(cluster)
        assert sorted(one["ports"][0]["port"] for one in found) == [8080, 9090]
