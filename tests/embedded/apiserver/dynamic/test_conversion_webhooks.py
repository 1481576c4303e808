"""A custom resource whose versions a webhook converts, written in one and read in the other."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from build.hook_server import hook_server
from build.planes import Operations, operations
from shoal.embedded.apiserver.resource import Resource
from shoal.embedded.apiserver.rest import codec
from shoal.embedded.apiserver.rest.creating import create
from shoal.embedded.apiserver.rest.incoming import accepted
from shoal.embedded.apiserver.status import ApiError

_PATIENCE_S = 60
Obj = dict[str, Any]
GROUP = "shop.example.com"


def definition(url: str, bundle: str) -> Obj:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [{"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in ("v1", "v2")]
    webhook = {"clientConfig": {"url": url, "caBundle": bundle}, "conversionReviewVersions": ["v1"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"boxes.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "boxes", "singular": "box", "kind": "Box", "listKind": "BoxList"},
            "versions": versions,
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    }


def renamed(request: Obj) -> Obj:
    """`size` of v1 is `width` in v2."""
    made = []
    for one in request["objects"]:
        other = {key: value for key, value in one.items() if key not in ("size", "width")}
        name = "width" if request["desiredAPIVersion"].endswith("v2") else "size"
        made.append({**other, "apiVersion": request["desiredAPIVersion"], name: one.get("size") or one.get("width")})
    return {"result": {"status": "Success"}, "convertedObjects": made}


async def served(cluster: Operations, crd: Obj) -> Resource:
    """The v2 of the resource, once it is served."""
    watch = cluster.state.watch(
        cluster.resource("customresourcedefinitions", "apiextensions.k8s.io").home, None, cluster.state.revision
    )
    await cluster.create("customresourcedefinitions", crd, "apiextensions.k8s.io")
    async with asyncio.timeout(_PATIENCE_S):
        while cluster.context.catalog.find(GROUP, "v2", "boxes") is None:
            await watch.next_batch()
    watch.close()
    return cluster.resource("boxes", GROUP, "v2")


async def test_objects_are_converted_both_ways(tmp_path: Path) -> None:
    async with hook_server() as server, operations(tmp_path) as cluster:
        server.answers["/convert"] = renamed
        second = await served(cluster, definition(f"{server.url}/convert", server.bundle))
        call = cluster.call("create", "boxes", group=GROUP)
        call.resource = second
        box = {"apiVersion": f"{GROUP}/v2", "kind": "Box", "metadata": {"name": "b"}, "width": 7}
        await create(cluster.context, call, accepted(call, box))
        record = cluster.find("boxes", "b", GROUP)
        assert record is not None
        assert record.obj()["size"] == 7
        assert record.obj()["apiVersion"] == f"{GROUP}/v1"
        assert (await codec.shown(cluster.context, call, record))["width"] == 7


async def test_a_conversion_that_fails_says_why(tmp_path: Path) -> None:
    async with hook_server() as server, operations(tmp_path) as cluster:
        second = await served(cluster, definition(f"{server.url}/gone", server.bundle))
        call = cluster.call("create", "boxes", group=GROUP)
        call.resource = second
        box = {"apiVersion": f"{GROUP}/v2", "kind": "Box", "metadata": {"name": "b"}}
        with pytest.raises(ApiError) as found:
            await create(cluster.context, call, accepted(call, box))
        assert found.value.code == 500
        assert "conversion webhook for shop.example.com/v2, Kind=Box failed: " in found.value.message
