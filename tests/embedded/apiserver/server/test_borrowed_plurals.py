"""Custom resources that bear the plural of a built-in one are themselves: nothing is done to what they are not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from build.in_process import InProcess, in_process

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PODS = "/api/v1/namespaces/default/pods"
GROUP = "queue.example.com"


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[InProcess]:
    async with in_process(tmp_path) as opened:
        yield opened


async def define(door: InProcess, plural: str, kind: str, scope: str = "Namespaced") -> None:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    spec = {
        "group": GROUP,
        "scope": scope,
        "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}],
    }
    made = await door.ask("POST", CRDS, {"metadata": {"name": f"{plural}.{GROUP}"}, "spec": spec})
    assert made.code == 201
    for _ in range(1000):
        if door.plane.context.catalog.find(GROUP, "v1", plural) is not None:
            return
        await asyncio.sleep(0)
    raise AssertionError(f"{plural} are not served")


def custom(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "apiVersion": f"{GROUP}/v1", "metadata": {"name": name}, **fields}


async def test_a_custom_binding_is_stored_and_binds_no_pod(door: InProcess) -> None:
    await define(door, "bindings", "Binding")
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    assert (await door.ask("POST", PODS, pod)).code == 201
    path = f"/apis/{GROUP}/v1/namespaces/default/bindings"
    made = await door.ask("POST", path, custom("Binding", "p", target={"kind": "Node", "name": "n1"}))
    assert (made.code, made.body["kind"]) == (201, "Binding")
    assert (await door.ask("GET", f"{path}/p")).body["target"] == {"kind": "Node", "name": "n1"}
    assert "nodeName" not in (await door.ask("GET", f"{PODS}/p")).body["spec"]


async def test_a_binding_of_the_core_group_binds_the_pod_of_its_name(door: InProcess) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    assert (await door.ask("POST", PODS, pod)).code == 201
    said = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    assert (await door.ask("POST", "/api/v1/namespaces/default/bindings", said)).code == 201
    assert (await door.ask("GET", f"{PODS}/p")).body["spec"]["nodeName"] == "n1"


async def test_custom_namespaces_are_objects_in_a_namespace(door: InProcess) -> None:
    await define(door, "namespaces", "Namespace")
    path = f"/apis/{GROUP}/v1/namespaces/default/namespaces"
    assert (await door.ask("POST", path, custom("Namespace", "a", spec={"x": 1}))).code == 201
    assert (await door.ask("GET", f"{path}/a")).body["spec"] == {"x": 1}
    wanted = custom("Namespace", "a", status={"y": 2})
    assert (await door.ask("PATCH", f"{path}/a/status", wanted, "application/merge-patch+json")).code == 200
    assert [one["metadata"]["name"] for one in (await door.ask("GET", path)).body["items"]] == ["a"]
    assert len((await door.ask("GET", f"/apis/{GROUP}/v1/namespaces")).body["items"]) == 1
    assert (await door.ask("DELETE", f"{path}/a")).code == 200
    assert (await door.ask("GET", "/api/v1/namespaces/default")).code == 200


async def test_a_custom_namespace_of_the_whole_cluster_is_not_found_by_a_path_that_says_a_namespace(
    door: InProcess,
) -> None:
    await define(door, "namespaces", "Namespace", "Cluster")
    path = f"/apis/{GROUP}/v1/namespaces"
    assert (await door.ask("POST", path, custom("Namespace", "a"))).code == 201
    # The path of one reads as a namespace, which such a resource has none of: so does Kubernetes take it.
    assert (await door.ask("GET", f"{path}/a")).has_no_page()
    assert len((await door.ask("GET", path)).body["items"]) == 1
