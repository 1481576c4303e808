"""ValidatingAdmissionPolicy: what is refused, warned of or passed over, and with which words."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from build.cluster_api import Answer, Api
from build.contract_objects import config_map, eventually, made

Obj = dict[str, Any]
GROUP = "/apis/admissionregistration.k8s.io/v1"
CONFIG_MAPS = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["configmaps"],
}
PROBE = {"expression": "object.metadata.name != 'probe'", "message": "it is in force"}


class Bound:
    """A policy and its binding, by their one name."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def says(self) -> str:
        return f"ValidatingAdmissionPolicy '{self.name}' with binding '{self.name}' denied request: "


def _policy(name: str, *validations: Obj, **more: Any) -> Obj:
    spec = {
        "matchConstraints": {"resourceRules": [CONFIG_MAPS]},
        "validations": [PROBE, *validations],
        **more,
    }
    metadata = {"name": name}
    kind = "ValidatingAdmissionPolicy"
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


@asynccontextmanager
async def bound(api: Api, *validations: Obj, binding: Obj | None = None, **more: Any) -> AsyncIterator[Bound]:
    """In force for the config maps of the test's namespace until the end of the block."""
    name = f"t-{uuid.uuid4().hex[:10]}"
    policy = _policy(name, *validations, **more)
    (await api.post(f"{GROUP}/validatingadmissionpolicies", policy)).ok(201)
    spec = {
        "policyName": name,
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": api.namespace}}},
        **(binding or {}),
    }
    body = {**policy, "kind": "ValidatingAdmissionPolicyBinding", "spec": spec}
    (await api.post(f"{GROUP}/validatingadmissionpolicybindings", body)).ok(201)
    try:
        await _until_in_force(api, name)
        yield Bound(name)
    finally:
        await api.delete(f"{GROUP}/validatingadmissionpolicybindings/{name}")
        await api.delete(f"{GROUP}/validatingadmissionpolicies/{name}")
        await _until_in_force(api, name, is_in_force=False)


async def _until_in_force(api: Api, name: str, *, is_in_force: bool = True) -> None:
    """API servers learn of policies a little later, and one that is deleted counts for a while."""
    await eventually(
        lambda: api.post(api.core("configmaps"), config_map("probe"), dryRun="All"),
        lambda answer: (name in f"{answer.raw.decode()} {answer.warnings}") is is_in_force,
    )


async def _create(api: Api, data: Obj | None = None, name: str = "c", **query: Any) -> Answer:
    return await api.post(api.core("configmaps"), config_map(name, data), **query)


async def test_a_broken_expression_refuses_the_request(api: Api) -> None:
    async with bound(api, {"expression": "has(object.data)"}) as policy:
        answer = await _create(api)
        message = answer.refused(422, "Invalid")
        assert message == f'configmaps "c" is forbidden: {policy.says}failed expression: has(object.data)'
        assert answer.body["details"]["causes"] == [{"message": f"{policy.says}failed expression: has(object.data)"}]
        (await _create(api, {"a": "1"})).ok(201)


@pytest.mark.parametrize(
    ("validation", "says"),
    [
        ({"expression": "false", "message": "never"}, "never"),
        ({"expression": "false", "messageExpression": "'not ' + object.metadata.name", "message": "x"}, "not c"),
        ({"expression": "false", "messageExpression": "string(1 / 0)", "message": "fallback"}, "fallback"),
    ],
)
async def test_a_refusal_says_what_the_policy_says(api: Api, validation: Obj, says: str) -> None:
    async with bound(api, validation) as policy:
        assert (await _create(api)).refused(422, "Invalid").endswith(f"{policy.says}{says}")


@pytest.mark.parametrize(("reason", "code"), [("Forbidden", 403), ("Invalid", 422), ("RequestEntityTooLarge", 413)])
async def test_the_reason_decides_the_code(api: Api, reason: str, code: int) -> None:
    async with bound(api, {"expression": "false", "reason": reason}):
        (await _create(api)).refused(code, reason)


async def test_an_expression_sees_the_object_before_and_after_and_the_request(api: Api) -> None:
    unchanged = "oldObject == null || object.data.a == oldObject.data.a || request.dryRun"
    seen = (
        "request.operation in ['CREATE', 'UPDATE'] && request.resource.resource == 'configmaps' && "
        "request.namespace == namespaceObject.metadata.name && has(request.userInfo.username)"
    )
    async with bound(api, {"expression": unchanged, "message": "a is fixed"}, {"expression": seen}) as policy:
        (await _create(api, {"a": "1"})).ok(201)
        message = (await api.patch(api.core("configmaps", "c"), {"data": {"a": "2"}})).refused(422, "Invalid")
        assert message == f'configmaps "c" is forbidden: {policy.says}a is fixed'
        (await api.patch(api.core("configmaps", "c"), {"data": {"a": "2"}}, dryRun="All")).ok()
        (await api.patch(api.core("configmaps", "c"), {"data": {"b": "2"}})).ok()


async def test_variables_are_shared_by_expressions(api: Api) -> None:
    variables = [
        {"name": "keys", "expression": "has(object.data) ? object.data.map(k, k) : []"},
        {"name": "number", "expression": "variables.keys.size()"},
    ]
    rule = {"expression": "variables.number < 2", "messageExpression": "string(variables.number) + ' are too many'"}
    async with bound(api, rule, variables=variables):
        (await _create(api, {"a": "1"})).ok(201)
        assert (await _create(api, {"a": "1", "b": "2"}, "d")).refused(422).endswith("2 are too many")


