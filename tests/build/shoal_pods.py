"""Pods for a scheduler of one's choice, on nodes that are only objects and take nobody else's pods.

Such nodes have no kubelet: what is decided about a pod stands on it, and nothing runs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from build.api_objects import IMAGE, ready_for_pods
from build.cluster_api import PATIENCE_S, Api, Obj
from build.live_waits import conditions, until, until_items
from build.live_workloads import node_ready

SHOAL, KUBE = "shoal", "default-scheduler"
GPU = "nvidia.com/gpu"
PLACE = "example.com/place"


@asynccontextmanager
async def own_nodes(api: Api, number: int = 1, **room: str) -> AsyncIterator[list[str]]:
    """Their names. Pods go there, and nowhere else, by the selector of `waiting_pod`."""
    has = {"cpu": "8", "memory": "32Gi", "pods": "110", GPU: "4", **room}
    names = [f"paper-{uuid4().hex[:10]}" for _ in range(number)]
    try:
        for name in names:
            labels = {"kubernetes.io/hostname": name, PLACE: api.namespace}
            status = {"capacity": has, "allocatable": has, "conditions": [node_ready("True")]}
            body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}
            (await api.post("/api/v1/nodes", body)).ok(201)
            (await api.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})).ok()
        yield names
    finally:
        for pod in (await api.get(api.core("pods"))).ok()["items"]:
            await api.delete(api.core("pods", pod["metadata"]["name"]), gracePeriodSeconds=0)
        for name in names:
            await api.delete(f"/api/v1/nodes/{name}")


def asking(gpus: int = 0, **requests: str) -> Obj:
    """A container."""
    wants = {**requests, **({GPU: str(gpus)} if gpus else {})}
    return {"name": "main", "image": IMAGE, "resources": {"requests": wants, "limits": wants}}


def waiting_pod(api: Api, name: str = "pod", container: Obj | None = None, **spec: Any) -> Obj:
    """For Shoal, where nothing else is said."""
    whole = {
        "schedulerName": SHOAL,
        "nodeSelector": {PLACE: api.namespace},
        "terminationGracePeriodSeconds": 0,
        "containers": [container or asking()],
        **spec,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": whole}


async def create_pod(api: Api, made: Obj) -> Obj:
    await ready_for_pods(api)
    return (await api.post(api.core("pods"), made)).ok(201)


def node_of(pod: Obj) -> str:
    found: str = pod["spec"].get("nodeName", "")
    return found


def is_refused(pod: Obj) -> bool:
    return conditions(pod).get("PodScheduled", ("", "", ""))[1] == "Unschedulable"


def words(pod: Obj) -> str:
    return conditions(pod)["PodScheduled"][2]


async def until_bound(api: Api, name: str = "pod", *, within_s: float = PATIENCE_S) -> Obj:
    return await until(api, api.core("pods", name), node_of, within_s=within_s)


async def until_refused(api: Api, name: str = "pod", *parts: str) -> Obj:
    """With `parts`, once the words hold them: what was said before all was known of claims and nodes may be another."""
    return await until(
        api, api.core("pods", name), lambda pod: is_refused(pod) and all(part in words(pod) for part in parts)
    )


async def until_all_bound(api: Api, number: int, labels: str = "", *, within_s: float = PATIENCE_S) -> list[Obj]:
    return await until_items(
        api,
        api.core("pods"),
        lambda pods: len(pods) == number and all(map(node_of, pods)),
        within_s=within_s,
        labelSelector=labels,
    )


async def until_all_refused(api: Api, number: int, labels: str = "") -> list[Obj]:
    """So many, each told why, and none on a node."""
    found = await until_items(
        api, api.core("pods"), lambda pods: sum(map(is_refused, pods)) == number, labelSelector=labels
    )
    assert [node_of(pod) for pod in found] == [""] * number
    return found


@asynccontextmanager
async def priority(api: Api, value: int, **fields: Any) -> AsyncIterator[str]:
    """The name of a priority class."""
    name, classes = f"rank-{uuid4().hex[:10]}", "/apis/scheduling.k8s.io/v1/priorityclasses"
    body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
    (await api.post(classes, {**body, "value": value, **fields})).ok(201)
    try:
        yield name
    finally:
        await api.delete(f"{classes}/{name}")
