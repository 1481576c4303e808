"""What `kubectl top` asks: metrics of nodes and pods, for simulated nodes."""

from __future__ import annotations

import json
import os

import pytest

from build.cluster_api import Api
from build.live_waits import name_of, until
from build.simulated_pods import container, place, pod, simulated_nodes, until_phase

pytestmark = pytest.mark.needs("kubelet", "doors")
METRICS = "/apis/metrics.k8s.io/v1beta1"


async def served(api: Api) -> None:
    """Elsewhere it is somebody else's affair whether there is such an API; here it must be."""
    if os.environ.get("SHOAL_TEST_KUBECONFIG") and (await api.get(METRICS)).code == 404:
        pytest.skip("nobody serves metrics.k8s.io here")


async def test_every_node_has_figures(api: Api) -> None:
    await served(api)
    wanted = {name_of(node) for node in await simulated_nodes(api)}
    found = await until(api, f"{METRICS}/nodes", lambda listed: wanted <= {name_of(one) for one in listed["items"]})
    for node in found["items"]:
        if name_of(node) in wanted:
            assert set(node["usage"]) >= {"cpu", "memory"}
    (one, *_) = sorted(wanted)
    assert (await api.get(f"{METRICS}/nodes/{one}")).ok()["metadata"]["name"] == one


async def test_every_container_of_a_running_pod_has_figures(api: Api) -> None:
    await served(api)
    await place(api, pod("pod", container("a"), container("b")))
    await until_phase(api, "Running")
    path = f"{METRICS}/namespaces/{api.namespace}/pods"
    found = await until(api, f"{path}/pod", lambda one: len(one["containers"]) == 2)
    assert [one["name"] for one in found["containers"]] == ["a", "b"]
    assert "window" in found
    listed = (await api.get(path)).ok()
    assert [name_of(one) for one in listed["items"]] == ["pod"]
    answer = await api.get(f"{path}/none")
    assert answer.refused(404, "NotFound") == f'podmetrics.metrics.k8s.io "{api.namespace}/none" not found'


@pytest.mark.needs("node-proxy")
async def test_a_node_can_be_asked_by_the_door_of_its_kubelet(api: Api) -> None:
    made = await place(api, pod())
    await until_phase(api, "Running")
    proxy = f"/api/v1/nodes/{made['spec']['nodeName']}/proxy"
    assert (await api.get(f"{proxy}/healthz")).raw == b"ok"
    pods = json.loads((await api.get(f"{proxy}/pods")).raw)
    assert made["metadata"]["uid"] in {one["metadata"]["uid"] for one in pods["items"]}
    summary = json.loads((await api.get(f"{proxy}/stats/summary")).raw)
    assert summary["node"]["nodeName"] == made["spec"]["nodeName"]
    assert made["metadata"]["uid"] in {one["podRef"]["uid"] for one in summary["pods"]}
