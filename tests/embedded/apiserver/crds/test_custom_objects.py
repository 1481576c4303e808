"""Custom objects: pruned, defaulted and validated by their definition."""

from __future__ import annotations

from typing import Any

import pytest

from build.custom_definitions import crontab, resource
from shoal.embedded.apiserver.crds.pruning import conform_custom
from shoal.embedded.apiserver.status import ApiError

Obj = dict[str, Any]
TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
XY = {"type": "object", "properties": {"x": TEXT, "y": TEXT}}
TWO_FOUND = (
    '<nil>: Invalid value: "": "spec.a" must validate one and only one schema (oneOf). Found 2 valid alternatives'
)
NOT_CHECKED = (
    '<nil>: Invalid value: "null": some validation rules were not checked because the object was invalid; correct '
    "the existing errors to complete validation"
)


def said(spec_schema: Obj, spec: Obj, old: Obj | None = None, **more: Any) -> list[str]:
    strategy = resource(spec_schema, **more).strategy
    obj = crontab(spec)
    errors = strategy.validate(obj) if old is None else strategy.validate_update(obj, crontab(old))
    return [error.text() for error in errors]


def properties(**shapes: Obj) -> Obj:
    return {"properties": shapes}


def test_what_the_schema_does_not_know_is_dropped_and_named() -> None:
    shape = properties(a=TEXT, xs={"type": "array", "items": {"type": "object", "properties": {"k": TEXT}}})
    obj = crontab({"a": "x", "b": 1, "xs": [{"k": "x", "z": 1}]}, other={})
    obj["metadata"]["wrong"] = 1
    assert conform_custom(obj, resource(shape).schema) == [
        'unknown field "metadata.wrong"',
        'unknown field "other"',
        'unknown field "spec.b"',
        'unknown field "spec.xs[0].z"',
    ]
    assert obj == crontab({"a": "x", "xs": [{"k": "x"}]})


def test_unknown_fields_stay_where_the_schema_keeps_them_but_known_ones_inside_are_pruned() -> None:
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    shape = properties(free={**free, "properties": {"known": {"type": "object", "properties": {"a": TEXT}}}})
    obj = crontab({"free": {"any": {"thing": 1}, "known": {"a": "x", "b": 1}}})
    assert conform_custom(obj, resource(shape).schema) == ['unknown field "spec.free.known.b"']
    assert obj["spec"] == {"free": {"any": {"thing": 1}, "known": {"a": "x"}}}


def test_metadata_of_the_wrong_type_is_a_bad_request() -> None:
    obj = crontab({})
    obj["metadata"]["labels"] = {"a": 1}
    with pytest.raises(ApiError) as caught:
        conform_custom(obj, resource().schema)
    assert caught.value.code == 400
    assert caught.value.message == (
        'CronTab in version "v1" cannot be handled as a CronTab: json: cannot unmarshal number into Go struct field '
        "ObjectMeta.labels of type string"
    )


def test_defaults_fill_what_is_missing_or_null_and_change_nothing_the_second_time() -> None:
    inner = {"type": "object", "default": {}, "properties": {"n": {**WHOLE, "default": 3}}}
    shape = properties(inner=inner, a={**TEXT, "default": "x"}, gone=TEXT, kept={**TEXT, "nullable": True})
    obj = crontab({"a": None, "gone": None, "kept": None})
    strategy = resource(shape).strategy
    strategy.default(obj)
    assert obj["spec"] == {"a": "x", "kept": None, "inner": {"n": 3}}
    strategy.default(obj)
    assert obj["spec"] == {"a": "x", "kept": None, "inner": {"n": 3}}


