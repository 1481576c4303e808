"""ValidatingAdmissionPolicy over whole writes: the words, the actions, parameters and failures."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from build.admission_objects import EVERYTHING, GROUP, binding, configure, policy, refusal
from build.planes import Operations, config_map
from shoal.embedded.apiserver.status import ApiError

_PATIENCE_S = 60
Obj = dict[str, Any]
BIG = "object.data.size != 'big'"
OTHERS = [{"name": "no-params", "expression": "!object.metadata.name.startsWith('limits')"}]


async def test_what_is_not_true_is_refused_with_the_expression(cluster: Operations) -> None:
    await configure(cluster, policy("p", BIG), binding("b", "p"))
    error = await refusal(cluster, config_map("a", size="big"))
    lead = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request"
    words = f"{lead}: failed expression: object.data.size != 'big'"
    assert error.message == f'configmaps "a" is forbidden: {words}'
    assert (error.code, error.reason) == (422, "Invalid")
    assert error.details == {"name": "a", "kind": "configmaps", "causes": [{"message": words}]}
    await cluster.create("configmaps", config_map("a", size="small"))


async def test_a_policy_that_nothing_binds_does_nothing(cluster: Operations) -> None:
    await configure(cluster, policy("p", "false"))
    assert not cluster.context.dynamic.concerns(cluster.call("create", "configmaps"), "CREATE")
    await cluster.create("configmaps", config_map("a"))


@pytest.mark.parametrize(
    ("validation", "code", "reason", "words"),
    [
        ({"message": " keep it small "}, 422, "Invalid", "keep it small"),
        ({"messageExpression": "'not ' + object.data.size", "message": "no"}, 422, "Invalid", "not big"),
        ({"messageExpression": "object.data.missing", "message": "fallback"}, 422, "Invalid", "fallback"),
        ({"messageExpression": "'two\\nlines'", "message": "fallback"}, 422, "Invalid", "fallback"),
        ({"message": "no", "reason": "Forbidden"}, 403, "Forbidden", "no"),
        ({"message": "no", "reason": "RequestEntityTooLarge"}, 413, "RequestEntityTooLarge", "no"),
    ],
)
async def test_a_validation_says_it_in_its_own_words(
    cluster: Operations, validation: Obj, code: int, reason: str, words: str
) -> None:
    await configure(cluster, policy("p", {"expression": BIG, **validation}), binding("b", "p"))
    error = await refusal(cluster, config_map("a", size="big"))
    assert (error.code, error.reason) == (code, reason)
    assert error.message.endswith(f"denied request: {words}")


async def test_an_expression_that_fails_refuses_unless_failures_are_ignored(cluster: Operations) -> None:
    await configure(cluster, policy("p", "object.data.size == 'x'"), binding("b", "p"))
    error = await refusal(cluster, config_map("a"))
    assert error.message.endswith(
        "denied request: expression 'object.data.size == 'x'' resulted in error: no such key: data"
    )
    await cluster.delete("validatingadmissionpolicies", "p", group=GROUP)
    await configure(cluster, policy("p", "object.data.size == 'x'", failurePolicy="Ignore"))
    await cluster.create("configmaps", config_map("a"))


async def test_a_warning_lets_the_write_through(cluster: Operations) -> None:
    await configure(cluster, policy("p", BIG), binding("b", "p", "Warn", "Audit"))
    warnings: list[str] = []
    await cluster.create("configmaps", config_map("a", size="big"), warnings=warnings)
    lead = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b'"
    assert warnings == [f"{lead}: failed expression: object.data.size != 'big'"]


async def test_variables_are_read_by_later_ones(cluster: Operations) -> None:
    variables = [
        {"name": "size", "expression": "object.data.size"},
        {"name": "isBig", "expression": "variables.size == 'big'"},
    ]
    await configure(cluster, policy("p", "!variables.isBig", variables=variables), binding("b", "p"))
    await cluster.create("configmaps", config_map("small", size="small"))
    await refusal(cluster, config_map("a", size="big"))
    words = (await refusal(cluster, config_map("none"))).message
    assert 'composited variable "isBig" fails to evaluate: composited variable "size" fails to evaluate' in words


async def test_conditions_keep_a_policy_from_looking(cluster: Operations) -> None:
    conditions = [{"name": "not-free", "expression": "object.metadata.name != 'free'"}]
    await configure(cluster, policy("p", "false", matchConditions=conditions), binding("b", "p"))
    await cluster.create("configmaps", config_map("free"))
    await refusal(cluster, config_map("other"))


async def test_parameters_come_from_the_named_object(cluster: Operations) -> None:
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    ref = {"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"}
    rule = policy("p", "object.data.size != params.data.forbidden", paramKind=kind, matchConditions=OTHERS)
    await configure(cluster, rule, binding("b", "p", paramRef=ref))
    words = (await refusal(cluster, config_map("a", size="big"))).message
    assert words.endswith(
        "denied request: failed to configure binding: "
        "no params found for policy binding with `Deny` parameterNotFoundAction"
    )
    with pytest.raises(ApiError, match="no params found"):
        await cluster.create("configmaps", config_map("limits", forbidden="big"))
    await cluster.delete("validatingadmissionpolicybindings", "b", group=GROUP)
    await cluster.create("configmaps", config_map("limits", forbidden="big"))
    await configure(cluster, binding("b", "p", paramRef=ref))
    await refusal(cluster, config_map("a", size="big"))
    await cluster.create("configmaps", config_map("a", size="small"))


async def test_every_selected_parameter_is_evaluated(cluster: Operations) -> None:
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    ref = {"selector": {"matchLabels": {"is": "limit"}}, "parameterNotFoundAction": "Allow"}
    await configure(
        cluster,
        policy("p", "object.data.size != params.data.forbidden", paramKind=kind, matchConditions=OTHERS),
    )
    for name, size in (("limits-1", "big"), ("limits-2", "huge")):
        limit = config_map(name, forbidden=size)
        limit["metadata"]["labels"] = {"is": "limit"}
        await cluster.create("configmaps", limit)
    await configure(cluster, binding("b", "p", paramRef=ref))
    for size in ("big", "huge"):
        await refusal(cluster, config_map("a", size=size))
    await cluster.create("configmaps", config_map("a", size="small"))


async def test_a_kind_of_parameters_that_is_not_served_fails_the_policy(cluster: Operations) -> None:
    kind = {"apiVersion": "rules.example.com/v1", "kind": "Limit"}
    ref = {"name": "x", "parameterNotFoundAction": "Deny"}
    await configure(cluster, policy("p", "true", paramKind=kind), binding("b", "p", paramRef=ref))
    assert (await refusal(cluster, config_map("a"))).message == (
        "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: "
        "failed to find resource referenced by paramKind: 'rules.example.com/v1, Kind=Limit'"
    )


async def test_the_namespace_and_the_requester_are_known(cluster: Operations) -> None:
    await configure(
        cluster,
        policy(
            "p",
            "namespaceObject.metadata.name == 'default' && request.namespace == 'default'",
            "request.userInfo.username == 'admin' && request.operation == 'CREATE'",
            "authorizer.group('').resource('pods').namespace('default').check('create').allowed()",
            "authorizer.requestResource.check('create').allowed()",
            "oldObject == null && request.kind.kind == 'ConfigMap'",
        ),
        binding("b", "p"),
    )
    await cluster.create("configmaps", config_map("a"))
    assert cluster.find("configmaps", "a") is not None


async def test_a_deletion_is_judged_by_what_goes(cluster: Operations) -> None:
    await cluster.create("configmaps", config_map("keep"))
    rules = [{**EVERYTHING, "operations": ["DELETE"]}]
    await configure(
        cluster,
        policy("p", "oldObject.metadata.name != 'keep'", matchConstraints={"resourceRules": rules}),
        binding("b", "p"),
    )
    with pytest.raises(ApiError, match="denied request"):
        await cluster.delete("configmaps", "keep")
    assert cluster.find("configmaps", "keep") is not None


async def test_a_binding_narrows_its_policy(cluster: Operations) -> None:
    narrowed = {"objectSelector": {"matchLabels": {"checked": "yes"}}}
    await configure(cluster, policy("p", "false"), binding("b", "p", matchResources=narrowed))
    await cluster.create("configmaps", config_map("a"))
    checked = config_map("checked")
    checked["metadata"]["labels"] = {"checked": "yes"}
    await refusal(cluster, checked)


async def test_excluded_and_other_names_are_left_alone(cluster: Operations) -> None:
    constraints = {
        "resourceRules": [EVERYTHING],
        "excludeResourceRules": [{**EVERYTHING, "resourceNames": ["excluded"]}],
    }
    await configure(cluster, policy("p", "false", matchConstraints=constraints), binding("b", "p"))
    await cluster.create("configmaps", config_map("excluded"))
    await refusal(cluster, config_map("other"))


async def test_an_annotation_that_cannot_be_made_refuses_the_write(cluster: Operations) -> None:
    annotations = [{"key": "size", "valueExpression": "object.data.size"}]
    await configure(cluster, policy("p", "true", auditAnnotations=annotations), binding("b", "p"))
    await cluster.create("configmaps", config_map("sized", size="big"))
    words = (await refusal(cluster, config_map("a"))).message
    assert words.endswith("denied request: expression 'object.data.size' resulted in error: no such key: data")


async def test_a_policy_is_noted_as_seen(cluster: Operations) -> None:
    home = cluster.resource("validatingadmissionpolicies", GROUP).home
    watch = cluster.state.watch(home, None, cluster.state.revision)
    await configure(cluster, policy("p", "true"))
    seen: list[Any] = []
    async with asyncio.timeout(_PATIENCE_S):
        while len(seen) < 2:
            seen += await watch.next_batch()
    watch.close()
    assert seen[-1].record.obj()["status"] == {"observedGeneration": 1, "typeChecking": {}}
