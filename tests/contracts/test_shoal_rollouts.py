"""Deployments that Shoal's scheduler serves: rolled out where there is no room for a pod more, and beside gangs."""

from __future__ import annotations

import pytest

from build.api_objects import IMAGE
from build.cluster_api import Api, Obj
from build.live_waits import create, living, name_of, until, until_items
from build.live_workloads import images, workload
from build.shoal_pods import SHOAL, node_of
from build.simulated_pods import GPU, container, simulated_nodes

pytestmark = [pytest.mark.needs("controllers", "kubelet"), pytest.mark.usefixtures("shoal", "simulated_gpus")]
NEXT = "registry.k8s.io/pause:3.9"


def at(api: Api) -> str:
    return api.group("apps/v1", "deployments", "web")


def is_rolled_out(found: Obj) -> bool:
    status, wanted = found.get("status", {}), found["spec"]["replicas"]
    is_seen = bool(status.get("observedGeneration", 0) >= found["metadata"]["generation"])
    counts = {status.get(name, 0) for name in ("updatedReplicas", "replicas", "availableReplicas")}
    return is_seen and counts == {wanted}


def pod_spec(node: str, image: str = IMAGE, gpus: int = 2) -> Obj:
    held = [{**container(gpus=gpus), "image": image}]
    spec = {"schedulerName": SHOAL, "terminationGracePeriodSeconds": 1, "containers": held}
    return {**spec, "nodeSelector": {"kubernetes.io/hostname": node}}


async def test_a_full_node_is_rolled_over_pod_by_pod(api: Api) -> None:
    node = (await simulated_nodes(api))[-1]
    replicas = int(node["status"]["allocatable"][GPU]) // 2
    spec: Obj = {
        "replicas": replicas,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod_spec(name_of(node))},
    }
    await create(api, workload("Deployment", **spec), "deployments")
    await until(api, at(api), is_rolled_out)
    change = {"spec": {"template": {"spec": pod_spec(name_of(node), NEXT)}}}
    (await api.patch(at(api), change)).ok()
    await until(api, at(api), is_rolled_out)
    pods = await until_items(api, api.core("pods"), lambda found: len(living(found)) == replicas)
    assert images(living(pods)) == [NEXT] * replicas
    assert {node_of(one) for one in living(pods)} == {name_of(node)}


async def test_pods_of_a_lost_node_go_where_there_is_room(api: Api) -> None:
    nodes = (await simulated_nodes(api))[-2:]
    if len(nodes) < 2:
        pytest.skip("there is one simulated node only")
    first, second = map(name_of, nodes)
    spec = pod_spec(first)
    wanted = {"key": "kubernetes.io/hostname", "operator": "In", "values": [first, second]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
    spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    del spec["nodeSelector"]
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    await create(api, workload("Deployment", replicas=1, template=template), "deployments")
    await until(api, at(api), is_rolled_out)
    (before,) = living((await api.get(api.core("pods"))).ok()["items"])
    left, stays = node_of(before), ({first, second} - {node_of(before)}).pop()
    (await api.patch(f"/api/v1/nodes/{left}", {"spec": {"unschedulable": True}})).ok()
    try:
        # By then whoever watches nodes knows of it.
        await until(api, f"/api/v1/nodes/{left}", lambda one: one["spec"].get("taints"))
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name_of(before)}}
        (await api.post(api.core("pods", name_of(before), "eviction"), eviction)).ok()
        pods = await until_items(
            api,
            api.core("pods"),
            lambda found: [node_of(one) for one in living(found)] == [stays],
        )
        assert name_of(living(pods)[0]) != name_of(before)
        await until(api, at(api), is_rolled_out)
    finally:
        (await api.patch(f"/api/v1/nodes/{left}", {"spec": {"unschedulable": None}})).ok()
        await until(api, f"/api/v1/nodes/{left}", lambda one: not one["spec"].get("taints"))
