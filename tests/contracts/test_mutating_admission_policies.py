"""MutatingAdmissionPolicy: what expressions change in objects before they are stored."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from build.cluster_api import Api
from build.contract_objects import config_map, deployment, eventually, made, managers

Obj = dict[str, Any]
GROUP = "/apis/admissionregistration.k8s.io/v1"
BOTH = [
    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]},
    {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["deployments"]},
]
MARK = "Object{metadata: Object.metadata{annotations: {'in-force': 'yes'}}}"


def applied(expression: str) -> Obj:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def patched(expression: str) -> Obj:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def _policy(name: str, *mutations: Obj, **more: Any) -> Obj:
    spec = {
        "matchConstraints": {"resourceRules": BOTH},
        "reinvocationPolicy": "Never",
        "mutations": list(mutations),
        **more,
    }
    metadata = {"name": name}
    kind = "MutatingAdmissionPolicy"
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


@asynccontextmanager
async def mutated(api: Api, *mutations: Obj, **more: Any) -> AsyncIterator[str]:
    name = f"t-{uuid.uuid4().hex[:10]}"
    policy = _policy(name, applied(MARK), *mutations, **more)
    (await api.post(f"{GROUP}/mutatingadmissionpolicies", policy)).ok(201)
    selector = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": api.namespace}}}
    spec = {"policyName": name, "matchResources": selector}
    body = {**policy, "kind": "MutatingAdmissionPolicyBinding", "spec": spec}
    (await api.post(f"{GROUP}/mutatingadmissionpolicybindings", body)).ok(201)
    try:
        await eventually(
            lambda: api.post(api.core("configmaps"), config_map("probe", {"a": "1"}), dryRun="All"),
            lambda answer: answer.code != 201 or "annotations" in answer.body["metadata"],
        )
        yield name
    finally:
        await api.delete(f"{GROUP}/mutatingadmissionpolicybindings/{name}")
        await api.delete(f"{GROUP}/mutatingadmissionpolicies/{name}")
        # A policy that is deleted counts for a while.
        await eventually(
            lambda: api.post(api.core("configmaps"), config_map("probe", {"a": "1"}), dryRun="All"),
            lambda answer: answer.code == 201 and "annotations" not in answer.body["metadata"],
        )


async def test_an_apply_configuration_is_merged_into_the_object(api: Api) -> None:
    async with mutated(api, applied("Object{metadata: Object.metadata{labels: {'by': object.metadata.name}}}")):
        created = await made(api, "configmaps", config_map("c", {"a": "1"}, labels={"own": "1"}), fieldManager="alice")
        assert created["metadata"]["labels"] == {"own": "1", "by": "c"}
        assert created["data"] == {"a": "1"}
        assert managers(created)["alice", "Update"]["f:metadata"]["f:labels"] == {".": {}, "f:own": {}}


async def test_keyed_lists_are_merged_by_their_keys(api: Api) -> None:
    env = "[Object.spec.template.spec.containers.env{name: 'ADDED', value: '1'}]"
    inner = f"containers: [Object.spec.template.spec.containers{{name: 'main', env: {env}}}]"
    whole = (
        f"Object{{spec: Object.spec{{template: Object.spec.template{{spec: Object.spec.template.spec{{{inner}}}}}}}}}"
    )
    conditions = [{"name": "all", "expression": "true"}]
    rules = {"resourceRules": BOTH}
    mutation = applied(f"object.kind == 'Deployment' ? {whole} : Object{{}}")
    async with mutated(api, mutation, matchConditions=conditions, matchConstraints=rules):
        created = await made(api, "deployments", deployment("d"))
        (one,) = created["spec"]["template"]["spec"]["containers"]
        assert one["env"] == [{"name": "ADDED", "value": "1"}]
        assert one["image"] == "registry.example/main:1"


async def test_a_json_patch_is_made_by_an_expression(api: Api) -> None:
    operations = (
        "[JSONPatch{op: 'add', path: '/data/added', value: object.metadata.name}, "
        "JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('example.com/a'), value: '1'}]"
    )
    async with mutated(api, patched(operations)):
        created = await made(api, "configmaps", config_map("c", {"a": "1"}))
        assert created["data"] == {"a": "1", "added": "c"}
        assert created["metadata"]["annotations"] == {"in-force": "yes", "example.com/a": "1"}


async def test_a_later_mutation_sees_what_an_earlier_one_made(api: Api) -> None:
    second = applied("Object{metadata: Object.metadata{labels: {'seen': object.metadata.annotations['in-force']}}}")
    async with mutated(api, second):
        created = await made(api, "configmaps", config_map("c", {"a": "1"}))
        assert created["metadata"]["labels"] == {"seen": "yes"}


async def test_conditions_and_variables_choose(api: Api) -> None:
    variables = [{"name": "label", "expression": "object.metadata.name + '-x'"}]
    conditions = [{"name": "not-free", "expression": "!object.metadata.name.startsWith('free')"}]
    mutation = applied("Object{metadata: Object.metadata{labels: {'v': variables.label}}}")
    async with mutated(api, mutation, variables=variables, matchConditions=conditions):
        assert (await made(api, "configmaps", config_map("c")))["metadata"]["labels"] == {"v": "c-x"}
        assert "labels" not in (await made(api, "configmaps", config_map("free")))["metadata"]


async def test_what_cannot_be_worked_out_is_refused_or_passed_over(api: Api) -> None:
    mutation = applied("Object{metadata: Object.metadata{labels: {'v': object.data.none}}}")
    async with mutated(api, mutation):
        answer = await api.post(api.core("configmaps"), config_map("c", {"a": "1"}))
        assert answer.code in (403, 422), answer.raw
        assert "resulted in error: no such key: none" in answer.body["message"]
    async with mutated(api, mutation, failurePolicy="Ignore"):
        (await api.post(api.core("configmaps"), config_map("c", {"a": "1"}))).ok(201)


@pytest.mark.parametrize(
    ("mutation", "says"),
    [
        (applied("Object{"), "spec.mutations[0].applyConfiguration.expression: Invalid value: "),
        (patched("'text'"), "spec.mutations[0].jsonPatch.expression: Invalid value: "),
        ({"patchType": "Other"}, "spec.mutations[0].patchType: Unsupported value: "),
        ({"patchType": "ApplyConfiguration"}, "spec.mutations[0].applyConfiguration: Required value"),
    ],
)
async def test_a_policy_that_makes_no_sense_is_refused(api: Api, mutation: Obj, says: str) -> None:
    name = f"t-{uuid.uuid4().hex[:10]}"
    answer = await api.post(f"{GROUP}/mutatingadmissionpolicies", _policy(name, mutation))
    if answer.code == 201:
        await api.delete(f"{GROUP}/mutatingadmissionpolicies/{name}")
    assert says in answer.refused(422, "Invalid")
