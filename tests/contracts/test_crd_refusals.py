"""Definitions that are refused: schemas without structure, rules that cannot be, names that clash with the rest."""

from typing import Any

import pytest

from build.cluster_api import Api
from build.contract_kinds import CRDS, definition, fields, items, text, version, whole

Obj = dict[str, Any]


async def _refusal(api: Api, crd: Obj) -> str:
    answer = await api.post(CRDS, crd)
    if answer.code < 300:
        await api.delete(f"{CRDS}/{crd['metadata']['name']}")
    message = answer.refused(422, "Invalid")
    assert message.startswith(f'CustomResourceDefinition.apiextensions.k8s.io "{crd["metadata"]["name"]}" is invalid: ')
    return message


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (
            {"properties": {"a": text()}},
            "properties[spec].type: Required value: must not be empty for specified object fields",
        ),
        (fields({"a": {}}), "properties[a].type: Required value: must not be empty for specified object fields"),
        (fields({"a": {"type": "array"}}), "properties[a].items: Required value: must be specified"),
        (fields({"a": {"type": "text"}}), 'properties[a].type: Unsupported value: "text": supported values: '),
        (
            fields({"a": text()}, additionalProperties=text()),
            "additionalProperties and properties are mutual exclusive",
        ),
        (fields({"a": text(pattern="(")}), "properties[a].pattern: Invalid value: "),
        (fields({"a": text(default=3)}), "properties[a].default: Invalid value: "),
        (fields({"a": text(uniqueItems=True)}), "uniqueItems cannot be set to true"),
        (
            fields({"a": items(fields({"k": text()}), **{"x-kubernetes-list-type": "map"})}),
            "x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
        ),
        (
            fields(
                {
                    "a": items(
                        fields({"k": text()}),
                        **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
                    )
                }
            ),
            "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ),
        (
            fields(allOf=[fields({"a": text()})]),
            "must be empty to be structural",
        ),
        (fields({"a": text(**{"$ref": "#/x"})}), "Forbidden: $ref is not supported"),
    ],
)
async def test_a_schema_that_is_not_structural_is_refused(api: Api, spec: Obj, says: str) -> None:
    assert says in await _refusal(api, definition(version(spec=spec)))


@pytest.mark.parametrize(
    ("schema", "rule", "says"),
    [
        (fields({"a": text()}), {"rule": "self.b == 'x'"}, "undefined field 'b'"),
        (fields({"a": text()}), {"rule": "self.a == "}, "compilation failed: ERROR: <input>:1:"),
        (fields({"a": text()}), {"rule": "self.a"}, "must evaluate to a bool"),
        (fields({"a": text()}), {"rule": ""}, "rule: Required value: rule is not specified"),
        (fields({"a": text()}), {"rule": "self.a == 3"}, "found no matching overload for '_==_'"),
        (fields({"a": text()}), {"rule": "unheard(self.a)"}, "undeclared reference to 'unheard'"),
        (fields({"a": text()}), {"rule": "true", "messageExpression": "3"}, "must evaluate to a string"),
        (fields({"a": text()}), {"rule": "true", "reason": "Whatever"}, 'reason: Unsupported value: "Whatever"'),
        (
            fields({"a": text()}),
            {"rule": "true", "fieldPath": ".b"},
            'fieldPath: Invalid value: ".b": must be a valid path',
        ),
        (
            fields({"a": text()}),
            {"rule": "true", "message": "two\nlines"},
            'message: Invalid value: "two\\nlines": must not contain line breaks',
        ),
        (
            fields({"a": items(text())}),
            {"rule": "self.a.all(x, self.a.all(y, x.contains(y)))"},
            "estimated rule cost exceeds budget by factor of",
        ),
    ],
)
async def test_a_rule_that_cannot_be_is_refused(api: Api, schema: Obj, rule: Obj, says: str) -> None:
    crd = definition(version(spec={**schema, "x-kubernetes-validations": [rule]}))
    assert says in await _refusal(api, crd)


async def test_a_rule_on_change_needs_a_place_that_can_be_found_again(api: Api) -> None:
    item = whole(**{"x-kubernetes-validations": [{"rule": "self > oldSelf"}]})
    message = await _refusal(api, definition(version(spec=fields({"a": items(item, maxItems=5)}))))
    assert "oldSelf cannot be used on the uncorrelatable portion of the schema" in message


async def test_the_name_is_made_of_plural_and_group(api: Api) -> None:
    crd = definition()
    crd["metadata"]["name"] = f"others.{crd['spec']['group']}"
    assert 'metadata.name: Invalid value: "others.' in await _refusal(api, crd)
    assert 'must be spec.names.plural+"."+spec.group' in await _refusal(api, crd)


@pytest.mark.parametrize(
    ("versions", "says"),
    [
        ([version("v1"), version("v1")], "must contain unique version names"),
        (
            [version("v1"), {**version("v2"), "storage": True}],
            "must have exactly one version marked as storage version",
        ),
        ([{**version("v1"), "storage": False}], "must have exactly one version marked as storage version"),
        ([{**version("v1"), "name": "V_1", "storage": True}], "a DNS-1035 label must consist of"),
        ([{"name": "v1", "served": True, "storage": True}], "spec.versions[0].schema.openAPIV3Schema: Required value"),
    ],
)
async def test_versions_must_make_sense(api: Api, versions: list[Obj], says: str) -> None:
    assert says in await _refusal(api, definition(*versions))


async def test_names_must_make_sense(api: Api) -> None:
    assert "spec.names.kind: Invalid value: " in await _refusal(api, definition(names={"kind": "Bad_Kind"}))
    assert "spec.scope: Unsupported value: " in await _refusal(api, definition(scope="Somewhere"))
    same = definition(names={"kind": "Widget", "listKind": "Widget"})
    assert "kind and listKind may not be the same" in await _refusal(api, same)


async def test_a_group_of_the_project_needs_an_approval(api: Api) -> None:
    crd = definition()
    crd["spec"]["group"] = f"{crd['spec']['group'].partition('.')[0]}.k8s.io"
    crd["metadata"]["name"] = f"widgets.{crd['spec']['group']}"
    message = await _refusal(api, crd)
    assert 'protected groups must have approval annotation "api-approved.kubernetes.io"' in message


async def test_a_webhook_that_converts_must_be_described(api: Api) -> None:
    crd = definition(conversion={"strategy": "Webhook"})
    assert (
        "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook"
        in await _refusal(api, crd)
    )


async def test_preserving_everything_is_not_to_be_had_any_more(api: Api) -> None:
    message = await _refusal(api, definition(preserveUnknownFields=True))
    assert "spec.preserveUnknownFields: Invalid value: true: " in message


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (
            {"additionalPrinterColumns": [{"name": "A", "type": "text", "jsonPath": ".spec.a"}]},
            '[0].type: Invalid value: "text": must be one of boolean,date,integer,number,string',
        ),
        (
            {"additionalPrinterColumns": [{"name": "A", "type": "string"}]},
            "additionalPrinterColumns[0].JSONPath: Required value",
        ),
        (
            {"subresources": {"scale": {"specReplicasPath": ".status.n", "statusReplicasPath": ".status.n"}}},
            "specReplicasPath: Invalid value: ",
        ),
        ({"selectableFields": [{"jsonPath": ".spec.none"}]}, "selectableFields[0].jsonPath: Invalid value: "),
    ],
)
async def test_what_points_into_objects_must_point_somewhere(api: Api, more: Obj, says: str) -> None:
    crd = definition(version(spec=fields({"a": text(), "n": whole()}), **more))
    assert says in await _refusal(api, crd)