async def test_a_warning_lets_the_request_through(api: Api) -> None:
    rule = {"expression": "has(object.data)", "message": "better with data"}
    async with bound(api, rule, binding={"validationActions": ["Warn", "Audit"]}) as policy:
        answer = await _create(api)
        answer.ok(201)
        said = f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' with binding '{policy.name}'"
        assert answer.warnings == [f'299 - "{said}: better with data"']


async def test_what_cannot_be_worked_out_is_refused_or_passed_over(api: Api) -> None:
    rule = {"expression": "object.data.a == '1'"}
    async with bound(api, rule) as policy:
        message = (await _create(api)).refused(422, "Invalid")
        assert f"{policy.says}expression 'object.data.a == '1'' resulted in error: no such key: data" in message
    async with bound(api, rule, failurePolicy="Ignore"):
        (await _create(api)).ok(201)


async def test_requests_are_chosen_by_conditions_and_selectors(api: Api) -> None:
    conditions = [{"name": "marked", "expression": "object.metadata.name in ['c', 'probe']"}]
    async with bound(api, {"expression": "false"}, matchConditions=conditions):
        (await _create(api, name="other")).ok(201)
        (await _create(api)).refused(422)
    rule = {"resourceRules": [CONFIG_MAPS], "excludeResourceRules": [{**CONFIG_MAPS, "resourceNames": ["free"]}]}
    async with bound(api, {"expression": "false"}, matchConstraints=rule):
        (await _create(api, name="free")).ok(201)
        (await _create(api, name="bound")).refused(422)


async def test_parameters_come_from_another_object(api: Api) -> None:
    limit = await made(api, "configmaps", config_map("limit", {"most": "1"}))
    rule = {"expression": "size(object.data) <= int(params.data.most)", "message": "too many"}
    reference = {"name": "limit", "namespace": api.namespace, "parameterNotFoundAction": "Deny"}
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    async with bound(api, rule, paramKind=kind, binding={"paramRef": reference}):
        # The server learns of the parameters a little later than of the policy.
        await eventually(lambda: _create(api, {"a": "1"}, dryRun="All"), lambda answer: answer.code == 201)
        (await _create(api, {"a": "1"})).ok(201)
        assert (await _create(api, {"a": "1", "b": "2"}, "d")).refused(422).endswith("too many")
        limit["data"]["most"] = "5"
        (await api.patch(api.core("configmaps", "limit"), {"data": {"most": "5"}})).ok()
        await eventually(
            lambda: _create(api, {"a": "1", "b": "2"}, "d", dryRun="All"), lambda answer: answer.code == 201
        )


async def test_missing_parameters_refuse_or_let_through(api: Api) -> None:
    rule = {"expression": "params == null || size(object.data) <= int(params.data.most)"}
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    reference = {"name": "none", "namespace": api.namespace, "parameterNotFoundAction": "Deny"}
    async with bound(api, rule, paramKind=kind, binding={"paramRef": reference}):
        assert "no params found for policy binding with `Deny` parameterNotFoundAction" in (await _create(api)).refused(
            422, "Invalid"
        )


async def test_a_policy_without_a_binding_does_nothing(api: Api) -> None:
    name = f"t-{uuid.uuid4().hex[:10]}"
    (await api.post(f"{GROUP}/validatingadmissionpolicies", _policy(name, {"expression": "false"}))).ok(201)
    (await _create(api)).ok(201)
    (await api.delete(f"{GROUP}/validatingadmissionpolicies/{name}")).ok()


@pytest.mark.parametrize(
    ("validation", "more", "says"),
    [
        ({"expression": "object.x +"}, {}, "spec.validations[1].expression: Invalid value: "),
        ({"expression": "'text'"}, {}, "must evaluate to bool"),
        ({"expression": "unheard(object)"}, {}, "undeclared reference to 'unheard'"),
        ({"expression": ""}, {}, "spec.validations[1].expression: Required value: expression is not specified"),
        ({"expression": "true", "messageExpression": "1"}, {}, "must evaluate to string"),
        ({"expression": "true", "reason": "Whatever"}, {}, "spec.validations[1].reason: Unsupported value: "),
        ({"expression": "params.a == 1"}, {}, "undeclared reference to 'params'"),
        ({"expression": "true"}, {"failurePolicy": "Maybe"}, 'spec.failurePolicy: Unsupported value: "Maybe"'),
        (
            {"expression": "true"},
            {"matchConstraints": {"resourceRules": []}},
            "spec.matchConstraints.resourceRules: Required",
        ),
        ({"expression": "true"}, {"variables": [{"name": "a", "expression": "variables.b"}]}, "undefined field 'b'"),
    ],
)
async def test_a_policy_that_makes_no_sense_is_refused(api: Api, validation: Obj, more: Obj, says: str) -> None:
    name = f"t-{uuid.uuid4().hex[:10]}"
    answer = await api.post(f"{GROUP}/validatingadmissionpolicies", _policy(name, validation, **more))
    if answer.code == 201:
        await api.delete(f"{GROUP}/validatingadmissionpolicies/{name}")
    message = answer.refused(422, "Invalid")
    assert message.startswith(f'ValidatingAdmissionPolicy.admissionregistration.k8s.io "{name}" is invalid: ')
    assert says in message


async def test_a_reason_that_no_refusal_has_is_refused(api: Api) -> None:
    policy = _policy(f"t-{uuid.uuid4().hex[:10]}", {"expression": "true", "reason": "Unauthorized"})
    message = (await api.post(f"{GROUP}/validatingadmissionpolicies", policy)).refused(422, "Invalid")
    assert message.endswith(
        'spec.validations[1].reason: Unsupported value: "Unauthorized": supported values: "Forbidden", "Invalid", '
        '"RequestEntityTooLarge"'
    )
