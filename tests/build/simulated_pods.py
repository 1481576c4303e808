"""Pods for simulated kubelets, on their nodes and nobody else's: real ones that stand beside them would run images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from build.api_objects import IMAGE
from build.cluster_api import PATIENCE_S, Api, Obj
from build.live_waits import create, is_true, until, until_items

GPU = "nvidia.com/gpu"
PREFIX = "shoal.dev/"
_WITH_GPUS = f"{GPU}.present"


def pod(name: str = "pod", *containers: Obj, says: dict[str, str] | None = None, **spec: Any) -> Obj:
    """`says` are annotations, without their prefix: `{"run-for": "1s"}`."""
    notes = _notes(says or {})
    held = list(containers) or [container()]
    whole = {"containers": held, "terminationGracePeriodSeconds": 1, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": notes}, "spec": whole}


def container(name: str = "main", *, gpus: int = 0, **fields: Any) -> Obj:
    made = {"name": name, "image": IMAGE, **fields}
    return {**made, "resources": {"limits": {GPU: str(gpus)}}} if gpus else made


async def simulated_nodes(api: Api) -> list[Obj]:
    """Those with GPUs that are well, in the order of their names."""
    nodes = (await api.get("/api/v1/nodes", labelSelector=_WITH_GPUS)).ok()["items"]
    found = [
        node
        for node in nodes
        if any(key.startswith(PREFIX) for key in node["metadata"].get("annotations", {}))
        and is_true(node, "Ready")
        and not node["spec"].get("taints")
    ]
    assert found, "no simulated node is ready"
    return sorted(found, key=lambda node: str(node["metadata"]["name"]))


async def place(api: Api, made: Obj, node: str = "") -> Obj:
    """The pod, bound from the start, so that no scheduler has a part in it."""
    await until_items(api, "/api/v1/nodes", lambda nodes: any(is_true(one, "Ready") for one in nodes))
    chosen = node or str((await simulated_nodes(api))[0]["metadata"]["name"])
    return await create(api, {**made, "spec": {**made["spec"], "nodeName": chosen}}, "pods")


async def schedule(api: Api, made: Obj) -> Obj:
    """The pod, for the cluster's scheduler to place on a simulated node."""
    wanted = {"nodeSelector": {"node.kubernetes.io/instance-type": await _type(api)}}
    return await create(api, {**made, "spec": {**made["spec"], **wanted}}, "pods")


async def until_no_gpu_is_held(api: Api) -> None:
    """By pods on simulated nodes. Those of a test before are ended: their namespace may take its time to go."""
    names = {node["metadata"]["name"] for node in await simulated_nodes(api)}

    def holding(pods: list[Obj]) -> list[Obj]:
        return [one for one in pods if one["spec"].get("nodeName") in names and _holds_gpus(one)]

    for one in holding((await api.get("/api/v1/pods")).ok()["items"]):
        meta = one["metadata"]
        await api.delete(f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}", gracePeriodSeconds=0)
    await until_items(api, "/api/v1/pods", lambda pods: not holding(pods))


async def vacant(api: Api, node: str) -> str:
    """The node, once none of its GPUs is held: pods of the test before may be on their way out."""
    on_it = f"spec.nodeName={node}"
    await until_items(api, "/api/v1/pods", lambda pods: not any(map(_holds_gpus, pods)), fieldSelector=on_it)
    return node


async def tell(api: Api, says: dict[str, str], name: str = "pod") -> None:
    """A running pod heeds what it is told: nobody has to look while something lasts."""
    (await api.patch(api.core("pods", name), {"metadata": {"annotations": _notes(says)}})).ok()


async def until_pod(api: Api, holds: Callable[[Obj], Any], name: str = "pod", *, within_s: float = PATIENCE_S) -> Obj:
    return await until(api, api.core("pods", name), holds, within_s=within_s)


async def until_phase(api: Api, phase: str, name: str = "pod") -> Obj:
    return await until_pod(api, lambda one: one["status"].get("phase") == phase, name)


def statuses(made: Obj) -> dict[str, Obj]:
    """Of all containers, by name."""
    status = made["status"]
    said = (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ()))
    return {one["name"]: one for one in said}


def state(made: Obj, name: str = "main") -> Obj:
    found: Obj = statuses(made).get(name, {}).get("state", {})
    return found


def devices(made: Obj, name: str = "main") -> list[str]:
    """The ids of the GPUs that the container holds."""
    held = statuses(made)[name].get("allocatedResourcesStatus", ())
    return [one["resourceID"] for each in held if each["name"] == GPU for one in each["resources"]]


def _notes(says: dict[str, str]) -> dict[str, str]:
    return {PREFIX + key: value for key, value in says.items()}


def _holds_gpus(made: Obj) -> bool:
    asked = [one.get("resources", {}).get("limits", {}) for one in made["spec"]["containers"]]
    is_over = made["status"].get("phase") in ("Succeeded", "Failed")
    return not is_over and any(key.startswith("nvidia.com/") for limits in asked for key in limits)


async def _type(api: Api) -> str:
    found: str = (await simulated_nodes(api))[0]["metadata"]["labels"]["node.kubernetes.io/instance-type"]
    return found
