"""What changes the devices of a simulated node: GPUs that break, and labels that cut them into instances.

Faults are annotations on the node, so that whoever may write nodes can break them on any server.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from build.cluster_api import Api, Obj
from build.live_waits import until, until_items
from build.simulated_pods import (
    GPU,
    container,
    devices,
    place,
    pod,
    simulated_nodes,
    state,
    statuses,
    until_phase,
    until_pod,
    vacant,
)

pytestmark = [pytest.mark.needs("kubelet"), pytest.mark.usefixtures("simulated_gpus")]
LAYOUT = "nvidia.com/mig.config"


@pytest.fixture
async def node(api: Api) -> AsyncIterator[str]:
    """A node whose GPUs are whole and free before and after."""
    name = await vacant(api, (await simulated_nodes(api))[-1]["metadata"]["name"])
    before = (await api.get(f"/api/v1/nodes/{name}")).ok()
    yield name
    layout = before["metadata"]["labels"].get(LAYOUT)
    for pod_ in (await api.get(api.core("pods"))).ok()["items"]:
        await api.delete(api.core("pods", pod_["metadata"]["name"]), gracePeriodSeconds=0)
    await say(api, name, annotations={"shoal.dev/gpu-faults": None}, labels={LAYOUT: layout or "all-disabled"})
    wanted = before["status"]["allocatable"][GPU]
    await until(api, f"/api/v1/nodes/{name}", lambda one: one["status"]["allocatable"].get(GPU) == wanted)


async def say(api: Api, name: str, **metadata: dict[str, str | None]) -> Obj:
    return (await api.patch(f"/api/v1/nodes/{name}", {"metadata": metadata})).ok()


async def has(api: Api, name: str, resource: str, amount: str) -> Obj:
    return await until(
        api, f"/api/v1/nodes/{name}", lambda one: one["status"]["allocatable"].get(resource, "0") == amount
    )


async def test_a_broken_gpu_is_not_offered_and_whoever_holds_it_is_told(api: Api, node: str) -> None:
    whole = int((await api.get(f"/api/v1/nodes/{node}")).ok()["status"]["allocatable"][GPU])
    await place(api, pod("holder", container(gpus=whole), says={"run-for": "1h"}, restartPolicy="Never"), node)
    held = devices(await until_phase(api, "Running", "holder"))
    await say(api, node, annotations={"shoal.dev/gpu-faults": json.dumps({"3": 79})})
    found = await has(api, node, GPU, str(whole - 1))
    assert found["status"]["capacity"][GPU] == str(whole)

    def sick(one: Obj) -> list[str]:
        (reported,) = statuses(one)["main"].get("allocatedResourcesStatus", [{"resources": []}])
        return [each["resourceID"] for each in reported["resources"] if each["health"] == "Unhealthy"]

    told = await until_pod(api, lambda one: sick(one) or "terminated" in state(one), "holder")
    assert set(sick(told)) <= set(held)
    events = await until_items(
        api, "/api/v1/namespaces/default/events", bool, fieldSelector=f"involvedObject.name={node},reason=XidError"
    )
    assert "79" in events[-1]["message"]
    await say(api, node, annotations={"shoal.dev/gpu-faults": None})
    await has(api, node, GPU, str(whole))


@pytest.mark.needs("doors")
async def test_a_label_cuts_the_gpus_and_pods_can_have_the_pieces(api: Api, node: str) -> None:
    before = (await api.get(f"/api/v1/nodes/{node}")).ok()
    if before["metadata"]["labels"].get("nvidia.com/mig.capable") != "true":
        pytest.skip("the GPUs of this node cannot be cut")
    whole = int(before["status"]["allocatable"][GPU])
    await say(api, node, labels={LAYOUT: "all-1g.10gb"})
    path = f"/api/v1/nodes/{node}"
    cut = await until(
        api,
        path,
        lambda one: one["metadata"]["labels"].get(f"{LAYOUT}.state") == "success" and pieces(one) == 7 * whole,
    )
    resource = next(
        name
        for name in cut["status"]["allocatable"]
        if name in (GPU, "nvidia.com/mig-1g.10gb") and cut["status"]["allocatable"][name] == str(7 * whole)
    )
    asking = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"limits": {resource: "1"}}}
    await place(api, pod("pod", asking), node)
    found = await until_phase(api, "Running")
    said, _ = await api.run(api.core("pods", "pod", "exec"), "nvidia-smi", "-L")
    (held,) = statuses(found)["main"]["allocatedResourcesStatus"]
    (device,) = held["resources"]
    assert device["resourceID"].startswith("MIG-")
    assert device["resourceID"] in said


def pieces(node: Obj) -> int:
    found = node["status"]["allocatable"]
    return sum(int(found.get(name, "0")) for name in (GPU, "nvidia.com/mig-1g.10gb"))
