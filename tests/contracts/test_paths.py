"""Paths: an object has one, the authorized object is the one that is acted on, and every other path is 404."""

from __future__ import annotations

import pytest

from build.api_objects import make_configmap
from build.cluster_api import MERGE, Api, Obj

NOWHERE = "the server could not find the requested resource"


@pytest.mark.parametrize(
    "rest",
    [
        "namespaces",
        "namespaces/default",
        "namespaces/default/status",
        "namespaces/default/finalize",
        "nodes",
        "nodes/n",
        "nodes/n/status",
        "nodes/n/proxy/pods",
        "persistentvolumes/p/status",
        "configmaps/c/status",
        "pods/p/status/more",
        "pods/p/nosuch",
        "bindings/p",
        "PODS",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
async def test_an_object_of_the_cluster_has_no_path_below_a_namespace(api: Api, rest: str, method: str) -> None:
    body: Obj | None = None if method in ("GET", "DELETE") else {}
    answer = await api.ask(method, f"/api/v1/namespaces/{api.namespace}/{rest}", body, media=MERGE)
    assert answer.refused(404, "NotFound") == NOWHERE


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/configmaps/c",
        "/api/v1/pods/p/status",
        "/api/v1/pods/p/binding",
        "/api/v1//pods",
        "/api/V1/pods",
        "/api/v1/watch/namespaces/default/pods/p/log",
        "/apis/apps/v1/namespaces/default",
        "/apis/certificates.k8s.io/v1/namespaces/default/certificatesigningrequests/c/approval",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews/s",
    ],
)
async def test_a_path_that_names_no_object_is_not_found(api: Api, path: str) -> None:
    assert (await api.get(path)).refused(404, "NotFound") == NOWHERE


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_the_old_paths_of_watches_are_for_reading(api: Api, method: str) -> None:
    path = f"/api/v1/watch/namespaces/{api.namespace}/configmaps/c"
    body: Obj | None = None if method == "DELETE" else {}
    assert (await api.ask(method, path, body, media=MERGE)).code == 405


async def test_one_object_is_got_and_not_watched(api: Api) -> None:
    await make_configmap(api, "c")
    found = (await api.get(api.core("configmaps", "c"), watch="true")).ok()
    assert (found["kind"], found["metadata"]["name"]) == ("ConfigMap", "c")


async def test_the_old_watch_of_one_object_takes_no_selector_for_another(api: Api) -> None:
    path = f"/api/v1/watch/namespaces/{api.namespace}/configmaps/c"
    answer = await api.get(path, fieldSelector="metadata.name=d", timeoutSeconds=1)
    assert answer.refused(400, "BadRequest") == "fieldSelector metadata.name doesn't match requested name"
