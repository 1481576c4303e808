"""What the server says of itself: groups, resources, version, health and schemas."""

from __future__ import annotations

import pytest

from build.cluster_api import Api, Obj

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
GROUPS = {
    "apps": "v1",
    "batch": "v1",
    "policy": "v1",
    "autoscaling": "v2",
    "rbac.authorization.k8s.io": "v1",
    "scheduling.k8s.io": "v1",
    "storage.k8s.io": "v1",
    "networking.k8s.io": "v1",
    "coordination.k8s.io": "v1",
    "discovery.k8s.io": "v1",
    "events.k8s.io": "v1",
    "certificates.k8s.io": "v1",
    "node.k8s.io": "v1",
    "authentication.k8s.io": "v1",
    "authorization.k8s.io": "v1",
    "admissionregistration.k8s.io": "v1",
    "apiextensions.k8s.io": "v1",
    "apiregistration.k8s.io": "v1",
    "flowcontrol.apiserver.k8s.io": "v1",
    "resource.k8s.io": "v1",
}


def _named(listed: list[Obj], name: str, key: str = "name") -> Obj:
    return next(one for one in listed if one[key] == name)


async def test_the_core_has_one_version(api: Api) -> None:
    found = (await api.get("/api")).ok(200)
    assert found["kind"] == "APIVersions"
    assert found["versions"] == ["v1"]
    assert found["serverAddressByClientCIDRs"][0]["clientCIDR"] == "0.0.0.0/0"


async def test_the_groups_are_listed_with_the_version_that_is_preferred(api: Api) -> None:
    found = (await api.get("/apis")).ok(200)
    assert (found["kind"], found["apiVersion"]) == ("APIGroupList", "v1")
    for group, version in GROUPS.items():
        one = _named(found["groups"], group)
        assert one["preferredVersion"] == {"groupVersion": f"{group}/{version}", "version": version}, group
        assert {"groupVersion": f"{group}/{version}", "version": version} in one["versions"]


async def test_one_group_says_its_versions(api: Api) -> None:
    found = (await api.get("/apis/apps")).ok(200)
    assert (found["kind"], found["apiVersion"], found["name"]) == ("APIGroup", "v1", "apps")
    assert found["versions"] == [{"groupVersion": "apps/v1", "version": "v1"}]


async def test_the_resources_of_the_core_are_listed(api: Api) -> None:
    found = (await api.get("/api/v1")).ok(200)
    assert (found["kind"], found["groupVersion"]) == ("APIResourceList", "v1")
    pods = dict(_named(found["resources"], "pods"))
    assert pods.pop("storageVersionHash", "")
    assert pods == {
        "name": "pods",
        "singularName": "pod",
        "namespaced": True,
        "kind": "Pod",
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        "shortNames": ["po"],
        "categories": ["all"],
    }
    assert _named(found["resources"], "nodes")["namespaced"] is False
    status = _named(found["resources"], "pods/status")
    assert (status["kind"], status["singularName"], status["verbs"]) == ("Pod", "", ["get", "patch", "update"])
    eviction = _named(found["resources"], "pods/eviction")
    assert (eviction["group"], eviction["version"], eviction["kind"]) == ("policy", "v1", "Eviction")
    assert eviction["verbs"] == ["create"]
    scale = _named(found["resources"], "replicationcontrollers/scale")
    assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")
    names = {one["name"] for one in found["resources"]}
    doors = ("binding", "log", "exec", "attach", "portforward", "ephemeralcontainers", "resize")
    assert {f"pods/{door}" for door in doors} <= names
    assert {"namespaces/finalize", "serviceaccounts/token", "bindings"} <= names


async def test_the_resources_of_a_group_are_listed(api: Api) -> None:
    found = (await api.get("/apis/apps/v1")).ok(200)
    assert found["groupVersion"] == "apps/v1"
    assert found["apiVersion"] == "v1"
    one = _named(found["resources"], "deployments")
    assert (one["kind"], one["shortNames"], one["categories"]) == ("Deployment", ["deploy"], ["all"])
    assert _named(found["resources"], "deployments/scale")["group"] == "autoscaling"