@pytest.mark.parametrize(
    ("shape", "value", "words"),
    [
        (WHOLE, "x", 'spec.a: Invalid value: "string": spec.a in body must be of type integer: "string"'),
        (WHOLE, 1.5, 'spec.a: Invalid value: "number": spec.a in body must be of type integer: "number"'),
        (WHOLE, None, 'spec.a: Invalid value: "null": spec.a in body must be of type integer: "null"'),
        ({**WHOLE, "minimum": 1}, 0, "spec.a: Invalid value: 0: spec.a in body should be greater than or equal to 1"),
        ({**WHOLE, "maximum": 9}, 10, "spec.a: Invalid value: 10: spec.a in body should be less than or equal to 9"),
        ({**TEXT, "enum": ["x", "y"]}, "z", 'spec.a: Unsupported value: "z": supported values: "x", "y"'),
        ({**TEXT, "pattern": "^a+$"}, "b", "spec.a: Invalid value: \"b\": spec.a in body should match '^a+$'"),
        ({**TEXT, "minLength": 2}, "b", 'spec.a: Invalid value: "b": spec.a in body should be at least 2 chars long'),
        ({**TEXT, "maxLength": 2}, "abc", "spec.a: Too long: may not be more than 2 bytes"),
        ({**TEXT, "format": "date"}, "b", 'spec.a: Invalid value: "b": spec.a in body must be of type date: "b"'),
        (
            {"x-kubernetes-int-or-string": True},
            True,
            'spec.a: Invalid value: "boolean": spec.a in body must be of type integer,string: "boolean"',
        ),
        ({"type": "array", "items": TEXT, "maxItems": 1}, ["a", "b"], "spec.a: Too many: 2: must have at most 1 item"),
        (
            {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
            ["a", "a"],
            'spec.a[1]: Duplicate value: "a"',
        ),
        (
            {**XY, "oneOf": [{"required": ["x"]}, {"required": ["y"]}]},
            {"x": "1", "y": "2"},
            TWO_FOUND,
        ),
    ],
)
def test_values_are_refused_in_the_words_of_kubernetes(shape: Obj, value: Any, words: str) -> None:
    assert said(properties(a=shape), {"a": value}) == [words]


def test_what_is_required_must_be_there() -> None:
    assert said({**properties(a=TEXT), "required": ["a"]}, {}) == ["spec.a: Required value"]


def test_an_update_is_not_refused_for_what_it_leaves_alone() -> None:
    shape = properties(a={**WHOLE, "maximum": 3}, b=TEXT)
    assert said(shape, {"a": 9, "b": "new"}, old={"a": 9, "b": "old"}) == []
    assert said(shape, {"a": 8, "b": "new"}, old={"a": 9, "b": "old"}) != []


def ruled(rule: str, **more: Any) -> Obj:
    shapes: dict[str, Obj] = {"min": WHOLE, "max": WHOLE, "name": {**TEXT, "maxLength": 9}}
    return {**properties(**shapes), "x-kubernetes-validations": [{"rule": rule, **more}]}


def test_a_broken_rule_speaks_with_its_message_or_itself() -> None:
    rule = "self.min <= self.max"
    wrong = {"min": 2, "max": 1}
    assert said(ruled(rule), wrong) == ["spec: Invalid value: failed rule: self.min <= self.max"]
    assert said(ruled(rule, message="too small"), wrong) == ["spec: Invalid value: too small"]
    message = "'min %d over max %d'.format([self.min, self.max])"
    assert said(ruled(rule, messageExpression=message), wrong) == ["spec: Invalid value: min 2 over max 1"]
    assert said(ruled(rule), {"min": 1, "max": 2}) == []


def test_a_rule_says_where_and_why() -> None:
    shape = ruled("self.min <= self.max", fieldPath=".max", reason="FieldValueForbidden", message="no")
    assert said(shape, {"min": 2, "max": 1}) == ["spec.max: Forbidden: no"]


def test_a_rule_of_a_single_value_shows_the_value() -> None:
    shape = properties(a={**WHOLE, "x-kubernetes-validations": [{"rule": "self > 1", "message": "more"}]})
    assert said(shape, {"a": 1}) == ["spec.a: Invalid value: 1: more"]


def test_a_transition_rule_runs_only_on_changes() -> None:
    shape = properties(a={**WHOLE, "x-kubernetes-validations": [{"rule": "self >= oldSelf", "message": "no way back"}]})
    assert said(shape, {"a": 1}) == []
    assert said(shape, {"a": 1}, old={"a": 2}) == ["spec.a: Invalid value: 1: no way back"]
    assert said(shape, {"a": 3}, old={"a": 2}) == []
    assert said(shape, {"a": 1}, old={}) == []


def test_an_optional_old_value_lets_the_rule_run_on_creation() -> None:
    rule = {"rule": "oldSelf.hasValue() || self == 0", "optionalOldSelf": True, "message": "start at 0"}
    shape = properties(a={**WHOLE, "x-kubernetes-validations": [rule]})
    assert said(shape, {"a": 1}) == ["spec.a: Invalid value: 1: start at 0"]
    assert said(shape, {"a": 1}, old={"a": 0}) == []


def test_rules_are_not_checked_over_a_broken_shape() -> None:
    texts = said(ruled("self.min <= self.max"), {"min": "x", "max": 1})
    assert texts[1:] == [NOT_CHECKED]


def test_a_rule_that_fails_on_the_object_refuses_it() -> None:
    texts = said(ruled("self.min <= self.max"), {"min": 1})
    assert texts == ['spec: Invalid value: "object": no such key: max evaluating rule: self.min <= self.max']


def test_items_of_a_map_list_keep_their_old_selves() -> None:
    item = {
        "type": "object",
        "required": ["k"],
        "properties": {"k": TEXT, "v": {**WHOLE, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}},
    }
    keyed = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    old = {"xs": [{"k": "a", "v": 1}, {"k": "b", "v": 2}]}
    assert said(properties(xs=keyed), {"xs": [{"k": "b", "v": 2}, {"k": "a", "v": 1}]}, old=old) == []
    assert said(properties(xs=keyed), {"xs": [{"k": "b", "v": 1}]}, old=old) == [
        "spec.xs[0].v: Invalid value: 1: failed rule: self == oldSelf"
    ]


def test_selectable_fields_are_read_as_text() -> None:
    shape = properties(on={"type": "boolean"}, n=WHOLE)
    fields = [{"jsonPath": ".spec.on"}, {"jsonPath": ".spec.n"}]
    strategy = resource(shape, selectableFields=fields).strategy
    assert strategy.selectable() == ("spec.on", "spec.n")
    assert strategy.fields(crontab({"on": True})) == {"spec.on": "true", "spec.n": ""}


def test_a_rule_that_takes_too_long_ends_all_rules() -> None:
    rule = "self.all(x, self.all(y, self.all(z, x + y + z >= 0)))"
    items = {"type": "array", "items": WHOLE, "x-kubernetes-validations": [{"rule": rule}, {"rule": "false"}]}
    (text,) = said(properties(a=items), {"a": list(range(200))})
    assert text.startswith(
        "spec.a: Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': no further"
    )


def test_an_object_inside_an_object_says_what_it_is() -> None:
    inner = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    shape = properties(inner=inner)
    assert said(shape, {"inner": {"apiVersion": "v1", "kind": "Pod", "spec": {"any": 1}}}) == []
    assert said(shape, {"inner": {"kind": ""}}) == [
        "spec.inner.apiVersion: Required value",
        'spec.inner.kind: Invalid value: "": must not be empty',
    ]


def test_replica_counts_behind_the_scale_subresource_are_not_negative() -> None:
    scale = {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}
    texts = said(properties(n=WHOLE), {"n": -1}, subresources={"scale": scale})
    assert texts == [".spec.n: Invalid value: -1: should be a non-negative integer"]


_SCALE = {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n", "labelSelectorPath": ".status.s"}
_ANYTHING = {"x-kubernetes-preserve-unknown-fields": True}


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        ("3", "3 is of the type string"),
        (1.5, "1.5 is of the type float64"),
        (1.0, "1 is of the type float64"),
        (10**30, "1e+30 is of the type float64"),
        (True, "true is of the type bool"),
        (None, "<nil> is of the type <nil>"),
        ({"a": 1, "b": [None]}, "map[a:1 b:[<nil>]] is of the type map[string]interface {}"),
        ([1, "a"], "[1 a] is of the type []interface {}"),
    ],
)
def test_a_replica_count_that_is_no_whole_number_is_told_as_an_accessor_tells_it(value: Any, printed: str) -> None:
    texts = said(_ANYTHING, {"n": value}, subresources={"scale": _SCALE})
    assert texts == [f".spec.n: Invalid value: 0: .spec.n accessor error: {printed}, expected int64"]


def test_a_status_whose_counts_and_selector_cannot_be_read_is_refused() -> None:
    shape = resource(_ANYTHING, subresources={"status": {}, "scale": _SCALE})
    old = crontab({"n": 1})
    new = {**old, "status": {"n": "x", "s": 5}}
    assert [error.text() for error in shape.strategy.validate_status(new, old)] == [
        ".status.n: Invalid value: 0: .status.n accessor error: x is of the type string, expected int64",
        '.status.s: Invalid value: "": .status.s accessor error: 5 is of the type int64, expected string',
    ]
    assert [error.text() for error in shape.strategy.validate_status({**old, "status": {"n": -1}}, old)] == [
        ".status.n: Invalid value: -1: should be a non-negative integer"
    ]
