"""metrics.k8s.io as the endpoint answers it: what is listed, what is selected, what is not found."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from build.endpoint_clients import PROXY, Doors, doors_of
from build.fake_nodes import FakeNodes
from shoal.embedded.kubelets.endpoint.metrics_objects import metrics_objects

ROOT = "/apis/metrics.k8s.io/v1beta1"
PODS = f"{ROOT}/namespaces/default/pods"


@pytest.fixture
def nodes() -> FakeNodes:
    found = FakeNodes("n1", "n2")
    found["n1"].run_pod("web", "main", "side")
    found["n2"].run_pod("job")
    found["n2"].run_pod("job", namespace="other", uid="u2")
    return found


@pytest.fixture
async def doors(nodes: FakeNodes) -> AsyncIterator[Doors]:
    async with doors_of(nodes, PROXY) as found:
        yield found


async def names(doors: Doors, path: str, **query: Any) -> list[str]:
    code, text = await doors.get(path, **query)
    assert code == 200, text
    found = json.loads(text)
    return [
        "/".join(filter(None, (one["metadata"].get("namespace"), one["metadata"]["name"]))) for one in found["items"]
    ]


async def asked(doors: Doors, path: str, **query: Any) -> tuple[int, dict[str, Any]]:
    code, text = await doors.get(path, **query)
    return code, json.loads(text)


async def test_discovery_tells_of_nodes_and_pods(doors: Doors) -> None:
    _, found = await asked(doors, ROOT)
    assert [(one["name"], one["kind"], one["namespaced"]) for one in found["resources"]] == [
        ("nodes", "NodeMetrics", False),
        ("pods", "PodMetrics", True),
    ]
    _, found = await asked(doors, "/apis/metrics.k8s.io")
    assert found["preferredVersion"]["groupVersion"] == "metrics.k8s.io/v1beta1"


async def test_lists_hold_what_is_used_now(doors: Doors) -> None:
    assert await names(doors, f"{ROOT}/nodes") == ["n1", "n2"]
    assert await names(doors, f"{ROOT}/pods") == ["default/web", "default/job", "other/job"]
    assert await names(doors, PODS) == ["default/web", "default/job"]
    _, node = await asked(doors, f"{ROOT}/nodes/n1")
    assert (node["kind"], node["usage"]) == ("NodeMetrics", {"cpu": "1500m", "memory": "3145728Ki"})
    assert (node["timestamp"], node["window"]) == ("2026-01-01T00:01:40Z", "15s")
    _, pod = await asked(doors, f"{PODS}/web")
    assert pod["containers"] == [
        {"name": name, "usage": {"cpu": "250m", "memory": "65536Ki"}} for name in ("main", "side")
    ]


async def test_selectors_choose(doors: Doors) -> None:
    assert await names(doors, f"{ROOT}/pods", labelSelector="app=job") == ["default/job", "other/job"]
    assert await names(doors, f"{ROOT}/pods", fieldSelector="metadata.namespace!=default") == ["other/job"]
    assert await names(doors, f"{ROOT}/nodes", labelSelector="kubernetes.io/hostname in (n2)") == ["n2"]
    assert await names(doors, f"{ROOT}/nodes", fieldSelector="metadata.name=n1") == ["n1"]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"labelSelector": "a in"}, 400),
        ({"fieldSelector": "spec.nodeName=n1"}, 400),
        ({"fieldSelector": "metadata.name"}, 400),
        ({"watch": "true"}, 405),
    ],
)
async def test_what_makes_no_sense_is_a_status(doors: Doors, query: dict[str, str], code: int) -> None:
    found = await asked(doors, f"{ROOT}/pods", **query)
    assert (found[0], found[1]["kind"], found[1]["code"]) == (code, "Status", code)


async def test_what_is_not_there_is_not_found_in_the_metrics_servers_words(doors: Doors, nodes: FakeNodes) -> None:
    code, found = await asked(doors, f"{PODS}/gone")
    assert (code, found["message"]) == (404, 'podmetrics.metrics.k8s.io "default/gone" not found')
    nodes["n1"].reachable = False
    code, found = await asked(doors, f"{ROOT}/nodes/n1")
    assert (code, found["message"]) == (404, 'nodemetrics.metrics.k8s.io "n1" not found')
    assert await names(doors, PODS) == ["default/job"]


def test_the_objects_lead_the_api_server_here() -> None:
    service, role, api_service = metrics_objects("127.0.0.1", 4443, "PEM")
    assert service["metadata"]["annotations"] == {"shoal.dev/endpoint": "https://127.0.0.1:4443"}
    assert role["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"] == "true"
    assert api_service["metadata"]["name"] == "v1beta1.metrics.k8s.io"
    assert api_service["spec"]["caBundle"] == "UEVN"