async def test_reviews_can_only_be_created(api: Api) -> None:
    found = (await api.get("/apis/authorization.k8s.io/v1")).ok()
    assert _named(found["resources"], "selfsubjectaccessreviews")["verbs"] == ["create"]
    answer = await api.get("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
    answer.refused(405, "MethodNotAllowed")


async def test_a_version_that_is_not_served_is_not_found(api: Api) -> None:
    for path in ("/apis/apps/v9", "/api/v9", "/apis/apps/v9/x", "/api/v1/foos", "/version/x"):
        message = (await api.get(path)).refused(404, "NotFound")
        assert message == "the server could not find the requested resource"


async def test_a_group_that_nothing_serves_has_no_pages(api: Api) -> None:
    for path in ("/apis/no.such.group.example.com", "/apis/no.such.group.example.com/v1/x", "/nowhere"):
        answer = await api.get(path)
        assert answer.has_no_page()
        assert answer.headers["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize("path", ["/api", "/api/v1", "/apis/apps/v1", "/version"])
async def test_documents_are_only_read(api: Api, path: str) -> None:
    (await api.post(path, {})).refused(405, "MethodNotAllowed")


@pytest.mark.parametrize(("path", "group", "plural"), [("/api", "", "pods"), ("/apis", "apps", "deployments")])
async def test_everything_is_told_in_one_document(api: Api, path: str, group: str, plural: str) -> None:
    answer = await api.get(path, headers={"Accept": f"{AGGREGATED},application/json"})
    found = answer.ok(200)
    assert answer.headers["Content-Type"].replace(" ", "") == AGGREGATED
    assert (found["kind"], found["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
    one = next(item for item in found["items"] if item["metadata"].get("name", "") == group)
    version = one["versions"][0]
    assert (version["version"], version["freshness"]) == ("v1", "Current")
    resource = _named(version["resources"], plural, "resource")
    assert resource["scope"] == "Namespaced"
    kind = "Pod" if plural == "pods" else "Deployment"
    assert resource["responseKind"] == {"group": "", "version": "", "kind": kind}
    assert "watch" in resource["verbs"]
    assert "status" in {sub["subresource"] for sub in resource["subresources"]}


async def test_a_document_that_is_known_is_not_sent_again(api: Api) -> None:
    first = await api.get("/apis", headers={"Accept": AGGREGATED})
    tag = first.headers["ETag"]
    assert tag
    again = await api.get("/apis", headers={"Accept": AGGREGATED, "If-None-Match": tag})
    assert again.code == 304
    assert again.raw == b""


async def test_the_version_is_told(api: Api) -> None:
    found = (await api.get("/version")).ok(200)
    assert found["major"] == "1"
    assert found["minor"].rstrip("+").isdecimal()
    assert found["gitVersion"].startswith(f"v1.{found['minor'].rstrip('+')}.")
    assert {"gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"} <= set(found)


@pytest.mark.parametrize("name", ["healthz", "livez", "readyz"])
async def test_health_is_one_word_or_one_line_for_each_check(api: Api, name: str) -> None:
    brief = await api.get(f"/{name}")
    assert (brief.code, brief.raw) == (200, b"ok")
    assert brief.headers["Content-Type"].startswith("text/plain")
    verbose = (await api.get(f"/{name}", verbose="")).raw.decode()
    assert "[+]ping ok\n" in verbose
    assert verbose.endswith(f"{name} check passed\n")
    assert (await api.get(f"/{name}/ping")).raw == b"ok"
    excluded = (await api.get(f"/{name}", verbose="", exclude="ping")).raw.decode()
    assert "[+]ping excluded: ok\n" in excluded
    assert (await api.get(f"/{name}/no-such-check")).code == 404


async def test_the_paths_are_listed_at_the_root(api: Api) -> None:
    paths = (await api.get("/")).ok(200)["paths"]
    assert {
        "/api",
        "/api/v1",
        "/apis",
        "/apis/apps/v1",
        "/healthz",
        "/livez",
        "/readyz",
        "/metrics",
        "/version",
        "/openapi/v2",
        "/openapi/v3",
    } <= set(paths)


async def test_metrics_are_told_as_text(api: Api) -> None:
    answer = await api.get("/metrics", headers={"Accept": "text/plain"})
    assert answer.code == 200
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert b"\napiserver_request_total{" in answer.raw


async def test_schemas_are_found_by_group_and_version(api: Api) -> None:
    index = (await api.get("/openapi/v3")).ok(200)["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/batch/v1"} <= set(index)
    url = index["apis/apps/v1"]["serverRelativeURL"]
    assert url.startswith("/openapi/v3/apis/apps/v1?hash=")
    document = (await api.get("/openapi/v3/apis/apps/v1")).ok(200)
    assert document["openapi"].startswith("3.0")
    schema = document["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"]
    assert schema["x-kubernetes-group-version-kind"] == [{"group": "apps", "kind": "Deployment", "version": "v1"}]
    posted = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments"]["post"]
    assert posted["x-kubernetes-action"] == "post"
    assert posted["x-kubernetes-group-version-kind"]["kind"] == "Deployment"


async def test_the_old_schema_document_is_served(api: Api) -> None:
    document = (await api.get("/openapi/v2")).ok(200)
    assert document["swagger"] == "2.0"
    pod = document["definitions"]["io.k8s.api.core.v1.Pod"]
    assert pod["x-kubernetes-group-version-kind"] == [{"group": "", "kind": "Pod", "version": "v1"}]
    assert "/api/v1/namespaces/{namespace}/pods/{name}" in document["paths"]
