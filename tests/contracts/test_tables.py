"""Tables for people and metadata for machines: of one object, of lists and of watches."""

from __future__ import annotations

import pytest

from build.api_objects import ABSENT, deployment, make_configmap, make_pod, make_secret
from build.cluster_api import Api, Obj

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
KUBECTL = f"{TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIALS = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


def heads(table: Obj, *, wide: bool = False) -> list[str]:
    return [one["name"] for one in table["columnDefinitions"] if wide or not one["priority"]]


async def test_a_list_is_given_as_a_table(api: Api) -> None:
    await make_configmap(api, "a", {"k": "1", "l": "2"})
    answer = await api.get(api.core("configmaps"), headers={"Accept": KUBECTL}, fieldSelector="metadata.name=a")
    table = answer.ok(200)
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert table["metadata"]["resourceVersion"].isdecimal()
    assert heads(table) == ["Name", "Data", "Age"]
    first = table["columnDefinitions"][0]
    assert (first["type"], first["format"], first["priority"]) == ("string", "name", 0)
    assert first["description"]
    (row,) = table["rows"]
    assert row["cells"][:2] == ["a", 2]
    assert row["object"]["kind"] == "PartialObjectMetadata"
    assert row["object"]["apiVersion"] == "meta.k8s.io/v1"
    assert row["object"]["metadata"]["name"] == "a"
    assert "data" not in row["object"]


async def test_one_object_is_given_as_a_table_of_one_row(api: Api) -> None:
    made = await make_pod(api, "p", nodeName=ABSENT)
    table = (await api.get(api.core("pods", "p"), headers={"Accept": TABLE})).ok()
    assert heads(table) == ["Name", "Ready", "Status", "Restarts", "Age"]
    assert heads(table, wide=True)[5:] == ["IP", "Node", "Nominated Node", "Readiness Gates"]
    assert table["rows"][0]["cells"][:4] == ["p", "0/1", "Pending", 0] or table["rows"][0]["cells"][3] == "0"
    assert table["rows"][0]["cells"][5:] == ["<none>", ABSENT, "<none>", "<none>"]
    assert table["rows"][0]["object"]["metadata"]["uid"] == made["metadata"]["uid"]


async def test_a_deployment_has_its_columns(api: Api) -> None:
    (await api.post(api.group("apps/v1", "deployments"), deployment("web"))).ok(201)
    table = (await api.get(api.group("apps/v1", "deployments"), headers={"Accept": TABLE})).ok()
    assert heads(table) == ["Name", "Ready", "Up-to-date", "Available", "Age"]
    assert heads(table, wide=True)[5:] == ["Containers", "Images", "Selector"]
    assert table["rows"][0]["cells"][:4] == ["web", "0/0", 0, 0]
    assert table["rows"][0]["cells"][5:] == ["main", "registry.k8s.io/pause:3.10", "app=web"]


@pytest.mark.parametrize(
    ("include", "kind"), [("Object", "ConfigMap"), ("Metadata", "PartialObjectMetadata"), ("None", "")]
)
async def test_a_row_holds_as_much_of_its_object_as_is_asked(api: Api, include: str, kind: str) -> None:
    await make_configmap(api, "a", {"k": "1"})
    answer = await api.get(api.core("configmaps", "a"), headers={"Accept": TABLE}, includeObject=include)
    found = answer.ok()["rows"][0].get("object")
    if not kind:
        assert found is None
        return
    assert found["kind"] == kind
    assert ("data" in found) == (kind == "ConfigMap")


async def test_a_row_cannot_hold_anything_else(api: Api) -> None:
    await make_configmap(api, "a")
    answer = await api.get(api.core("configmaps", "a"), headers={"Accept": TABLE}, includeObject="Half")
    assert answer.code in (400, 422)


async def test_a_table_is_paged(api: Api) -> None:
    await make_secret(api, "a")
    await make_secret(api, "b")
    first = (await api.get(api.core("secrets"), headers={"Accept": TABLE}, limit=1)).ok()
    assert first["rows"][0]["cells"][0] == "a"
    assert first["metadata"]["remainingItemCount"] == 1
    token = {"continue": first["metadata"]["continue"]}
    rest = (await api.get(api.core("secrets"), headers={"Accept": TABLE}, limit=1, **token)).ok()
    assert [row["cells"][:3] for row in rest["rows"]] == [["b", "Opaque", 0]]


async def test_an_empty_table_has_its_heads(api: Api) -> None:
    table = (await api.get(api.core("secrets"), headers={"Accept": TABLE})).ok()
    assert heads(table) == ["Name", "Type", "Data", "Age"]
    assert not table["rows"]


async def test_a_watch_tells_tables_with_heads_in_the_first(api: Api) -> None:
    since = (await api.get(api.core("secrets"))).ok()["metadata"]["resourceVersion"]
    async with api.watch(api.core("secrets"), headers={"Accept": TABLE}, resourceVersion=since) as watch:
        await make_secret(api, "a")
        await make_secret(api, "b")
        first, second = await watch.take(2)
    assert first["object"]["kind"] == "Table"
    assert heads(first["object"])[0] == "Name"
    assert not second["object"].get("columnDefinitions")
    assert second["object"]["rows"][0]["cells"][0] == "b"
    assert second["object"]["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


async def test_metadata_alone_is_given_of_one_object(api: Api) -> None:
    made = await make_configmap(api, "a", {"k": "1"}, labels={"l": "1"})
    found = (await api.get(api.core("configmaps", "a"), headers={"Accept": PARTIAL})).ok()
    assert found == {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": made["metadata"]}


async def test_metadata_alone_is_given_of_a_list(api: Api) -> None:
    made = await make_secret(api, "a", data={"k": "MQ=="})
    found = (await api.get(api.core("secrets"), headers={"Accept": PARTIALS})).ok()
    assert (found["kind"], found["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    assert found["metadata"]["resourceVersion"].isdecimal()
    (item,) = found["items"]
    assert item["metadata"] == made["metadata"]
    assert "data" not in item
    assert "type" not in item


async def test_metadata_alone_is_told_by_a_watch_bookmarks_included(api: Api) -> None:
    await make_secret(api, "a")
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    async with api.watch(api.core("secrets"), headers={"Accept": PARTIAL}, **query) as watch:
        added, bookmark = await watch.next(), await watch.next()
    for event, kind in ((added, "ADDED"), (bookmark, "BOOKMARK")):
        assert event["type"] == kind
        assert (event["object"]["kind"], event["object"]["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert added["object"]["metadata"]["name"] == "a"
    assert "data" not in added["object"]


async def test_a_write_may_be_answered_with_metadata_alone(api: Api) -> None:
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}
    made = (await api.post(api.core("secrets"), body, headers={"Accept": PARTIAL})).ok(201)
    assert made["kind"] == "PartialObjectMetadata"
    assert made["metadata"]["name"] == "a"


async def test_a_table_of_another_version_is_not_acceptable_alone(api: Api) -> None:
    accept = "application/json;as=Table;v=v9;g=meta.k8s.io"
    assert (await api.get(api.core("secrets"), headers={"Accept": accept})).refused(406, "NotAcceptable")
    both = (await api.get(api.core("secrets"), headers={"Accept": f"{accept},application/json"})).ok()
    assert both["kind"] == "SecretList"
