"""What the schema of a custom resource does to its objects: pruning, defaults, nulls, and types that are special."""

import json
from typing import Any

import pytest

from build.cluster_api import Api
from build.contract_kinds import defined, fields, items, text, version, whole
from build.contract_objects import eventually

KEEP = {"x-kubernetes-preserve-unknown-fields": True}


async def test_fields_that_the_schema_does_not_know_are_dropped_and_told(api: Api) -> None:
    spec = fields({"a": text(), "deep": fields({"b": text()}), "list": items(fields({"c": text()}))})
    async with defined(api, version(spec=spec)) as kind:
        sent = {"a": "1", "x": 1, "deep": {"b": "2", "y": 2}, "list": [{"c": "3", "z": 3}]}
        answer = await kind.create("w", sent, extra=1)
        assert answer.ok(201)["spec"] == {"a": "1", "deep": {"b": "2"}, "list": [{"c": "3"}]}
        assert "extra" not in await kind.get()
        told = " ".join(answer.warnings)
        for path in ("extra", "spec.x", "spec.deep.y", "spec.list[0].z"):
            assert f'unknown field \\"{path}\\"' in told
        refused = await api.post(kind.path(), kind.obj("v", {"x": 1}), fieldValidation="Strict")
        message = refused.refused(400, "BadRequest")
        assert message.endswith('strict decoding error: unknown field "spec.x"')


async def test_fields_below_preserved_places_stay_but_for_those_that_are_specified(api: Api) -> None:
    spec = fields({"open": fields({"inner": fields({"a": text()})}, **KEEP), "closed": fields({"a": text()})})
    async with defined(api, version(spec=spec)) as kind:
        sent = {"open": {"free": {"x": [1, {"y": None}]}, "inner": {"a": "1", "gone": 1}}, "closed": {"gone": 1}}
        found = (await kind.made("w", sent))["spec"]
        assert found == {"open": {"free": {"x": [1, {"y": None}]}, "inner": {"a": "1"}}, "closed": {}}


async def test_a_map_keeps_every_key_and_checks_every_value(api: Api) -> None:
    spec = fields({"ports": fields(additionalProperties=whole(minimum=1))})
    async with defined(api, version(spec=spec)) as kind:
        assert (await kind.made("w", {"ports": {"a": 1, "b": 2}}))["spec"]["ports"] == {"a": 1, "b": 2}
        message = (await kind.create("v", {"ports": {"a": 0}})).refused(422, "Invalid")
        assert "spec.ports.a: Invalid value: 0: spec.ports.a in body should be greater than or equal to 1" in message


async def test_defaults_fill_what_is_missing_at_any_depth(api: Api) -> None:
    inner = fields({"retries": whole(default=3), "mode": text(default="fast")})
    spec = fields({"policy": {**inner, "default": {}}, "list": items(inner), "name": text(default="x")})
    async with defined(api, version(spec=spec)) as kind:
        found = (await kind.made("w", {"list": [{}, {"mode": "slow"}], "policy": {"retries": 1}}))["spec"]
        assert found["policy"] == {"retries": 1, "mode": "fast"}
        assert found["list"] == [{"retries": 3, "mode": "fast"}, {"retries": 3, "mode": "slow"}]
        assert found["name"] == "x"
        assert "spec" not in await kind.made("without")
        assert (await kind.made("empty", {}))["spec"]["policy"] == {"retries": 3, "mode": "fast"}


async def test_a_default_that_is_added_later_shows_in_objects_stored_before(api: Api) -> None:
    async with defined(api, version(spec=fields({"a": text()}))) as kind:
        await kind.made("w", {"a": "1"})
        await kind.redefine(version(spec=fields({"a": text(), "b": text(default="new")})))
        found = await eventually(
            lambda: api.get(kind.path("w")), lambda answer: answer.body.get("spec") == {"a": "1", "b": "new"}
        )
        listed = (await api.get(kind.path())).ok()["items"]
        assert [one["spec"] for one in listed] == [found.body["spec"]]


async def test_null_stays_only_where_the_schema_allows_it(api: Api) -> None:
    spec = fields(
        {
            "may": text(nullable=True),
            "mayAndDefault": text(nullable=True, default="d"),
            "mayNotButDefault": text(default="d"),
            "mayNot": text(),
        }
    )
    async with defined(api, version(spec=spec)) as kind:
        sent = {"may": None, "mayAndDefault": None, "mayNotButDefault": None, "mayNot": None}
        found = (await kind.made("w", sent))["spec"]
        assert found == {"may": None, "mayAndDefault": None, "mayNotButDefault": "d"}


async def test_int_or_string_takes_both_and_nothing_else(api: Api) -> None:
    spec = fields({"port": {"x-kubernetes-int-or-string": True}})
    async with defined(api, version(spec=spec)) as kind:
        assert (await kind.made("a", {"port": 80}))["spec"]["port"] == 80
        assert (await kind.made("b", {"port": "http"}))["spec"]["port"] == "http"
        message = (await kind.create("c", {"port": True})).refused(422, "Invalid")
        assert 'spec.port in body must be of type integer,string: "boolean"' in message


