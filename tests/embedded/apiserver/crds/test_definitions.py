"""Definitions: what is refused of them, what they become, and what they add to the API."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from build.custom_definitions import NOW, created, definition, faults, version
from shoal.embedded.apiserver.crds.definition_strategy import DEFINITIONS
from shoal.embedded.apiserver.crds.establish import establish, is_established, terminate
from shoal.embedded.apiserver.crds.serving import served

Obj = dict[str, Any]
TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
SPEC = "spec.validation.openAPIV3Schema.properties[spec]"


def ruled(rule: str, shapes: Obj | None = None, **more: Any) -> Obj:
    shape = {"properties": shapes or {"a": WHOLE}, "x-kubernetes-validations": [{"rule": rule, **more}]}
    return definition(version(spec=shape))


def test_a_plain_definition_is_accepted_and_gets_its_names() -> None:
    crd = definition()
    assert faults(crd) == []
    made = created(crd)
    assert made["spec"]["names"]["singular"] == "crontab"
    assert made["spec"]["names"]["listKind"] == "CronTabList"
    assert made["spec"]["conversion"] == {"strategy": "None"}
    assert made["status"]["storedVersions"] == ["v1"]


@pytest.mark.parametrize(
    ("crd", "words"),
    [
        ({**definition(), "metadata": {"name": "x"}}, 'must be spec.names.plural+"."+spec.group'),
        (
            definition({"name": "v1", "served": True, "storage": True}),
            "spec.versions[0].schema.openAPIV3Schema: Required value",
        ),
        (definition(version(), version("v2", storage=True)), "must have exactly one version marked as"),
        (definition(version(), version()), "spec.versions: Invalid value: "),
        (
            definition(version(spec={"properties": {"a": {}}})),
            f"{SPEC}.properties[a].type: Required value: must not be",
        ),
        (
            definition(version(spec={"properties": {"a": {"type": "array"}}})),
            f"{SPEC}.properties[a].items: Required value: must be specified",
        ),
        (
            definition(version(spec={"properties": {"a": {**WHOLE, "default": "x"}}})),
            f'{SPEC}.properties[a].default: Invalid value: "string"',
        ),
        (
            definition(version(spec={"properties": {"a": TEXT}, "oneOf": [{"properties": {"b": {}}}]})),
            f"{SPEC}.properties[b]: Required value: because it is defined in {SPEC}.oneOf[0]",
        ),
        (ruled("self.b > 1"), "compilation failed: ERROR: <input>:1:5: undefined field 'b'"),
        (ruled("self.a + 'x' == 'y'"), "found no matching overload for '_+_' applied to '(int, string)'"),
        (ruled("self.a"), "cel expression must evaluate to a bool"),
        (ruled("self.a > "), "compilation failed: ERROR: <input>:1:10: Syntax error"),
        (ruled("self.a > 1", messageExpression="self.a"), "messageExpression must evaluate to a string"),
        (ruled("self.a > 1", optionalOldSelf=True), "may not be set if oldSelf is not used in rule"),
        (ruled("self.a > 1", fieldPath=".b"), "must be a valid path"),
        (ruled("self.a > 1", reason="Other"), 'reason: Unsupported value: "Other"'),
        (
            ruled("self.xs.all(x, self.xs.exists(y, x.contains(y)))", {"xs": {"type": "array", "items": TEXT}}),
            "validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x",
        ),
    ],
)
def test_what_a_definition_may_not_say(crd: Obj, words: str) -> None:
    assert words in "\n".join(faults(crd))


def test_bounds_make_a_costly_rule_affordable() -> None:
    shapes = {"xs": {"type": "array", "maxItems": 20, "items": {**TEXT, "maxLength": 20}}}
    assert faults(ruled("self.xs.all(x, self.xs.exists(y, x.contains(y)))", shapes)) == []


def test_a_rule_may_not_look_back_where_items_cannot_be_told_apart() -> None:
    item = {**WHOLE, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}
    crd = definition(version(spec={"properties": {"xs": {"type": "array", "maxItems": 5, "items": item}}}))
    assert "oldSelf cannot be used on the uncorrelatable portion of the schema within" in faults(crd)[0]


def test_versions_that_differ_are_spoken_of_one_by_one() -> None:
    crd = definition(version(), version("v2", spec={"properties": {"a": {}}}))
    place = "spec.versions[1].schema.openAPIV3Schema.properties[spec].properties[a].type"
    assert faults(crd) == [f"{place}: Required value: must not be empty for specified object fields"]


def test_group_kind_and_scope_stay_and_stored_versions_may_not_leave() -> None:
    old = establish(created(definition(version(), version("v0"))), [], NOW)
    new = deepcopy(old)
    new["spec"]["scope"] = "Cluster"
    new["spec"]["names"]["kind"] = "Other"
    new["spec"]["versions"] = [{**version("v0"), "storage": True}]
    DEFINITIONS.prepare_update(new, old)
    texts = [error.text() for error in DEFINITIONS.validate_update(new, old)]
    assert 'spec.scope: Invalid value: "Cluster": field is immutable' in texts
    assert 'spec.names.kind: Invalid value: "Other": field is immutable' in texts
    assert any(
        text.startswith('status.storedVersions[0]: Invalid value: "v1": missing from spec.ver') for text in texts
    )
    assert new["status"]["storedVersions"] == ["v1", "v0"]


def test_a_definition_is_served_once_established() -> None:
    crd = created(definition(version(subresources={"status": {}}), version("v2", storage=False), shortNames=["ct"]))
    assert served(crd) == []
    there = establish(crd, [], NOW)
    assert [one.version for one in served(there)] == ["v1", "v2"]
    first, second = served(there)
    assert first.short_names == ("ct",)
    assert [one.name for one in first.subresources] == ["status"]
    assert (second.storage_version, second.subresources) == ("v1", ())
    assert establish(there, [], "later") is there


def test_a_name_that_another_definition_has_is_refused() -> None:
    first = establish(created(definition(shortNames=["ct"])), [], NOW)
    other = establish(created(definition(plural="cats", kind="Cat", shortNames=["ct"])), [first], NOW)
    conditions = {one["type"]: one for one in other["status"]["conditions"]}
    assert conditions["NamesAccepted"]["reason"] == "ShortNamesConflict"
    assert conditions["NamesAccepted"]["message"] == '"ct" is already in use'
    assert conditions["Established"]["status"] == "False"
    assert not is_established(other)
    assert is_established(establish(other, [], NOW))


def test_a_definition_that_is_being_deleted_says_so() -> None:
    ended = terminate(establish(created(definition()), [], NOW), NOW)
    assert ended["status"]["conditions"][-1]["reason"] == "InstanceDeletionInProgress"


def test_groups_of_kubernetes_itself_ask_for_approval() -> None:
    crd = definition()
    crd["spec"]["group"] = "stable.k8s.io"
    crd["metadata"]["name"] = "crontabs.stable.k8s.io"
    assert "protected groups must have approval annotation" in faults(crd)[0]
    crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": "https://github.com/kubernetes/x"}
    assert faults(crd) == []


def test_formats_nobody_checks_are_warned_of_once() -> None:
    crd = created(definition(version(spec={"properties": {"a": {**TEXT, "format": "colour"}}})))
    assert DEFINITIONS.warnings(crd, None) == ['unrecognized format "colour"']
    assert DEFINITIONS.warnings(crd, crd) == []


def test_a_spec_that_was_valid_before_is_checked_anew_once_it_has_changed() -> None:
    crd = created(definition(version(spec={"properties": {"a": WHOLE}})))
    wrong = deepcopy(crd)
    wrong["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["a"] = {}
    words = f"{SPEC}.properties[a].type"
    for _ in range(2):
        assert DEFINITIONS.validate(crd) == []
        assert [fault.field for fault in DEFINITIONS.validate(wrong)] == [words]
        assert [fault.field for fault in DEFINITIONS.validate_update(wrong, crd)] == [words]


def test_formats_are_found_at_every_depth_in_the_order_of_the_schema() -> None:
    inner = {"properties": {"format": {**TEXT, "format": "first"}}, "type": "object"}
    shapes = {
        "a": {"type": "array", "items": inner},
        "b": {**TEXT, "format": "second"},
        "c": {**TEXT, "format": "uuid"},
    }
    crd = created(definition(version(spec={"properties": shapes})))
    assert DEFINITIONS.warnings(crd, None) == ['unrecognized format "first"', 'unrecognized format "second"']
