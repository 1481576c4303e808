from __future__ import annotations

import copy
from typing import Any

import pytest

from build.kind_objects import complaints, created
from shoal.embedded.apiserver.kinds.table import STRATEGIES

Obj = dict[str, Any]
GROUP = "admissionregistration.k8s.io"
RULE: Obj = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}


def hook(**fields: Any) -> Obj:
    whole = {
        "name": "w.example.com",
        "clientConfig": {"url": "https://127.0.0.1:9/x"},
        "rules": [copy.deepcopy(RULE)],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **fields,
    }
    return {"metadata": {"name": "w"}, "webhooks": [whole]}


def test_a_webhook_says_all_that_a_real_one_says() -> None:
    (made,) = created(GROUP, "mutatingwebhookconfigurations", hook())["webhooks"]
    said = {key: made[key] for key in ("failurePolicy", "matchPolicy", "timeoutSeconds", "reinvocationPolicy")}
    assert said == {
        "failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10, "reinvocationPolicy": "Never",
    }  # fmt: skip
    assert made["namespaceSelector"] == made["objectSelector"] == {}
    assert made["rules"][0]["scope"] == "*"
    (other,) = created(GROUP, "validatingwebhookconfigurations", hook())["webhooks"]
    assert "reinvocationPolicy" not in other


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": "short.name"},
         ('webhooks[0].name: Invalid value: "short.name": should be a domain with at least three segments separated by '
         "dots")),
        ({"clientConfig": {}}, "webhooks[0].clientConfig: Required value: exactly one of url or service is required"),
        ({"clientConfig": {"url": "http://a/b"}},
         ("webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired "
         "format: https://host[/path]")),
        ({"sideEffects": None}, "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun"),
        ({"sideEffects": "Some"},
         'webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"'),
        ({"timeoutSeconds": 31},
         "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds"),
        ({"admissionReviewVersions": []},
         "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1"),
        ({"rules": [RULE | {"operations": ["*", "CREATE"]}]},
         ('webhooks[0].rules[0].operations: Invalid value: ["*","CREATE"]: if \'*\' is present, must not specify other '
         "operations")),
        ({"rules": [RULE | {"resources": ["pods/*", "pods/exec"]}]},
         ('webhooks[0].rules[0].resources[1]: Invalid value: "pods/exec": if \'pods/*\' is present, must not specify '
         "pods/exec")),
        ({"matchConditions": [{"name": "a", "expression": "'text'"}]},
         "webhooks[0].matchConditions[0].expression: Invalid value: \"'text'\": must evaluate to bool"),
    ],
)  # fmt: skip
def test_webhooks_are_refused_in_the_words_clients_know(fields: Obj, said: str) -> None:
    assert said in complaints(GROUP, "validatingwebhookconfigurations", hook(**fields))


def policy(**spec: Any) -> Obj:
    whole = {
        "matchConstraints": {"resourceRules": [copy.deepcopy(RULE)]},
        "validations": [{"expression": "object.spec.replicas <= 5"}],
        **spec,
    }
    return {"metadata": {"name": "p.example.com"}, "spec": whole}


def validating(**spec: Any) -> list[str]:
    return complaints(GROUP, "validatingadmissionpolicies", policy(**spec))


def test_a_policy_may_use_its_variables_and_parameters() -> None:
    spec: Obj = {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "variables": [{"name": "most", "expression": "int(params.data.most)"}],
        "validations": [{"expression": "object.spec.replicas <= variables.most"}],
    }
    assert validating(**spec) == []
    del spec["paramKind"]
    (text,) = validating(**spec)
    assert text.startswith("spec.variables[0].expression: Invalid value: ")
    assert "undeclared reference to 'params'" in text


def test_what_does_not_compile_is_refused_when_it_is_written() -> None:
    (text,) = validating(validations=[{"expression": "object.spec.replicas <= nobody"}])
    assert text.startswith(
        'spec.validations[0].expression: Invalid value: "object.spec.replicas <= nobody": compilation'
    )
    assert validating(validations=[{"expression": "1 + 1"}]) == [
        'spec.validations[0].expression: Invalid value: "1 + 1": must evaluate to bool'
    ]
    asking = "authorizer.group('').resource('pods').check('get').allowed() ? 'a' : 'b'"
    (text,) = validating(validations=[{"expression": "true", "messageExpression": asking}])
    assert "undeclared reference to 'authorizer'" in text


def test_a_policy_has_something_to_say() -> None:
    either = "validations or auditAnnotations must contain at least one item"
    assert validating(validations=[]) == [
        f"spec.validations: Required value: {either}",
        f"spec.auditAnnotations: Required value: {either}",
    ]
    assert validating(matchConstraints=None) == ["spec.matchConstraints: Required value"]


def mutating(**mutation: Any) -> list[str]:
    spec = {"validations": None, "mutations": [mutation], "reinvocationPolicy": "Never"}
    return complaints(GROUP, "mutatingadmissionpolicies", policy(**spec))


def test_a_mutation_makes_what_its_type_says() -> None:
    good = {"expression": "Object{spec: Object.spec{replicas: 1}}"}
    assert mutating(patchType="ApplyConfiguration", applyConfiguration=good) == []
    patch = {"expression": "[JSONPatch{op: 'add', path: '/spec/replicas', value: 1}]"}
    assert mutating(patchType="JSONPatch", jsonPatch=patch) == []
    path = "spec.mutations[0]"
    assert mutating(patchType="JSONPatch", applyConfiguration=good) == [
        (
            f'{path}.applyConfiguration: Invalid value: "{{applyConfiguration}}": must not be specified when patchType '
            "is JSONPatch"
        ),
        f"{path}.jsonPatch: Required value: must be specified when patchType is JSONPatch",
    ]


def test_a_binding_says_what_happens() -> None:
    def bound(**spec: Any) -> list[str]:
        made = {"metadata": {"name": "b"}, "spec": {"policyName": "p.example.com", **spec}}
        return complaints(GROUP, "validatingadmissionpolicybindings", made)

    assert bound(validationActions=["Deny"]) == []
    assert bound() == ["spec.validationActions: Required value: at least one validation action is required"]
    assert bound(validationActions=["Deny"], paramRef={"parameterNotFoundAction": "Deny"}) == [
        "spec.paramRef: Required value: one of name or selector must be specified"
    ]


def test_policies_that_stay_are_not_judged_again() -> None:
    strategy = STRATEGIES[GROUP, "validatingadmissionpolicies"]
    old = policy(validations=[{"expression": "gone()"}])
    assert strategy.validate_update(copy.deepcopy(old), old) == []