async def test_an_embedded_object_has_a_type_a_kind_and_metadata(api: Api) -> None:
    template = fields({"spec": fields({"a": text()})}, **{"x-kubernetes-embedded-resource": True})
    async with defined(api, version(spec=fields({"template": template}))) as kind:
        metadata = {"name": "inner", "labels": {"a": "b"}, "finalizer": "unknown"}
        inner = {"apiVersion": "v1", "kind": "Foo", "metadata": metadata, "spec": {"a": "1", "x": 1}, "gone": 1}
        found = (await kind.made("w", {"template": inner}))["spec"]["template"]
        assert found["apiVersion"] == "v1"
        assert found["kind"] == "Foo"
        assert found["metadata"] == {"name": "inner", "labels": {"a": "b"}}
        assert found["spec"] == {"a": "1"}
        assert "gone" not in found
        message = (await kind.create("v", {"template": {"spec": {}}})).refused(422, "Invalid")
        assert "spec.template.apiVersion: Required value" in message
        assert "spec.template.kind: Required value" in message


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        (whole(), "text", 'spec.v: Invalid value: "string": spec.v in body must be of type integer: "string"'),
        (text(), 3, 'spec.v: Invalid value: "integer": spec.v in body must be of type string: "integer"'),
        (
            {"type": "boolean"},
            "yes",
            'spec.v: Invalid value: "string": spec.v in body must be of type boolean: "string"',
        ),
        (whole(minimum=1), 0, "spec.v: Invalid value: 0: spec.v in body should be greater than or equal to 1"),
        (whole(maximum=5), 6, "spec.v: Invalid value: 6: spec.v in body should be less than or equal to 5"),
        (
            whole(minimum=1, exclusiveMinimum=True),
            1,
            "spec.v: Invalid value: 1: spec.v in body should be greater than 1",
        ),
        (whole(multipleOf=5), 7, "spec.v: Invalid value: 7: spec.v in body should be a multiple of 5"),
        (
            whole(format="int32"),
            2**40,
            '<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.v',
        ),
        (text(minLength=2), "a", 'spec.v: Invalid value: "a": spec.v in body should be at least 2 chars long'),
        (text(maxLength=2), "abc", "spec.v: Too long: may not be more than 2"),
        (text(pattern="^[a-z]+$"), "A1", "spec.v: Invalid value: \"A1\": spec.v in body should match '^[a-z]+$'"),
        (text(enum=["a", "b"]), "c", 'spec.v: Unsupported value: "c": supported values: "a", "b"'),
        (
            text(format="date-time"),
            "now",
            'spec.v: Invalid value: "now": spec.v in body must be of type date-time: "now"',
        ),
        (text(format="ipv4"), "no", 'spec.v: Invalid value: "no": spec.v in body must be of type ipv4: "no"'),
        (items(text(), minItems=1), [], "spec.v: Invalid value: 0: spec.v in body should have at least 1 items"),
        (items(text(), maxItems=1), ["a", "b"], "spec.v: Too many: 2: must have at most 1 item"),
        (items(whole()), [1, "x"], 'spec.v[1]: Invalid value: "string": spec.v[1] in body must be of type integer'),
        (fields({"r": text()}, required=["r"]), {}, "spec.v.r: Required value"),
        (
            fields(additionalProperties=text(), maxProperties=1),
            {"a": "", "b": ""},
            "spec.v: Too many: 2: must have at most 1 item",
        ),
        (
            items(text(), **{"x-kubernetes-list-type": "set"}),
            ["a", "b", "a"],
            'spec.v[2]: Duplicate value: "a"',
        ),
        (
            items(
                fields({"name": text()}, required=["name"]),
                **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
            ),
            [{"name": "a"}, {"name": "a"}],
            "spec.v[1]: Duplicate value: ",
        ),
    ],
)
async def test_a_value_that_the_schema_does_not_allow_is_refused(
    api: Api, schema: Any, value: Any, message: str
) -> None:
    async with defined(api, version(spec=fields({"v": schema}))) as kind:
        said = (await kind.create("w", {"v": value})).refused(422, "Invalid")
        assert said.startswith(f'Widget.{kind.group} "w" is invalid: ')
        assert message in said


async def test_whole_numbers_come_back_without_a_point(api: Api) -> None:
    async with defined(api, version(spec=fields({"n": whole(), "f": {"type": "number"}}))) as kind:
        body = json.dumps(kind.obj("w", {"n": "N", "f": "F"})).replace('"N"', "1.0").replace('"F"', "2.50").encode()
        (await api.post(kind.path(), body)).ok(201)
        raw = (await api.get(kind.path("w"))).raw.replace(b" ", b"")
        assert b'"n":1,' in raw or b'"n":1}' in raw
        assert b'"f":2.5' in raw


async def test_alternatives_are_checked(api: Api) -> None:
    one = {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
    spec = fields({"a": whole(), "b": whole(), "c": text(anyOf=[{"pattern": "^x"}, {"maxLength": 1}])}, **one)
    async with defined(api, version(spec=spec)) as kind:
        await kind.made("w", {"a": 1, "c": "xyz"})
        message = (await kind.create("v", {"a": 1, "b": 2})).refused(422, "Invalid")
        assert "must validate one and only one schema (oneOf)" in message
        message = (await kind.create("v", {"a": 1, "c": "yz"})).refused(422, "Invalid")
        assert "must validate at least one schema (anyOf)" in message


async def test_metadata_follows_the_rules_of_every_object(api: Api) -> None:
    async with defined(api) as kind:
        bad = kind.obj("Upper_Case", {})
        message = (await api.post(kind.path(), bad)).refused(422, "Invalid")
        assert 'metadata.name: Invalid value: "Upper_Case": a lowercase RFC 1123 subdomain must consist of' in message
        generated = {**kind.obj(spec={}), "metadata": {"generateName": "gen-"}}
        assert (await api.post(kind.path(), generated)).ok(201)["metadata"]["name"].startswith("gen-")
