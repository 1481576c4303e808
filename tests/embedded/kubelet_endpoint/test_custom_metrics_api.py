"""custom.metrics.k8s.io as the endpoint answers it: the use of GPUs by pods, nodes and namespaces."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from build.endpoint_clients import API_SERVER, PROXY, Doors, doors_of
from build.fake_nodes import FakeNodes

ROOT = "/apis/custom.metrics.k8s.io"
LOAD = "DCGM_FI_DEV_GPU_UTIL"


@pytest.fixture
async def doors() -> AsyncIterator[Doors]:
    nodes = FakeNodes("n1", "n2")
    nodes["n1"].run_pod("web")
    nodes["n2"].run_pod("job")
    for name, pod, load in (("n1", "web", 70), ("n2", "job", 30)):
        labels = f'gpu="0",Hostname="{name}",namespace="default",pod="{pod}"'
        nodes[name].exported = f"{LOAD}{{{labels}}} {load}\n"
    async with doors_of(nodes, PROXY) as found:
        yield found


async def asked(doors: Doors, path: str, **query: Any) -> tuple[int, dict[str, Any]]:
    code, text = await doors.get(path, **query)
    return code, json.loads(text)


def shown(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["describedObject"]["name"], one["value"]) for one in found["items"]]


async def test_discovery_names_the_metrics_in_both_versions(doors: Doors) -> None:
    _, group = await asked(doors, ROOT)
    assert group["preferredVersion"]["version"] == "v1beta2"
    for version in ("v1beta1", "v1beta2"):
        _, found = await asked(doors, f"{ROOT}/{version}")
        assert [one["name"] for one in found["resources"]] == [
            f"{resource}/{LOAD}" for resource in ("namespaces", "nodes", "pods")
        ]


async def test_pods_are_chosen_by_name_and_by_label(doors: Doors) -> None:
    pods = f"{ROOT}/v1beta2/namespaces/default/pods"
    assert shown((await asked(doors, f"{pods}/*/{LOAD}"))[1]) == [("job", "30"), ("web", "70")]
    assert shown((await asked(doors, f"{pods}/*/{LOAD}", labelSelector="app=web"))[1]) == [("web", "70")]
    assert shown((await asked(doors, f"{pods}/web/{LOAD}"))[1]) == [("web", "70")]
    assert shown((await asked(doors, f"{pods}/*/{LOAD}", metricLabelSelector="Hostname=n2"))[1]) == [("job", "30")]
    assert shown((await asked(doors, f"{pods}/*/none"))[1]) == []


async def test_nodes_and_namespaces_have_values_too(doors: Doors) -> None:
    assert shown((await asked(doors, f"{ROOT}/v1beta1/nodes/n1/{LOAD}"))[1]) == [("n1", "70")]
    in_namespace = f"{ROOT}/v1beta2/namespaces/default/nodes/n1/{LOAD}"
    assert shown((await asked(doors, in_namespace))[1]) == [("n1", "70")]
    query = {"labelSelector": "kubernetes.io/hostname=n2"}
    assert shown((await asked(doors, f"{ROOT}/v1beta1/nodes/*/{LOAD}", **query))[1]) == [("n2", "30")]
    assert shown((await asked(doors, f"{ROOT}/v1beta2/namespaces/default/metrics/{LOAD}"))[1]) == [("default", "50")]


async def test_what_is_not_there_and_what_cannot_be_read_is_refused(doors: Doors) -> None:
    pods = f"{ROOT}/v1beta2/namespaces/default/pods"
    code, found = await asked(doors, f"{pods}/none/{LOAD}")
    assert (code, found["reason"]) == (404, "NotFound")
    code, found = await asked(doors, f"{ROOT}/v1beta1/namespaces/default/services/web/{LOAD}")
    assert (code, found["message"]) == (404, f"the server could not find the metric {LOAD} for services web")
    code, found = await asked(doors, f"{pods}/*/{LOAD}", labelSelector="a in (")
    assert (code, found["reason"]) == (400, "BadRequest")


async def test_only_the_proxy_of_the_api_server_may_ask(doors: Doors) -> None:
    code, _ = await doors.showing(API_SERVER).get(f"{ROOT}/v1beta2")
    assert code == 403
    code, _ = await doors.showing(None).get(f"{ROOT}/v1beta2")
    assert code == 401
