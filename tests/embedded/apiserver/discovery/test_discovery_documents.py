"""Discovery: the documents from which clients learn paths, verbs and names, in both generations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest

from shoal.embedded.apiserver.builtin import builtin_resources
from shoal.embedded.apiserver.discovery.documents import DiscoveryDocuments, Document
from shoal.embedded.apiserver.discovery.order import newest_first
from shoal.embedded.apiserver.discovery.version import version_document
from shoal.embedded.apiserver.resource import Resource, Subresource
from shoal.embedded.apiserver.schema.node import ANY, Schema
from shoal.embedded.apiserver.status import ApiError

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
BETA = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
FUTURE = V2.replace("v=v2", "v=v9")
KUBECTL = f"{V2},{BETA},application/json"


class AnyShape:
    def of(self, group: str, version: str, kind: str) -> Schema:
        assert version
        assert kind or group
        return ANY


class Served:
    """A catalog in which a test puts what it needs."""

    def __init__(self) -> None:
        self.stamp = 1
        self._resources = list(builtin_resources(AnyShape(), {}))

    def all(self) -> Iterable[Resource]:
        return self._resources

    def add(self, *resources: Resource) -> None:
        self._resources.extend(resources)
        self.stamp += 1


def custom(group: str, version: str, plural: str, **more: Any) -> Resource:
    return Resource(group, version, plural, plural.capitalize(), True, is_custom=True, **more)


def discovery(served: Served | None = None) -> DiscoveryDocuments:
    return DiscoveryDocuments(served or Served(), server_address="127.0.0.1:6443")


def read(document: Document | None) -> Any:
    assert document is not None
    return msgspec.json.decode(document.body)


def names(document: Document | None) -> list[str]:
    return [one["name"] for one in read(document)["groups"]]


def test_a_client_that_knows_only_json_gets_the_older_documents() -> None:
    assert read(discovery().api("application/json")) == {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}],
    }
    assert read(discovery().apis("*/*"))["kind"] == "APIGroupList"


@pytest.mark.parametrize(
    ("accept", "version"),
    [(KUBECTL, "v2"), (BETA, "v2beta1"), (f"{BETA},{V2}", "v2beta1"), (f"{V2};profile=nopeer", "v2")],
)
def test_a_client_that_takes_everything_at_once_gets_its_version(accept: str, version: str) -> None:
    document = discovery().apis(accept)
    assert read(document)["kind"] == "APIGroupDiscoveryList"
    assert read(document)["apiVersion"] == f"apidiscovery.k8s.io/{version}"
    assert document.content_type == f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"


def test_an_unknown_version_of_the_document_falls_back_to_the_next_form_in_the_list() -> None:
    future = V2.replace("v=v2", "v=v3")
    assert read(discovery().api(f"{future},application/json"))["kind"] == "APIVersions"


PROTOBUF = "application/vnd.kubernetes.protobuf"


@pytest.mark.parametrize(
    "accept", ["text/plain", "image/png, text/html", PROTOBUF, "application/json;as=Table", FUTURE]
)
@pytest.mark.parametrize("path", ["api", "apis", "group", "resources"])
def test_a_client_that_takes_no_form_of_a_document_is_told_which_there_are(path: str, accept: str) -> None:
    with pytest.raises(ApiError) as refused:
        documents(accept)[path]()
    assert (refused.value.code, refused.value.reason) == (406, "NotAcceptable")
    assert refused.value.message.endswith("application/json, application/yaml")
    is_routed = path in ("api", "resources") and not accept.startswith("application/json")
    assert refused.value.message.startswith("406: Not Acceptable\n") == is_routed


@pytest.mark.parametrize("path", ["api", "apis", "group", "resources"])
def test_a_client_that_takes_another_form_beside_gets_that_one(path: str) -> None:
    document = documents(f"text/plain, {FUTURE}, application/yaml;q=0.5")[path]()
    assert document is not None
    assert document.content_type == "application/yaml"


def test_the_newer_document_is_there_in_yaml_too_and_only_of_all_groups() -> None:
    yaml = V2.replace("json", "yaml", 1)
    assert discovery().apis(yaml).content_type == yaml
    with pytest.raises(ApiError):
        discovery().group("apps", yaml)


def documents(accept: str) -> dict[str, Callable[[], Document | None]]:
    found = discovery()
    return {
        "api": lambda: found.api(accept),
        "apis": lambda: found.apis(accept),
        "group": lambda: found.group("apps", accept),
        "resources": lambda: found.resources("", "v1", accept),
    }


def test_groups_stand_in_the_order_by_which_kubectl_resolves_a_bare_name() -> None:
    found = names(discovery().apis(""))
    assert found[:3] == ["apiregistration.k8s.io", "apps", "events.k8s.io"]
    assert found.index("batch") < found.index("storage.k8s.io") < found.index("coordination.k8s.io")
    assert "" not in found


def test_groups_of_custom_resources_come_last_by_name() -> None:
    served = Served()
    served.add(custom("zoo.example.com", "v1", "apes"), custom("alpha.example.com", "v1", "bees"))
    assert names(discovery(served).apis(""))[-2:] == ["alpha.example.com", "zoo.example.com"]


def test_the_newest_stable_version_is_preferred() -> None:
    document = read(discovery().group("autoscaling"))
    assert document["preferredVersion"] == {"groupVersion": "autoscaling/v2", "version": "v2"}
    assert [one["version"] for one in document["versions"]] == ["v2", "v1"]


def test_versions_are_ordered_by_stage_then_number() -> None:
    mixed = ["v1alpha1", "foo10", "v2beta1", "v10", "v1", "foo1", "v11beta2", "v2", "v3alpha1"]
    assert sorted(mixed, key=newest_first) == [
        "v10",
        "v2",
        "v1",
        "v11beta2",
        "v2beta1",
        "v3alpha1",
        "v1alpha1",
        "foo1",
        "foo10",
    ]


def test_a_resource_is_told_with_all_that_kubectl_needs() -> None:
    resources = {one["name"]: one for one in read(discovery().resources("apps", "v1"))["resources"]}
    assert resources["deployments"] == {
        "name": "deployments",
        "singularName": "deployment",
        "namespaced": True,
        "kind": "Deployment",
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        "shortNames": ["deploy"],
        "categories": ["all"],
        "storageVersionHash": "8aSe+NMegvE=",
    }
    assert resources["deployments/scale"] == {
        "name": "deployments/scale",
        "singularName": "",
        "namespaced": True,
        "group": "autoscaling",
        "version": "v1",
        "kind": "Scale",
        "verbs": ["get", "patch", "update"],
    }


def test_a_door_of_the_same_group_does_not_repeat_it() -> None:
    resources = {one["name"]: one for one in read(discovery().resources("", "v1"))["resources"]}
    assert "group" not in resources["pods/binding"]
    assert resources["pods/binding"]["kind"] == "Binding"
    assert resources["pods"]["storageVersionHash"] == "xPOwRZ+Yhw8="
    assert "storageVersionHash" not in resources["bindings"]


def test_both_generations_tell_the_same() -> None:
    found = discovery()
    items = read(found.api(KUBECTL))["items"] + read(found.apis(KUBECTL))["items"]
    for item in items:
        group = item["metadata"].get("name", "")
        for version in item["versions"]:
            newer = {}
            for one in version["resources"]:
                newer[one["resource"]] = (one["responseKind"]["kind"], one["verbs"], one.get("shortNames"))
                for door in one.get("subresources", ()):
                    newer[f"{one['resource']}/{door['subresource']}"] = (
                        door["responseKind"]["kind"],
                        door["verbs"],
                        None,
                    )
            older = {
                one["name"]: (one["kind"], one["verbs"], one.get("shortNames"))
                for one in read(found.resources(group, version["version"]))["resources"]
            }
            assert newer == older


def test_what_is_not_served_has_no_document() -> None:
    assert discovery().group("example.com") is None
    assert discovery().group("") is None
    assert discovery().resources("apps", "v2") is None


def test_a_document_is_kept_until_the_catalog_changes() -> None:
    served = Served()
    found = discovery(served)
    before = found.apis(KUBECTL)
    assert found.apis(KUBECTL) is before
    doors = (Subresource("scale", ("get",), "Scale", "autoscaling", "v1"),)
    served.add(custom("example.com", "v1", "apes", subresources=doors))
    after = found.apis(KUBECTL)
    assert after.etag != before.etag
    assert read(after)["items"][-1]["metadata"]["name"] == "example.com"


def test_groups_of_other_servers_are_told_beside_the_own() -> None:
    found = discovery()
    found.apis("")
    metrics = {"metadata": {"name": "metrics.k8s.io"}, "versions": [{"version": "v1beta1", "resources": []}]}
    found.set_foreign([metrics, {"metadata": {"name": "apps"}, "versions": [{"version": "v9", "resources": []}]}])
    assert names(found.apis(""))[-1] == "metrics.k8s.io"
    assert read(found.group("metrics.k8s.io"))["preferredVersion"]["version"] == "v1beta1"
    assert read(found.apis(KUBECTL))["items"][-1] == metrics
    assert [one["version"] for one in read(found.group("apps"))["versions"]] == ["v1"]


def test_the_version_says_which_kubernetes_and_whose_server() -> None:
    document = version_document("1.35")
    assert (document["major"], document["minor"]) == ("1", "35")
    assert document["gitVersion"] == "v1.35.0+shoal"
