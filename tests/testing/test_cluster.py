"""The cluster of `shoal.testing` as tests of an operator use it."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import ssl
from collections.abc import Iterator
from typing import Any

import pytest

from shoal.client.kind import CONFIG_MAPS, NODES, Kind
from shoal.client.refusals import NotFoundError
from shoal.testing import KubeCluster, KubeClusterOptions
from shoal.units.errors import ConflictError, UserError

WIDGETS = Kind("example.com", "v1", "widgets", "Widget")
GADGETS = Kind("example.com", "v1", "gadgets", "Gadget")


def definition(kind: Kind) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {"plural": kind.plural, "kind": kind.name},
            "versions": [{"name": kind.version, "served": True, "storage": True, "schema": schema}],
        },
    }


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeCluster]:
    folder = tmp_path_factory.mktemp("crds")
    (folder / "gadgets.yaml").write_text(json.dumps(definition(GADGETS)))
    (folder / "notes.txt").write_text("not a manifest")
    with KubeCluster(KubeClusterOptions(nodes="1xp5.48xlarge", definitions=(definition(WIDGETS), folder))) as running:
        yield running


def test_two_namespaces_are_isolated(cluster: KubeCluster) -> None:
    first, second = cluster.namespace(), cluster.namespace()
    cluster.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": first}})
    assert cluster.get(CONFIG_MAPS, "a", first)["metadata"]["namespace"] == first
    with pytest.raises(NotFoundError):
        cluster.get(CONFIG_MAPS, "a", second)


def test_a_gpu_fault_is_seen_on_the_node_until_it_is_healed(cluster: KubeCluster) -> None:
    (name,) = cluster.node_names()
    cluster.fail_gpu(name, 3)
    cluster.wait_for(NODES, name, lambda node: node["status"]["allocatable"]["nvidia.com/gpu"] == "7")
    cluster.heal_gpu(name, 3)
    cluster.wait_for(NODES, name, lambda node: node["status"]["allocatable"]["nvidia.com/gpu"] == "8")


def test_waiting_goes_on_after_watches_expire(cluster: KubeCluster) -> None:
    namespace = cluster.namespace()
    cluster.expire_watches()
    cluster.create(CONFIG_MAPS, {"metadata": {"name": "late", "namespace": namespace}})
    assert cluster.wait_for(CONFIG_MAPS, "late", namespace=namespace)


def test_a_wait_that_fails_names_the_object(cluster: KubeCluster) -> None:
    with pytest.raises(TimeoutError, match='configmaps "absent" did not fulfil the condition'):
        cluster.wait_for(CONFIG_MAPS, "absent", timeout_s=0.1, namespace="default")


@pytest.mark.parametrize("kind", [WIDGETS, GADGETS])
def test_definitions_of_objects_and_of_folders_are_served_from_the_start(cluster: KubeCluster, kind: Kind) -> None:
    namespace = cluster.namespace()
    cluster.create(kind, {"metadata": {"name": "a", "namespace": namespace}, "spec": {}})
    assert cluster.get(kind, "a", namespace)["kind"] == kind.name


def test_a_missing_file_of_definitions_is_named() -> None:
    with pytest.raises(UserError, match=r"the definitions in /absent\.yaml cannot be read"):
        KubeCluster(KubeClusterOptions(nodes="none", controllers=False, definitions=("/absent.yaml",)))


def test_the_next_writes_conflict_and_then_succeed(cluster: KubeCluster) -> None:
    namespace = cluster.namespace()
    cluster.refuse_requests(409, 1, verbs=("create",), resource="configmaps", namespace=namespace)
    body = {"metadata": {"name": "a", "namespace": namespace}}
    with pytest.raises(ConflictError):
        cluster.create(CONFIG_MAPS, body)
    assert cluster.create(CONFIG_MAPS, body)["metadata"]["name"] == "a"


def test_a_token_authenticates_its_service_account(cluster: KubeCluster) -> None:
    namespace = cluster.namespace()
    authority = cluster.kubeconfig_dict()["clusters"][0]["cluster"]["certificate-authority-data"]
    trusted = ssl.create_default_context(cadata=base64.b64decode(authority).decode())
    address = cluster.server.removeprefix("https://")
    with contextlib.closing(http.client.HTTPSConnection(address, context=trusted)) as connection:
        connection.request(
            "POST",
            "/apis/authentication.k8s.io/v1/selfsubjectreviews",
            body=b'{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}',
            headers={"Authorization": f"Bearer {cluster.token(namespace)}", "Content-Type": "application/json"},
        )
        user = json.load(connection.getresponse())["status"]["userInfo"]["username"]
    assert user == f"system:serviceaccount:{namespace}:default"


def test_a_failed_node_becomes_not_ready_until_it_is_healed_in_accelerated_time() -> None:
    with KubeCluster(KubeClusterOptions(nodes="1xp5.48xlarge", speed=120)) as cluster:
        (name,) = cluster.node_names()
        cluster.fail_node(name)
        cluster.wait_for(NODES, name, lambda node: _ready(node) == "Unknown")
        cluster.heal_node(name)
        cluster.wait_for(NODES, name, lambda node: _ready(node) == "True")


def _ready(node: dict[str, Any]) -> str:
    return str(next(one["status"] for one in node["status"]["conditions"] if one["type"] == "Ready"))
