"""kr8s: an asynchronous client that asks for everything by discovery and watches on its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import kr8s
import pytest
from kr8s.asyncio.objects import ConfigMap, Deployment, Pod, new_class

from build.cluster_server import ServerProcess
from build.kubectl_runs import PATIENCE_S

Obj = dict[str, Any]
# The client knows the versions of its own time.
pytestmark = pytest.mark.filterwarnings("ignore:Kubernetes version")


@pytest.fixture
async def api(server: ServerProcess, fresh_namespaces: Iterator[str]) -> Any:
    return await kr8s.asyncio.api(kubeconfig=str(server.kubeconfig), namespace=next(fresh_namespaces))


def pod(api: Any, name: str) -> Obj:
    spec = {"containers": [{"name": "main", "image": "cuda:12"}]}
    metadata = {"name": name, "namespace": api.namespace, "labels": {"app": name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


async def test_pods_are_created_found_patched_and_deleted(api: Any) -> None:
    made = await Pod(pod(api, "a"), api=api)
    await made.create()
    await made.label(tier="web")
    await made.patch({"metadata": {"annotations": {"note": "x"}}})
    (found,) = [one async for one in api.get("pods", label_selector={"tier": "web"})]
    assert (found.name, found.annotations.note) == ("a", "x")
    assert await found.exists()
    await found.delete()
    await found.wait("delete", timeout=PATIENCE_S)
    assert not await made.exists()
    with pytest.raises(kr8s.NotFoundError):
        await Pod.get("a", namespace=api.namespace, api=api)


async def test_a_watch_sees_what_is_there_and_what_comes(api: Any) -> None:
    await (await Pod(pod(api, "a"), api=api)).create()
    seen: list[tuple[str, str]] = []
    async with asyncio.timeout(PATIENCE_S):
        async for kind, one in api.watch("pods"):
            seen.append((kind, one.name))
            if len(seen) == 1:
                await (await Pod(pod(api, "b"), api=api)).create()
            elif len(seen) == 2:
                await (await Pod.get("b", namespace=api.namespace, api=api)).delete()
            elif kind == "DELETED":
                break
    assert seen == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "b")]


async def test_a_deployment_is_scaled_and_waits_for_its_replicas(api: Any) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    web = await Deployment({"metadata": {"name": "web", "namespace": api.namespace}, "spec": spec}, api=api)
    await web.create()
    await web.patch({"status": {"replicas": 1, "readyReplicas": 1, "observedGeneration": 1}}, subresource="status")
    await web.refresh()
    assert await web.ready()
    await web.patch({"spec": {"replicas": 4}}, subresource="scale")
    await web.refresh()
    assert web.replicas == 4


async def test_a_conflicting_create_is_told_as_such(api: Any) -> None:
    body = {"metadata": {"name": "a", "namespace": api.namespace}, "data": {"x": "1"}}
    await (await ConfigMap(body, api=api)).create()
    with pytest.raises(kr8s.ServerError) as caught:
        await (await ConfigMap(body, api=api)).create()
    assert 'configmaps "a" already exists' in str(caught.value)


async def test_custom_objects_are_objects_like_others(api: Any) -> None:
    group = f"{api.namespace}.kr8s.dev"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "fleets", "singular": "fleet", "kind": "Fleet"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    definitions = new_class(
        "CustomResourceDefinition", "apiextensions.k8s.io/v1", namespaced=False, plural="customresourcedefinitions"
    )
    definition = await definitions({"metadata": {"name": f"fleets.{group}"}, "spec": spec}, api=api)
    await definition.create()
    async with asyncio.timeout(PATIENCE_S):
        async for _ in definition.watch():
            if any(one["type"] == "Established" for one in definition.status.get("conditions") or ()):
                break
    fleets = new_class("Fleet", f"{group}/v1", plural="fleets")
    made = await fleets({"metadata": {"name": "a", "namespace": api.namespace}, "spec": {"boats": 3}}, api=api)
    await made.create()
    await made.patch({"spec": {"boats": 5}})
    listed: list[Any] = [one async for one in fleets.list(namespace=api.namespace, api=api)]
    (found,) = listed
    assert found.spec.boats == 5
    await found.delete()
    await definition.delete()
