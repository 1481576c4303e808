"""What a definition adds to what the server shows: discovery, OpenAPI, columns, selectors, subresources."""

from typing import Any

from build.cluster_api import Answer, Api
from build.contract_kinds import defined, fields, text, version, whole
from build.contract_objects import eventually

Obj = dict[str, Any]
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
SCALE = {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n", "labelSelectorPath": ".status.selector"}
NAMES = {"shortNames": ["wg"], "categories": ["all", "parts"]}


async def test_a_group_and_its_versions_are_discovered(api: Api) -> None:
    served = [version("v1beta1"), version("v1"), version("v2alpha1"), version("v10")]
    async with defined(api, *served) as kind:
        group = (await eventually(lambda: api.get(f"/apis/{kind.group}"), lambda answer: answer.code == 200)).ok()
        assert [one["version"] for one in group["versions"]] == ["v10", "v1", "v1beta1", "v2alpha1"]
        assert group["preferredVersion"] == {"groupVersion": f"{kind.group}/v10", "version": "v10"}
        groups = (await api.get("/apis")).ok()["groups"]
        assert kind.group in {one["name"] for one in groups}


async def test_a_resource_is_discovered_with_all_its_names_and_subresources(api: Api) -> None:
    one = version("v1", fields({"n": whole()}), subresources={"status": {}, "scale": SCALE})
    async with defined(api, one, names=NAMES) as kind:
        path = f"/apis/{kind.group}/v1"
        found = (await eventually(lambda: api.get(path), lambda answer: answer.code == 200)).ok()
        resources = {one["name"]: one for one in found["resources"]}
        assert set(resources) == {"widgets", "widgets/status", "widgets/scale"}
        main = resources["widgets"]
        assert (main["kind"], main["singularName"], main["namespaced"]) == ("Widget", "widget", True)
        assert main["shortNames"] == ["wg"]
        assert main["categories"] == ["all", "parts"]
        assert set(main["verbs"]) == {
            "create",
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "update",
            "watch",
        }
        assert main["storageVersionHash"]
        assert set(resources["widgets/status"]["verbs"]) == {"get", "patch", "update"}
        scale = resources["widgets/scale"]
        assert (scale["kind"], scale["group"], scale["version"]) == ("Scale", "autoscaling", "v1")


async def test_a_resource_is_in_the_aggregated_discovery(api: Api) -> None:
    async with defined(api, version("v1", subresources={"status": {}})) as kind:

        def groups(answer: Answer) -> list[Obj]:
            return [one for one in answer.body["items"] if one["metadata"]["name"] == kind.group]

        answer = await eventually(
            lambda: api.ask("GET", "/apis", headers={"Accept": AGGREGATED}), lambda one: bool(groups(one))
        )
        (found,) = groups(answer)
        (served,) = found["versions"]
        (resource,) = served["resources"]
        assert resource["resource"] == "widgets"
        assert resource["responseKind"] == {"group": kind.group, "version": "v1", "kind": "Widget"}
        assert resource["scope"] == "Namespaced"
        assert [one["subresource"] for one in resource["subresources"]] == ["status"]


async def test_the_schema_is_published(api: Api) -> None:
    spec = fields({"a": text(description="the first")}, required=["a"])
    async with defined(api, version(spec=spec)) as kind:
        index = f"apis/{kind.group}/v1"
        paths = await eventually(lambda: api.get("/openapi/v3"), lambda answer: index in answer.body["paths"])
        document = (await api.get(paths.body["paths"][index]["serverRelativeURL"])).ok()
        (found,) = [
            schema
            for schema in document["components"]["schemas"].values()
            if {"group": kind.group, "version": "v1", "kind": "Widget"}
            in schema.get("x-kubernetes-group-version-kind", [])
        ]
        assert found["properties"]["spec"]["properties"]["a"] == {"type": "string", "description": "the first"}
        assert found["properties"]["spec"]["required"] == ["a"]
        assert set(found["properties"]) >= {"apiVersion", "kind", "metadata"}
        assert f"/apis/{kind.group}/v1/namespaces/{{namespace}}/widgets/{{name}}" in document["paths"]


async def test_a_table_has_the_columns_of_the_definition(api: Api) -> None:
    columns = [
        {"name": "N", "type": "integer", "jsonPath": ".spec.n"},
        {"name": "Phase", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
        {"name": "Deep", "type": "string", "jsonPath": ".spec.none", "priority": 1, "description": "not there"},
        {"name": "Since", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    async with defined(api, version(additionalPrinterColumns=columns)) as kind:
        await kind.made("w", {"n": 3}, status={"conditions": [{"type": "Ready", "status": "True"}]})
        table = (await api.ask("GET", kind.path(), headers={"Accept": TABLE})).ok()
        assert table["kind"] == "Table"
        definitions = table["columnDefinitions"]
        assert [one["name"] for one in definitions] == ["Name", "N", "Phase", "Deep", "Since"]
        assert [one["type"] for one in definitions] == ["string", "integer", "string", "string", "date"]
        assert [one["priority"] for one in definitions] == [0, 0, 0, 1, 0]
        assert definitions[3]["description"] == "not there"
        (row,) = table["rows"]
        assert row["cells"][:4] == ["w", 3, "True", None]
        assert isinstance(row["cells"][4], str)
        assert row["object"]["kind"] == "PartialObjectMetadata"


async def test_a_table_without_columns_has_name_and_age(api: Api) -> None:
    async with defined(api) as kind:
        await kind.made("w", {})
        table = (await api.ask("GET", kind.path("w"), headers={"Accept": TABLE})).ok()
        assert [one["name"] for one in table["columnDefinitions"]] == ["Name", "Age"]


async def test_objects_are_selected_by_the_fields_of_the_definition(api: Api) -> None:
    spec = fields({"color": text(), "n": whole()})
    one = version(spec=spec, selectableFields=[{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.n"}])
    async with defined(api, one) as kind:
        await kind.made("red", {"color": "red", "n": 1})
        await kind.made("blue", {"color": "blue", "n": 2})
        await kind.made("none", {})

        async def names(selector: str) -> set[str]:
            found = (await api.get(kind.path(), fieldSelector=selector)).ok()["items"]
            return {one["metadata"]["name"] for one in found}

        assert await names("spec.color=red") == {"red"}
        assert await names("spec.color!=red") == {"blue", "none"}
        assert await names("spec.n=2") == {"blue"}
        assert await names("spec.color=") == {"none"}
        assert await names(f"metadata.name=red,metadata.namespace={api.namespace}") == {"red"}
        message = (await api.get(kind.path(), fieldSelector="spec.other=x")).refused(400, "BadRequest")
        assert "field label not supported: spec.other" in message
        since = (await api.get(kind.path())).ok()["metadata"]["resourceVersion"]
        async with api.watch(kind.path(), resourceVersion=since, fieldSelector="spec.color=red") as watch:
            (await api.patch(kind.path("blue"), {"spec": {"color": "red"}})).ok()
            assert (await watch.next_of("ADDED"))["object"]["metadata"]["name"] == "blue"
            (await api.patch(kind.path("blue"), {"spec": {"color": "green"}})).ok()
            assert (await watch.next_of("DELETED"))["object"]["metadata"]["name"] == "blue"


async def test_the_scale_is_read_and_written_where_the_definition_says(api: Api) -> None:
    one = version("v1", fields({"n": whole(), "x": text()}), subresources={"status": {}, "scale": SCALE})
    async with defined(api, one) as kind:
        await kind.made("w", {"n": 2, "x": "y"})
        (await api.patch(kind.path("w", "status"), {"status": {"n": 1, "selector": "a=b"}})).ok()
        scale = (await api.get(kind.path("w", "scale"))).ok()
        assert (scale["apiVersion"], scale["kind"]) == ("autoscaling/v1", "Scale")
        assert scale["spec"] == {"replicas": 2}
        assert scale["status"] == {"replicas": 1, "selector": "a=b"}
        assert scale["metadata"]["name"] == "w"
        written = (await api.put(kind.path("w", "scale"), {**scale, "spec": {"replicas": 5}})).ok(200)
        assert written["spec"] == {"replicas": 5}
        assert (await kind.get())["spec"] == {"n": 5, "x": "y"}
        stale = await api.put(kind.path("w", "scale"), {**scale, "spec": {"replicas": 6}})
        stale.refused(409, "Conflict")
        patched = (await api.patch(kind.path("w", "scale"), {"spec": {"replicas": 7}})).ok(200)
        assert patched["spec"] == {"replicas": 7}


async def test_a_subresource_that_is_not_defined_is_not_there(api: Api) -> None:
    async with defined(api) as kind:
        await kind.made("w", {})
        for name in ("status", "scale"):
            message = (await api.get(kind.path("w", name))).refused(404, "NotFound")
            assert message == f'widgets.{kind.group} "w" not found'


async def test_a_cluster_wide_kind_has_no_namespace(api: Api) -> None:
    async with defined(api, scope="Cluster") as kind:
        created = await kind.made("w", {})
        assert "namespace" not in created["metadata"]
        assert (await api.get(f"/apis/{kind.group}/v1/namespaces/{api.namespace}/widgets")).has_no_page()
        (await api.delete(kind.path("w"))).ok()
