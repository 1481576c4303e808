"""The OpenAPI documents: whole, what kubectl looks for, and made again when the catalog changes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
import pytest

from shoal.embedded.apiserver.builtin import builtin_resources
from shoal.embedded.apiserver.catalog import ResourceCatalog
from shoal.embedded.apiserver.openapi.answers import V2_PROTOBUF, openapi_answer
from shoal.embedded.apiserver.openapi.documents import Documents
from shoal.embedded.apiserver.openapi.gnostic import encode_document
from shoal.embedded.apiserver.resource import Resource, Subresource
from shoal.embedded.apiserver.schema.kubernetes import Shapes
from shoal.embedded.apiserver.schema.node import Schema

Json = dict[str, Any]
POD = "io.k8s.api.core.v1.Pod"
PROTOBUF_WANTED = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
GVK = "x-kubernetes-group-version-kind"


def widget(**more: Any) -> Resource:
    schema = Schema("object")
    size = {"type": "integer", "description": "How large.", "nullable": True}
    port = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
    spec = {"type": "object", "properties": {"size": size, "port": port}}
    schema.published = {"type": "object", "description": "A widget.", "properties": {"spec": spec}}
    return Resource(
        group="example.com",
        version="v1",
        plural="widgets",
        kind="Widget",
        namespaced=True,
        is_custom=True,
        schema=schema,
        subresources=(Subresource("status", ("get", "patch", "update")),),
        **more,
    )


def catalog() -> ResourceCatalog:
    found = ResourceCatalog(builtin_resources(Shapes("1.36"), {}))
    found.put_custom([widget()], widget())
    return found


@cache
def documents() -> Documents:
    return Documents(catalog(), "1.36")


def v3(group: str, version: str) -> Json:
    body = documents().document_v3(group, version)
    assert body is not None
    found: Json = msgspec.json.decode(body)
    return found


def v2() -> Json:
    found: Json = msgspec.json.decode(documents().document_v2())
    return found


def refs(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "$ref" and isinstance(inner, str):
                yield inner
            else:
                yield from refs(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from refs(inner)


def test_the_index_names_every_group_version_once_with_a_hash() -> None:
    index = documents().index_v3()["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/example.com/v1"} <= index.keys()
    address = index["apis/apps/v1"]["serverRelativeURL"]
    assert address.startswith("/openapi/v3/apis/apps/v1?hash=")
    assert len({one["serverRelativeURL"] for one in index.values()}) == len(index)


def test_every_document_is_whole_and_every_resource_stands_in_one() -> None:
    kinds = set()
    versions = {(one.group, one.version) for one in catalog().all()}
    listed = {path.removeprefix("apis/") for path in documents().index_v3()["paths"]}
    assert {f"{group}/{version}" if group else f"api/{version}" for group, version in versions} <= listed
    for group, version in versions:
        document = v3(group, version)
        there = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
        assert set(refs(document)) <= there
        kinds |= {msgspec.json.encode(op[GVK]) for item in document["paths"].values() for op in operations(item)}
    for resource in catalog().all():
        shape = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        assert msgspec.json.encode(shape) in kinds, resource.plural


def operations(item: Json) -> list[Json]:
    return [one for method, one in item.items() if method != "parameters"]


def test_version_2_is_whole_and_has_every_path_of_version_3() -> None:
    document = v2()
    assert set(refs(document)) <= {f"#/definitions/{name}" for name in document["definitions"]}
    assert v3("apps", "v1")["paths"].keys() | v3("", "v1")["paths"].keys() <= document["paths"].keys()
    assert "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}/status" in document["paths"]


@pytest.mark.parametrize("method", ["patch", "put"])
def test_kubectl_learns_that_the_server_validates_fields(method: str) -> None:
    operation = v3("apps", "v1")["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"][method]
    assert operation[GVK] == {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert "fieldValidation" in {one["name"] for one in operation["parameters"]}


def test_server_side_apply_is_among_the_patches() -> None:
    operation = v3("", "v1")["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert "application/apply-patch+yaml" in operation["requestBody"]["content"]
    custom = v3("example.com", "v1")["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"]
    assert "application/strategic-merge-patch+json" not in custom["requestBody"]["content"]


def test_subresources_speak_their_own_kind() -> None:
    paths = v3("apps", "v1")["paths"]
    scale = paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"]["get"]
    assert scale[GVK] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert "io.k8s.api.autoscaling.v1.Scale" in v3("apps", "v1")["components"]["schemas"]


def test_operations_are_named_as_generated_clients_know_them() -> None:
    paths = v3("", "v1")["paths"]
    assert paths["/api/v1/namespaces/{namespace}/pods"]["get"]["operationId"] == "listCoreV1NamespacedPod"
    assert paths["/api/v1/pods"]["get"]["operationId"] == "listCoreV1PodForAllNamespaces"
    assert paths["/api/v1/nodes/{name}"]["put"]["operationId"] == "replaceCoreV1Node"
    deleting = paths["/api/v1/namespaces/{namespace}/pods"]["delete"]
    assert deleting["operationId"] == "deleteCoreV1CollectionNamespacedPod"


def test_operation_names_are_unique() -> None:
    names = [one["operationId"] for item in v2()["paths"].values() for one in operations(item)]
    assert len(names) == len(set(names))


def test_fields_say_what_they_are_for_and_how_they_merge() -> None:
    containers = v3("", "v1")["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["description"].startswith("List of containers belonging to the pod.")
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert (containers["x-kubernetes-list-type"], containers["x-kubernetes-list-map-keys"]) == ("map", ["name"])


def test_a_quantity_is_text_or_number_where_that_can_be_said() -> None:
    name = "io.k8s.apimachinery.pkg.api.resource.Quantity"
    assert v3("", "v1")["components"]["schemas"][name]["oneOf"] == [{"type": "string"}, {"type": "number"}]
    assert v2()["definitions"][name]["type"] == "string"


def test_options_and_status_belong_to_every_document() -> None:
    schemas = v3("batch", "v1")["components"]["schemas"]
    for kind in ("DeleteOptions", "Patch", "Status", "WatchEvent", "ObjectMeta"):
        assert f"io.k8s.apimachinery.pkg.apis.meta.v1.{kind}" in schemas


def test_a_custom_resource_is_published_as_written_with_type_and_metadata() -> None:
    schema = v3("example.com", "v1")["components"]["schemas"]["com.example.v1.Widget"]
    assert schema["description"] == "A widget."
    assert schema["properties"].keys() == {"apiVersion", "kind", "metadata", "spec"}
    assert schema[GVK] == [{"group": "example.com", "version": "v1", "kind": "Widget"}]
    assert schema["properties"]["spec"]["properties"]["size"]["nullable"] is True


def test_version_2_leaves_out_what_it_has_no_words_for() -> None:
    spec = v2()["definitions"]["com.example.v1.Widget"]["properties"]["spec"]["properties"]
    assert "nullable" not in spec["size"]
    assert (spec["port"]["type"], "anyOf" in spec["port"]) == ("string", False)


def test_documents_follow_the_catalog() -> None:
    served = catalog()
    made = Documents(served, "1.36")
    before, core = made.index_v3()["paths"], made.document_v3("", "v1")
    assert made.document_v3("example.com", "v1") is not None
    served.drop_custom(widget().home)
    assert made.document_v3("example.com", "v1") is None
    after = made.index_v3()["paths"]
    assert before.keys() - after.keys() == {"apis/example.com/v1"}
    assert after["api/v1"] == before["api/v1"]
    assert made.document_v3("", "v1") == core


def test_a_changed_definition_has_another_hash() -> None:
    served = catalog()
    made = Documents(served, "1.36")
    before = made.index_v3()["paths"]["apis/example.com/v1"]
    changed = widget(short_names=("wd",))
    changed.schema.published = {"type": "object"}
    served.put_custom([changed], changed)
    assert made.index_v3()["paths"]["apis/example.com/v1"] != before


def wire(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    """The fields of a protobuf message, by the published encoding."""

    def varint(at: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 128:
                return value, at

    at = 0
    while at < len(data):
        tag, at = varint(at)
        size, at = varint(at)
        if tag & 7 == 0:
            yield tag >> 3, size
        else:
            assert tag & 7 == 2
            yield tag >> 3, data[at : at + size]
            at += size


def part(data: bytes, number: int) -> list[bytes]:
    return [content for found, content in wire(data) if found == number and isinstance(content, bytes)]


def test_the_protobuf_form_says_the_same() -> None:
    document = v2()
    encoded = encode_document(document)
    assert part(encoded, 1) == [b"2.0"]
    named = {part(one, 1)[0].decode(): part(one, 2)[0] for one in part(part(encoded, 9)[0], 1)}
    assert named.keys() == document["definitions"].keys()
    pod = named[POD]
    assert part(pod, 4)[0].decode() == document["definitions"][POD]["description"]
    assert part(part(pod, 22)[0], 1) == [b"object"]
    properties = {part(one, 1)[0].decode() for one in part(part(pod, 25)[0], 1)}
    assert properties == {"apiVersion", "kind", "metadata", "spec", "status"}
    extension = part(pod, 31)[0]
    assert part(extension, 1) == [GVK.encode()]
    assert msgspec.json.decode(part(part(extension, 2)[0], 2)[0]) == document["definitions"][POD][GVK]
    paths = {part(one, 1)[0].decode() for one in part(part(encoded, 8)[0], 2)}
    assert paths == document["paths"].keys()


ANSWERED = {
    "/openapi/v3": "application/json",
    "/openapi/v3/api/v1": "application/json",
    "/openapi/v3/apis/apps/v1": "application/json",
    "/openapi/v2": "application/json",
}


@pytest.mark.parametrize("path", ANSWERED)
def test_documents_stand_where_clients_ask_for_them(path: str) -> None:
    answer = openapi_answer(documents(), path, "application/json, */*")
    assert answer is not None
    assert answer.content_type == ANSWERED[path]
    msgspec.json.decode(answer.body)


def test_protobuf_is_sent_to_those_who_ask_for_it_first() -> None:
    answer = openapi_answer(documents(), "/openapi/v2", PROTOBUF_WANTED)
    assert answer is not None
    assert answer.content_type == V2_PROTOBUF
    both = openapi_answer(documents(), "/openapi/v2", f"application/json,{PROTOBUF_WANTED}")
    assert both is not None
    assert both.content_type == "application/json"


@pytest.mark.parametrize(
    "path", ["/openapi", "/openapi/v1", "/openapi/v3/apis/nobody.io", "/openapi/v3/apis/nobody.io/v1"]
)
def test_nothing_stands_elsewhere(path: str) -> None:
    assert openapi_answer(documents(), path, "") is None


def test_each_path_of_discovery_has_a_document_of_its_own() -> None:
    made = documents()
    listed = [path for path in made.index_v3()["paths"] if path.count("/") < 2 and path != "api/v1"]
    assert {"api", "apis", "apis/apps", "apis/rbac.authorization.k8s.io"} <= set(listed)
    operations = {path: msgspec.json.decode(made.document_of_group(path) or b"") for path in listed}
    said = operations["apis/rbac.authorization.k8s.io"]["paths"]["/apis/rbac.authorization.k8s.io/"]["get"]
    assert (said["operationId"], said["tags"]) == ("getRbacAuthorizationAPIGroup", ["rbacAuthorization"])
    for path, document in operations.items():
        (operation,) = (item["get"] for item in document["paths"].values())
        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"]
        assert schema.rpartition("/")[2] in document["components"]["schemas"], path
    assert made.document_of_group("apis/nobody.example.com") is None
