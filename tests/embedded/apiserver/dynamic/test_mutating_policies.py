"""MutatingAdmissionPolicy over whole writes: both kinds of mutations, order, rounds and failures."""

from __future__ import annotations

from typing import Any

import pytest

from build.admission_objects import (
    GROUP,
    configure,
    json_patched,
    laid_over,
    mutating,
    mutation,
    mutation_binding,
    webhook,
)
from build.hook_server import hook_server, patched
from build.planes import Operations, config_map
from shoal.embedded.apiserver.status import ApiError

Obj = dict[str, Any]
LABEL = "Object{metadata: Object.metadata{labels: {'by': 'policy'}}}"


async def bound(cluster: Operations, *policies: Obj) -> None:
    for one in policies:
        name = one["metadata"]["name"]
        await configure(cluster, one, mutation_binding(f"{name}-binding", name))


async def created(cluster: Operations, obj: Obj) -> Obj:
    return await cluster.create("configmaps", obj)


async def test_an_object_is_laid_over_the_written_one(cluster: Operations) -> None:
    await bound(cluster, mutation("p", laid_over(LABEL)))
    written = config_map("a", k="v")
    written["metadata"]["labels"] = {"own": "1"}
    found = await created(cluster, written)
    assert found["metadata"]["labels"] == {"own": "1", "by": "policy"}
    assert found["data"] == {"k": "v"}


async def test_items_of_keyed_lists_are_merged(cluster: Operations) -> None:
    sidecar = "Object.spec.template.spec.containers{name: 'side', image: 'side:1'}"
    template = f"Object.spec.template{{spec: Object.spec.template.spec{{containers: [{sidecar}]}}}}"
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}
    one = mutation("p", laid_over(f"Object{{spec: Object.spec{{template: {template}}}}}"))
    one["spec"]["matchConstraints"] = {"resourceRules": [rule]}
    await bound(cluster, one)
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "main:1"}]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": pod},
    }
    found = await cluster.create("deployments", deployment, "apps")
    containers = found["spec"]["template"]["spec"]["containers"]
    assert [one["name"] for one in containers] == ["main", "side"]
    assert containers[1]["imagePullPolicy"] == "IfNotPresent", "defaults are filled in after a mutation"


async def test_a_json_patch_is_applied(cluster: Operations) -> None:
    path = "'/metadata/annotations/' + jsonpatch.escapeKey('a/b')"
    operation = f"JSONPatch{{op: 'add', path: {path}, value: request.operation}}"
    await bound(cluster, mutation("p", json_patched(f"[{operation}]")))
    written = config_map("a")
    written["metadata"]["annotations"] = {"own": "1"}
    assert (await created(cluster, written))["metadata"]["annotations"] == {"own": "1", "a/b": "CREATE"}


async def test_a_test_that_does_not_hold_leaves_the_object(cluster: Operations) -> None:
    operations_ = (
        "[JSONPatch{op: 'test', path: '/data/k', value: 'x'}, JSONPatch{op: 'replace', path: '/data/k', value: 'y'}]"
    )
    await bound(cluster, mutation("p", json_patched(operations_)))
    assert (await created(cluster, config_map("a", k="v")))["data"] == {"k": "v"}
    assert (await created(cluster, config_map("b", k="x")))["data"] == {"k": "y"}


async def test_policies_see_what_those_before_them_did(cluster: Operations) -> None:
    first = json_patched("[JSONPatch{op: 'add', path: '/data/first', value: '1'}]")
    second = json_patched("[JSONPatch{op: 'add', path: '/data/second', value: object.data.first + '2'}]")
    await bound(cluster, mutation("b", second), mutation("a", first))
    assert (await created(cluster, config_map("x", k="v")))["data"] == {"k": "v", "first": "1", "second": "12"}


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (laid_over("Object{data: {'k': object.spec.nothing}}"), "resulted in error: no such key: spec"),
        (
            laid_over("Object{spec: Object.spec{replicas: 1}}"),
            "error applying patch: failed to convert patch object to typed object: .spec: field not declared in schema",
        ),
        (
            json_patched("[JSONPatch{op: 'remove', path: '/data/gone'}]"),
            "JSONPath: error in remove for path: '/data/gone'",
        ),
    ],
)
async def test_a_mutation_that_fails_refuses_the_write(cluster: Operations, one: Obj, words: str) -> None:
    await bound(cluster, mutation("p", one))
    with pytest.raises(ApiError) as found:
        await created(cluster, config_map("a", k="v"))
    error = found.value
    assert (error.code, error.reason) == (403, "Invalid")
    assert error.message.startswith("policy 'p' with binding 'p-binding' denied request: ")
    assert words in error.message
    await cluster.delete("mutatingadmissionpolicies", "p", group=GROUP)
    await configure(cluster, mutation("p", one, failurePolicy="Ignore"))
    await created(cluster, config_map("a", k="v"))


async def test_what_would_be_replaced_whole_may_not_be_laid_over(cluster: Operations) -> None:
    one = mutation("p", laid_over("Object{spec: Object.spec{accessModes: ['ReadOnlyMany']}}"))
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["persistentvolumeclaims"]}
    one["spec"]["matchConstraints"] = {"resourceRules": [rule]}
    await bound(cluster, one)
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    with pytest.raises(ApiError, match=r"may not mutate atomic arrays, maps or structs: \.spec\.accessModes"):
        await cluster.create("persistentvolumeclaims", claim)


@pytest.mark.parametrize(("wanted", "times"), [("IfNeeded", "2"), ("Never", "1")])
async def test_a_policy_that_wants_it_is_asked_again_after_a_change(
    cluster: Operations, wanted: str, times: str
) -> None:
    count = "string(int(has(object.data.n) ? object.data.n : '0') + 1)"
    one = mutation("p", laid_over(f"Object{{data: {{'n': {count}}}}}"), reinvocationPolicy=wanted)
    async with hook_server() as server:
        server.answers["/label"] = patched({"op": "add", "path": "/metadata/labels", "value": {"a": "b"}})
        await bound(cluster, one)
        assert (await created(cluster, config_map("alone", k="v")))["data"]["n"] == times
        await cluster.create("mutatingwebhookconfigurations", mutating("m", webhook(server, "/label")), GROUP)
        assert (await created(cluster, config_map("both", k="v")))["data"]["n"] == times


async def test_updates_are_changed_as_well(cluster: Operations) -> None:
    await created(cluster, config_map("a"))
    await bound(cluster, mutation("p", laid_over(LABEL)))
    after = config_map("a", k="v")
    after["metadata"]["namespace"] = "default"
    assert (await cluster.update("configmaps", after))["metadata"]["labels"] == {"by": "policy"}
