"""An API that another server serves, through `shoal up` as clients see it."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from build.cluster_api import PATIENCE_S, Api
from build.cluster_server import ServerProcess
from build.hook_server import HookServer, hook_server

Obj = dict[str, Any]
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
GROUP = "meters.example.com"
NAME = f"v1.{GROUP}"
READINGS = f"/apis/{GROUP}/v1/namespaces/default/readings"
LIST = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": f"{GROUP}/v1",
    "resources": [
        {"name": "readings", "singularName": "reading", "namespaced": True, "kind": "Reading", "verbs": ["get", "list"]}
    ],
}


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    server = ServerProcess(tmp_path_factory.mktemp("aggregated"))
    yield server.kubeconfig
    server.stop()


@pytest.fixture
async def api(kubeconfig: Path) -> AsyncIterator[Api]:
    async with Api.open(kubeconfig) as client:
        yield client
        await client.delete(f"{SERVICES}/{NAME}")
        await client.delete("/api/v1/namespaces/default/services/meters")
        await client.delete("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/meters")


@pytest.fixture
async def other() -> AsyncIterator[HookServer]:
    async with hook_server("meters.default.svc") as found:
        found.answers[f"/apis/{GROUP}/v1"] = lambda _: web.json_response(LIST)
        yield found


def api_service(bundle: str = "", port: int = 443) -> Obj:
    spec: Obj = {
        "group": GROUP,
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "service": {"namespace": "default", "name": "meters", "port": port},
    }
    trust = {"caBundle": bundle} if bundle else {"insecureSkipTLSVerify": True}
    metadata = {"name": NAME}
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": metadata,
        "spec": {**spec, **trust},
    }


def service(url: str = "", port: int = 443) -> Obj:
    metadata: Obj = {"name": "meters", **({"annotations": {"shoal.dev/endpoint": url}} if url else {})}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": port}]}}


async def condition(api: Api, reason: str) -> Obj:
    """The condition Available, once it has this reason."""
    async with (
        asyncio.timeout(PATIENCE_S),
        api.watch(SERVICES, fieldSelector=f"metadata.name={NAME}") as lines,
    ):
        while True:
            event = await lines.next_of("ADDED", "MODIFIED")
            for one in event["object"].get("status", {}).get("conditions", ()):
                if one["reason"] == reason:
                    found: Obj = one
                    return found


async def serving(api: Api, other: HookServer) -> None:
    (await api.post("/api/v1/namespaces/default/services", service(other.url))).ok(201)
    (await api.post(SERVICES, api_service(other.bundle))).ok(201)
    found = await condition(api, "Passed")
    assert (found["type"], found["status"], found["message"]) == ("Available", "True", "all checks passed")


async def test_own_groups_are_listed_as_local(api: Api) -> None:
    found = (await api.get(f"{SERVICES}/v1.apps")).ok()
    assert found["spec"] == {"group": "apps", "groupPriorityMinimum": 17800, "version": "v1", "versionPriority": 15}
    assert found["metadata"]["labels"] == {"kube-aggregator.kubernetes.io/automanaged": "onstart"}
    (said,) = found["status"]["conditions"]
    assert (said["type"], said["status"], said["reason"]) == ("Available", "True", "Local")
    names = {one["metadata"]["name"] for one in (await api.get(SERVICES)).ok()["items"]}
    assert {"v1.", "v2.autoscaling", "v1.batch"} <= names
    assert "v1.apiregistration.k8s.io" not in names


async def test_what_is_missing_is_the_reason(api: Api, other: HookServer) -> None:
    (await api.post(SERVICES, api_service())).ok(201)
    assert (await condition(api, "ServiceNotFound"))["message"] == 'service/meters in "default" is not present'
    answer = await api.get(READINGS)
    assert answer.code == 503
    assert answer.raw == b"service unavailable\n"
    (await api.post("/api/v1/namespaces/default/services", service(port=8443))).ok(201)
    found = await condition(api, "ServicePortError")
    assert found["message"] == 'service/meters in "default" is not listening on port 443'
    await api.patch("/api/v1/namespaces/default/services/meters", {"spec": {"ports": [{"port": 443}]}})
    found = await condition(api, "EndpointsNotFound")
    assert found["message"] == 'cannot find endpointslices for service/meters in "default"'
    endpoints: Obj = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "meters", "labels": {"kubernetes.io/service-name": "meters"}},
        "addressType": "IPv4",
        "endpoints": [],
        "ports": [{"name": "", "port": other.port, "protocol": "TCP"}],
    }
    path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    (await api.post(path, endpoints)).ok(201)
    await condition(api, "MissingEndpoints")
    annotated = {"metadata": {"annotations": {"shoal.dev/endpoint": other.url}}}
    (await api.patch("/api/v1/namespaces/default/services/meters", annotated)).ok()
    await condition(api, "Passed")


async def test_a_server_that_does_not_answer_fails_its_check(api: Api) -> None:
    with socket.socket() as held:
        # Nobody listens there, and nobody else is given it meanwhile.
        held.bind(("127.0.0.1", 0))
        url = f"https://127.0.0.1:{held.getsockname()[1]}"
        (await api.post("/api/v1/namespaces/default/services", service(url))).ok(201)
        (await api.post(SERVICES, api_service())).ok(201)
        found = await condition(api, "FailedDiscoveryCheck")
    assert found["status"] == "False"
    assert found["message"].startswith("failing or missing response from https://127.0.0.1:")
    assert "connection refused" in found["message"]


async def test_requests_are_handed_on_with_the_asker(api: Api, other: HookServer) -> None:
    await serving(api, other)
    other.answers[READINGS] = lambda _: web.json_response({"kind": "ReadingList", "items": []}, headers={"X-Own": "1"})
    answer = await api.get(READINGS, labelSelector="a=b,c")
    assert answer.ok() == {"kind": "ReadingList", "items": []}
    assert answer.headers["X-Own"] == "1"
    # Whether it still answers is asked now and then, and by somebody else.
    (headers,) = [sent for (path, _), sent in zip(other.asked, other.headers, strict=True) if path == READINGS]
    assert headers["X-Remote-User"]
    assert "system:masters" in headers.getall("X-Remote-Group")
    assert "Authorization" not in headers


async def test_this_server_shows_the_certificate_that_others_are_told_to_believe(api: Api) -> None:
    path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
    told = (await api.get(path)).ok()["data"]
    shown: list[Obj] = []

    async def readings(request: web.Request) -> web.StreamResponse:
        shown.append(request.get_extra_info("peercert"))
        return web.json_response({"kind": "ReadingList", "items": [], "user": request.headers["X-Remote-User"]})

    clients = told["requestheader-client-ca-file"]
    async with hook_server("meters.default.svc", routes={READINGS: readings}, clients=clients) as other:
        other.answers[f"/apis/{GROUP}/v1"] = lambda _: web.json_response(LIST)
        await serving(api, other)
        (await api.get(READINGS)).ok()
    subject = dict(part for parts in shown[0]["subject"] for part in parts)
    assert [subject["commonName"]] == json.loads(told["requestheader-allowed-names"])
    assert json.loads(told["requestheader-username-headers"]) == ["X-Remote-User"]
    assert json.loads(told["requestheader-group-headers"]) == ["X-Remote-Group"]
    assert json.loads(told["requestheader-extra-headers-prefix"]) == ["X-Remote-Extra-"]
    assert told["client-ca-file"] != clients


async def test_a_refusal_of_the_other_server_is_the_answer(api: Api, other: HookServer) -> None:
    await serving(api, other)
    said = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 418, "message": "I am a meter"}
    other.answers[f"{READINGS}/x"] = lambda _: web.json_response(said, status=418)
    assert (await api.get(f"{READINGS}/x")).refused(418) == "I am a meter"


async def test_discovery_tells_of_the_other_group(api: Api, other: HookServer) -> None:
    await serving(api, other)
    async with asyncio.timeout(PATIENCE_S):
        while True:
            groups = {one["name"]: one for one in (await api.get("/apis")).ok()["groups"]}
            if GROUP in groups:
                break
    assert groups[GROUP]["preferredVersion"]["groupVersion"] == f"{GROUP}/v1"
    assert (await api.get(f"/apis/{GROUP}/v1")).ok() == LIST
    accept = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
    found = (await api.ask("GET", "/apis", headers=accept)).ok()
    (item,) = [one for one in found["items"] if one["metadata"]["name"] == GROUP]
    assert item["versions"][0]["resources"][0]["resource"] == "readings"


async def test_a_watch_comes_through_as_it_happens(api: Api, kubeconfig: Path) -> None:
    """The other server is asked for one line at a time: the second is written once the first has arrived."""
    arrived = asyncio.Event()

    async def watch(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        await response.write(json.dumps({"type": "ADDED", "object": {}}).encode() + b"\n")
        await arrived.wait()
        await response.write(json.dumps({"type": "DELETED", "object": {}}).encode() + b"\n")
        return response

    async with hook_server("meters.default.svc", routes={READINGS: watch}) as other:
        other.answers[f"/apis/{GROUP}/v1"] = lambda _: web.json_response(LIST)
        await serving(api, other)
        async with api.watch(READINGS) as lines:
            assert (await lines.next())["type"] == "ADDED"
            arrived.set()
            assert (await lines.next())["type"] == "DELETED"


async def test_services_of_custom_groups_come_and_go(api: Api) -> None:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    schema = {"openAPIV3Schema": {"type": "object"}}
    names = {"plural": "crates", "singular": "crate", "kind": "Crate", "listKind": "CrateList"}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    spec = {"group": "crates.example.com", "scope": "Namespaced", "names": names, "versions": versions}
    name = "v1.crates.example.com"
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "crates.crates.example.com"},
        "spec": spec,
    }
    async with asyncio.timeout(PATIENCE_S), api.watch(SERVICES, fieldSelector=f"metadata.name={name}") as lines:
        (await api.post(definitions, crd)).ok(201)
        found = (await lines.next_of("ADDED"))["object"]
        assert found["spec"]["groupPriorityMinimum"] == 1000
        assert found["spec"]["versionPriority"] == 100
        await api.delete(f"{definitions}/crates.crates.example.com")
        await lines.next_of("DELETED")
