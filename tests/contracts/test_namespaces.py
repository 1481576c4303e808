"""Namespaces: what they are given, what they hold when they end, and how they are finished."""

from __future__ import annotations

from build.api_objects import HELD, configmap, let_go, make_configmap
from build.cluster_api import Api


def namespace_path(api: Api, *rest: str) -> str:
    return "/".join((f"/api/v1/namespaces/{api.namespace}", *rest))


async def test_a_namespace_is_given_its_name_as_a_label_a_phase_and_a_finalizer(api: Api) -> None:
    found = (await api.get(namespace_path(api))).ok()
    assert found["metadata"]["labels"] == {"kubernetes.io/metadata.name": api.namespace}
    assert found["spec"] == {"finalizers": ["kubernetes"]}
    assert found["status"] == {"phase": "Active"}


async def test_the_label_of_the_name_cannot_be_taken_away(api: Api) -> None:
    changed = await api.patch(namespace_path(api), {"metadata": {"labels": {"kubernetes.io/metadata.name": None}}})
    assert changed.ok()["metadata"]["labels"] == {"kubernetes.io/metadata.name": api.namespace}


async def test_the_name_of_a_namespace_is_a_label(api: Api) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a.b"}}
    message = (await api.post("/api/v1/namespaces", body)).refused(422, "Invalid")
    assert message.startswith('Namespace "a.b" is invalid: metadata.name: Invalid value: "a.b": must not contain dots')


async def test_nothing_new_is_made_in_a_namespace_that_ends(api: Api) -> None:
    await make_configmap(api, "held", finalizers=[HELD])
    going = (await api.delete(namespace_path(api))).ok(200)
    assert going["kind"] == "Namespace"
    assert going["status"]["phase"] == "Terminating"
    assert going["metadata"]["deletionTimestamp"]
    answer = await api.post(api.core("configmaps"), configmap("new"))
    assert answer.refused(403, "Forbidden") == (
        f'configmaps "new" is forbidden: unable to create new content in namespace {api.namespace} '
        "because it is being terminated"
    )
    (cause,) = answer.body["details"]["causes"]
    assert cause == {
        "reason": "NamespaceTerminating",
        "message": f"namespace {api.namespace} is being terminated",
        "field": "metadata.namespace",
    }
    (await api.patch(api.core("configmaps", "held"), {"metadata": {"labels": {"still": "1"}}})).ok()
    await let_go(api, api.core("configmaps", "held"))


async def test_the_finalizers_of_a_namespace_have_a_door_of_their_own(api: Api) -> None:
    found = (await api.get(namespace_path(api))).ok()
    ignored = (await api.put(namespace_path(api), {**found, "spec": {"finalizers": []}})).ok()
    assert ignored["spec"] == {"finalizers": ["kubernetes"]}
    with_more = {**ignored, "spec": {"finalizers": ["kubernetes", "example.com/mine"]}}
    more = (await api.put(namespace_path(api, "finalize"), with_more)).ok(200)
    assert more["spec"]["finalizers"] == ["kubernetes", "example.com/mine"]
    back = (await api.put(namespace_path(api, "finalize"), {**more, "spec": {"finalizers": ["kubernetes"]}})).ok(200)
    assert back["spec"]["finalizers"] == ["kubernetes"]


async def test_the_namespaces_of_the_system_cannot_be_deleted(api: Api) -> None:
    for name in ("default", "kube-system", "kube-public"):
        answer = await api.delete(f"/api/v1/namespaces/{name}", dryRun="All")
        words = f'namespaces "{name}" is forbidden: this namespace may not be deleted'
        assert answer.refused(403, "Forbidden") == words


async def test_namespaces_cannot_be_deleted_all_at_once(api: Api) -> None:
    (await api.delete("/api/v1/namespaces", labelSelector="no-such-label")).refused(405, "MethodNotAllowed")


async def test_a_cluster_wide_object_has_no_namespace(api: Api) -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": api.namespace}}
    role["metadata"] = {"name": api.namespace, "namespace": "default"}
    answer = await api.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", {**role, "rules": []}, dryRun="All")
    assert "namespace" not in answer.ok(201)["metadata"]
