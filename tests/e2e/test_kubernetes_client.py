"""The official Python client: typed calls, watches that go on from a version, the dynamic client, custom objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import kubernetes
import pytest

from build.cluster_server import ServerProcess
from build.kubectl_runs import PATIENCE_S
from build.living_cluster import until

Obj = dict[str, Any]
# The types that the client declares are not those it takes: dictionaries do for its models.
official: Any = kubernetes
client = official.client


@pytest.fixture(scope="module")
def api(server: ServerProcess) -> Iterator[Any]:
    configuration = client.Configuration()
    official.config.load_kube_config(str(server.kubeconfig), client_configuration=configuration)
    with client.ApiClient(configuration) as opened:
        yield opened


@pytest.fixture
def namespace(fresh_namespaces: Iterator[str]) -> str:
    return next(fresh_namespaces)


def pod(name: str, **labels: str) -> Obj:
    spec = {"containers": [{"name": "main", "image": "cuda:12"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


def test_pods_are_created_listed_patched_replaced_and_deleted(api: Any, namespace: str) -> None:
    core = client.CoreV1Api(api)
    made = core.create_namespaced_pod(namespace, pod("a", app="x"))
    assert (made.metadata.generation, made.status.phase) == (1, "Pending")
    listed = core.list_namespaced_pod(namespace, label_selector="app=x")
    assert [one.metadata.name for one in listed.items] == ["a"]
    patched = core.patch_namespaced_pod("a", namespace, {"metadata": {"labels": {"app": None, "tier": "y"}}})
    assert patched.metadata.labels == {"tier": "y"}
    patched.spec.containers[0].image = "cuda:13"
    replaced = core.replace_namespaced_pod("a", namespace, patched)
    assert replaced.spec.containers[0].image == "cuda:13"
    with pytest.raises(client.exceptions.ApiException) as stale:
        core.replace_namespaced_pod("a", namespace, patched)
    assert (stale.value.status, stale.value.reason) == (409, "Conflict")
    core.delete_namespaced_pod("a", namespace)
    with pytest.raises(client.exceptions.ApiException) as gone:
        core.read_namespaced_pod("a", namespace)
    assert gone.value.status == 404


def test_a_watch_goes_on_from_the_version_of_a_list(api: Any, namespace: str) -> None:
    core = client.CoreV1Api(api)
    core.create_namespaced_pod(namespace, pod("before"))
    version = core.list_namespaced_pod(namespace).metadata.resource_version
    core.create_namespaced_pod(namespace, pod("a"))
    core.patch_namespaced_pod("a", namespace, {"metadata": {"labels": {"x": "y"}}})
    core.delete_namespaced_pod("a", namespace)
    seen = []
    stream = official.watch.Watch()
    for event in stream.stream(
        core.list_namespaced_pod, namespace, resource_version=version, timeout_seconds=PATIENCE_S
    ):
        seen.append((event["type"], event["object"].metadata.name))
        if event["type"] == "DELETED":
            stream.stop()
    assert seen == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


def test_a_watch_without_a_version_starts_with_what_is_there(api: Any, namespace: str) -> None:
    core = client.CoreV1Api(api)
    for name in ("a", "b"):
        core.create_namespaced_pod(namespace, pod(name))
    events = official.watch.Watch().stream(core.list_namespaced_pod, namespace, timeout_seconds=1)
    assert sorted((event["type"], event["object"].metadata.name) for event in events) == [
        ("ADDED", "a"),
        ("ADDED", "b"),
    ]


def test_a_binding_places_a_pod_and_an_eviction_takes_it_away(api: Any, namespace: str) -> None:
    core = client.CoreV1Api(api)
    core.create_namespaced_pod(namespace, pod("a"))
    target = client.V1ObjectReference(kind="Node", name="some-node")
    binding = client.V1Binding(metadata=client.V1ObjectMeta(name="a"), target=target)
    # The client expects a Binding in the answer, and Kubernetes answers with a Status.
    core.create_namespaced_pod_binding("a", namespace, binding, _preload_content=False)
    bound = core.read_namespaced_pod("a", namespace)
    assert (bound.spec.node_name, bound.status.conditions[0].type) == ("some-node", "PodScheduled")
    eviction = client.V1Eviction(
        metadata=client.V1ObjectMeta(name="a"), delete_options=client.V1DeleteOptions(grace_period_seconds=0)
    )
    core.create_namespaced_pod_eviction("a", namespace, eviction)
    assert core.list_namespaced_pod(namespace).items == []


def test_custom_objects_are_written_watched_and_scaled(api: Any, namespace: str) -> None:
    plural, group = "fleets", f"{namespace}.official.dev"
    definitions = client.ApiextensionsV1Api(api)
    definitions.create_custom_resource_definition(fleet_definition(group))
    objects = client.CustomObjectsApi(api)
    where = (group, "v1", namespace, plural)
    until(lambda: is_served(objects, where))
    body = {"apiVersion": f"{group}/v1", "kind": "Fleet", "metadata": {"name": "a"}, "spec": {"replicas": 1}}
    made = objects.create_namespaced_custom_object(*where, body)
    objects.patch_namespaced_custom_object(*where, "a", {"spec": {"replicas": 2}})
    events = official.watch.Watch().stream(
        objects.list_namespaced_custom_object,
        *where,
        resource_version=made["metadata"]["resourceVersion"],
        timeout_seconds=1,
    )
    assert [(event["type"], event["object"]["spec"]["replicas"]) for event in events] == [("MODIFIED", 2)]
    objects.delete_namespaced_custom_object(*where, "a")
    assert objects.list_namespaced_custom_object(*where)["items"] == []
    definitions.delete_custom_resource_definition(f"{plural}.{group}")


def is_served(objects: Any, where: tuple[str, ...]) -> bool:
    """A moment after its definition was created."""
    try:
        objects.list_namespaced_custom_object(*where)
    except client.exceptions.ApiException as error:
        if error.status != 404:
            raise
        return False
    return True


def fleet_definition(group: str) -> Obj:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "fleets", "singular": "fleet", "kind": "Fleet"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    metadata = {"name": f"fleets.{group}"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }


def test_the_dynamic_client_finds_kinds_by_discovery_and_applies(api: Any, namespace: str) -> None:
    finder = official.dynamic.DynamicClient(api)
    deployments = finder.resources.get(api_version="apps/v1", kind="Deployment")
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    applied = deployments.server_side_apply(body, name="web", namespace=namespace, field_manager="tests")
    assert applied.spec.replicas == 1
    assert [one.metadata.name for one in deployments.get(namespace=namespace).items] == ["web"]
    deployments.scale.patch(
        {"spec": {"replicas": 3}}, name="web", namespace=namespace, content_type="application/merge-patch+json"
    )
    assert deployments.get(name="web", namespace=namespace).spec.replicas == 3
    deployments.delete(name="web", namespace=namespace)


def test_exec_speaks_over_a_web_socket(api: Any, namespace: str) -> None:
    core = client.CoreV1Api(api)
    core.create_namespaced_pod(namespace, {**pod("a"), "spec": {**pod("a")["spec"], "nodeName": "some-node"}})
    told = official.stream.stream(
        core.connect_get_namespaced_pod_exec,
        "a",
        namespace,
        command=["env"],
        stdout=True,
        stderr=True,
        stdin=False,
        tty=False,
    )
    assert "HOSTNAME=a" in told.splitlines()
    core.delete_namespaced_pod("a", namespace, grace_period_seconds=0)
