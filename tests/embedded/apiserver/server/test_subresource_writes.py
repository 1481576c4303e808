"""A write of a subresource changes the object of its path, and of that object only what the subresource is about."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from build.in_process import JSON_PATCH, MERGE, STRATEGIC, InProcess, in_process

NS = "/api/v1/namespaces/default"
PODS = f"{NS}/pods"
SETS = "/apis/apps/v1/namespaces/default/replicasets"
METADATA = {
    "labels": {"a": "b"},
    "annotations": {"a": "b"},
    "finalizers": ["example.com/a"],
    "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}],
}
_CONTAINER = {"name": "c", "image": "x"}
_TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [_CONTAINER]}}
_SET = {"replicas": 1, "selector": {"matchLabels": {"app": "x"}}, "template": _TEMPLATE}


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[InProcess]:
    async with in_process(tmp_path) as opened:
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [_CONTAINER]}}
        assert (await opened.ask("POST", PODS, pod)).code == 201
        assert (await opened.ask("POST", SETS, {"metadata": {"name": "s"}, "spec": _SET})).code == 201
        yield opened


def mine(obj: Any) -> Any:
    return {key: obj["metadata"].get(key) for key in METADATA}


@pytest.mark.parametrize(
    ("path", "subresource"),
    [(f"{PODS}/p", "ephemeralcontainers"), (f"{PODS}/p", "resize"), (f"{SETS}/s", "scale"), (f"{SETS}/s", "status")],
)
async def test_metadata_stays_as_it_is(door: InProcess, path: str, subresource: str) -> None:
    before = mine((await door.ask("GET", path)).body)
    reply = await door.ask("PATCH", f"{path}/{subresource}", {"metadata": METADATA}, MERGE)
    assert reply.code == 200, reply.raw
    assert mine((await door.ask("GET", path)).body) == before


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"name": "other"}, "the name of the object (other) does not match the name on the URL (s)"),
        (
            {"name": "s", "namespace": "other"},
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
    ],
)
async def test_a_scale_of_another_object_is_refused(door: InProcess, metadata: Any, words: str) -> None:
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": {"replicas": 5}}
    for method, media in (("PUT", "application/json"), ("PATCH", MERGE)):
        reply = await door.ask(method, f"{SETS}/s/scale", scale, media)
        assert (reply.code, reply.body["message"]) == (400, words)
    assert (await door.ask("GET", f"{SETS}/s")).body["spec"]["replicas"] == 1


@pytest.mark.parametrize("media", [MERGE, STRATEGIC, JSON_PATCH])
async def test_a_patch_that_makes_no_scale_is_the_patchs_fault(door: InProcess, media: str) -> None:
    patch: Any = {"spec": {"replicas": "x"}}
    if media == JSON_PATCH:
        patch = [{"op": "replace", "path": "/spec/replicas", "value": "x"}]
    reply = await door.ask("PATCH", f"{SETS}/s/scale", patch, media)
    assert (reply.code, reply.body["reason"]) == (422, "Invalid")
    (cause,) = reply.body["details"]["causes"]
    assert cause["field"] == "patch"
    words = "unrecognized type: int32" if media == STRATEGIC else "cannot unmarshal string into Go struct field"
    assert words in cause["message"]
    unknown = await door.ask("PATCH", f"{SETS}/s/scale?fieldValidation=Strict", {"spec": {"size": 1}}, MERGE)
    assert (unknown.code, 'unknown field "spec.size"' in unknown.body["message"]) == (422, True)


@pytest.mark.parametrize(
    ("path", "kind", "version"),
    [
        (f"{PODS}/p/eviction", "Eviction", "policy/v1"),
        (f"{PODS}/p/binding", "Binding", "v1"),
        (f"{NS}/bindings", "Binding", "v1"),
        (f"{NS}/serviceaccounts/default/token", "TokenRequest", "authentication.k8s.io/v1"),
    ],
)
async def test_what_is_posted_for_another_namespace_is_refused(
    door: InProcess, path: str, kind: str, version: str
) -> None:
    body = {"apiVersion": version, "kind": kind, "metadata": {"name": "p", "namespace": "other"}}
    reply = await door.ask("POST", path, body | {"target": {"name": "n"}})
    assert reply.code == 400
    assert reply.body["message"] == (
        "the namespace of the provided object does not match the namespace sent on the request"
    )


async def test_a_token_is_for_the_account_of_the_path(door: InProcess) -> None:
    reply = await door.ask("POST", f"{NS}/serviceaccounts/default/token", {"metadata": {"name": "other"}, "spec": {}})
    assert reply.code == 422
    assert "must match the service account name if specified" in reply.body["message"]
