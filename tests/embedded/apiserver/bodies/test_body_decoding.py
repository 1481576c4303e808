"""Bodies in JSON and YAML: what they mean, and how those are refused that mean nothing."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.embedded.apiserver.bodies.decode import LIMIT_BYTES, decode, json_value
from shoal.embedded.apiserver.bodies.duplicates import duplicate_fields, may_have_duplicates
from shoal.embedded.apiserver.bodies.json_fault import MAX_DEPTH, json_fault
from shoal.embedded.apiserver.bodies.yaml_text import NotYamlError, from_yaml
from shoal.embedded.apiserver.status import ApiError

JSON, YAML = "application/json", "application/yaml"


def refusal(body: bytes, content_type: str = JSON) -> ApiError:
    with pytest.raises(ApiError) as refused:
        decode(body, content_type, kind="Pod")
    return refused.value


JSON_FAULTS = {
    "nothing": (b"", "unexpected end of JSON input"),
    "half an object": (b'{"a":', "unexpected end of JSON input"),
    "a comma too many": (b'{"a":1,}', "invalid character '}' looking for beginning of object key string"),
    "no colon": (b'{"a" 1}', "invalid character '1' after object key"),
    "no comma": (b'{"a":1 "b":2}', "invalid character '\"' after object key:value pair"),
    "no comma in a list": (b"[1 2]", "invalid character '2' after array element"),
    "text without quotes": (b"hello", "invalid character 'h' looking for beginning of value"),
    "a word misspelt": (b"[tru]", "invalid character ']' in literal true (expecting 'e')"),
    "a control character": (b'"\x01"', "invalid character '\\x01' in string literal"),
    "a line break in text": (b'"a\nb"', "invalid character '\\n' in string literal"),
    "an unknown escape": (b'"\\q"', "invalid character 'q' in string escape code"),
    "half an escape": (b'"\\u12g4"', "invalid character 'g' in \\u hexadecimal character escape"),
    "a leading zero": (b"01", "invalid character '1' after top-level value"),
    "a point without digits": (b"1.x", "invalid character 'x' after decimal point in numeric literal"),
    "an exponent without digits": (b"1ex", "invalid character 'x' in exponent of numeric literal"),
    "a lone minus": (b"-x", "invalid character 'x' in numeric literal"),
    "two values": (b"{}{}", "invalid character '{' after top-level value"),
}


@pytest.mark.parametrize("case", JSON_FAULTS, ids=str)
def test_a_text_that_is_no_json_is_told_as_go_tells_it(case: str) -> None:
    text, words = JSON_FAULTS[case]
    assert json_fault(text) == words
    with pytest.raises(ValueError, match=re.escape(words)):
        json_value(text)


@given(st.text(alphabet='{}[]",:01-.eE+truefalsn\\ \n', max_size=14))
@settings(max_examples=examples(160), deadline=None)
def test_the_scanner_finds_fault_exactly_where_a_reader_does(text: str) -> None:
    try:
        json.loads(text, parse_constant=lambda word: int(word, 36) if word is None else _refuse())
        readable = True
    except ValueError:
        readable = False
    assert (json_fault(text.encode()) == "") == readable


def _refuse() -> float:
    raise ValueError("Python reads NaN and Infinity")


def test_the_answer_to_malformed_json_shows_how_the_body_begins() -> None:
    words = "the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: "
    assert refusal(b'{"a"').message == words + 'unexpected end of JSON input ({"a")'
    assert refusal(b"").message == words + "unexpected end of JSON input (<empty>)"
    long = refusal(b"hello" * 20)
    assert long.message == words + f"invalid character 'h' looking for beginning of value ({b'hello'.hex() * 6} ...)"
    assert (long.code, long.reason) == (400, "BadRequest")


def test_a_body_that_is_no_object_has_no_kind() -> None:
    assert "json: cannot unmarshal array into Go value of type struct" in refusal(b"[1]").message
    assert "cannot unmarshal number into Go struct field .kind of type string" in refusal(b'{"kind":5}').message
    assert decode(b"null", JSON) == ({}, [])


def test_bytes_that_are_no_text_are_replaced_as_go_replaces_them() -> None:
    assert decode(b'{"a":"\xff"}', JSON) == ({"a": "\ufffd"}, [])
    assert decode(b'{"a":"\\ud800"}', JSON) == ({"a": "\ufffd"}, [])


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 5_000, 100_000])
def test_deep_nesting_is_refused_and_never_a_recursion_error(depth: int) -> None:
    assert "exceeded max depth" in refusal(b'{"a":' * depth + b"1" + b"}" * depth).message
    assert "exceeded max depth" in refusal(b"[" * depth + b"]" * depth).message
    assert refusal(b"a: " + b"[" * depth + b"]" * depth, YAML).code == 400


def test_many_brackets_side_by_side_are_not_deep() -> None:
    body = msgspec.json.encode({"a": [[] for _ in range(MAX_DEPTH * 3)]})
    assert len(decode(body, JSON)[0]["a"]) == MAX_DEPTH * 3


def test_a_body_over_the_limit_is_refused_before_it_is_read() -> None:
    refused = refusal(b" " * (LIMIT_BYTES + 1))
    assert (refused.code, refused.reason) == (413, "RequestEntityTooLarge")
    assert refused.message == "Request entity too large: limit is 3145728"


def test_an_unknown_format_is_refused_with_those_that_are_known() -> None:
    refused = refusal(b"{}", "text/plain")
    assert (refused.code, refused.reason) == (415, "UnsupportedMediaType")
    assert refused.message == (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )


def test_parameters_of_the_content_type_do_not_matter_and_json_is_the_default() -> None:
    assert decode(b'{"a":1}', "Application/JSON; charset=utf-8")[0] == {"a": 1}
    assert decode(b'{"a":1}', "")[0] == {"a": 1}


def test_fields_that_stand_twice_are_named_and_the_last_counts() -> None:
    obj, problems = decode(b'{"spec":{"a":1,"a":2,"b":[{"c":1},{"c":1,"c":2}]}}', JSON)
    assert obj == {"spec": {"a": 2, "b": [{"c": 1}, {"c": 2}]}}
    assert problems == ['duplicate field "spec.a"', 'duplicate field "spec.b[1].c"']
    assert decode(b'{"a":1,"a":2}', JSON, with_duplicates=False) == ({"a": 2}, [])


ODD_SPELLINGS = (b'{"a" :1, "a":2}', b'{"a"\n:1,"a":2}', b'{"a":"\\u0022:","a":"\\":"}', b'{"\\u0061":1,"a":2}')


@pytest.mark.parametrize("body", ODD_SPELLINGS)
def test_no_spelling_hides_a_field_that_stands_twice(body: bytes) -> None:
    assert decode(body, JSON)[1] == ['duplicate field "a"']


def test_texts_full_of_quotes_cost_no_second_reading() -> None:
    applied = {"metadata": {"annotations": {"last": json.dumps({"a": {"b": '"c":'}})}}}
    body = msgspec.json.encode(applied)
    assert not may_have_duplicates(body, applied)


keys = st.sampled_from(["a", "b", 'c":', "\\", "d\\"])
pairs = st.recursive(
    st.integers(0, 9) | st.sampled_from(['x":', "\\", '"']),
    lambda inner: st.lists(st.tuples(keys, inner), max_size=4),
    max_leaves=10,
)


def _written(value: Any) -> str:
    if isinstance(value, list):
        return "{" + ",".join(f"{json.dumps(key)}:{_written(inner)}" for key, inner in value) + "}"
    return json.dumps(value)


@given(st.lists(st.tuples(keys, pairs), max_size=4))
@settings(max_examples=examples(120), deadline=None)
def test_no_field_that_stands_twice_is_missed(content: list[tuple[str, Any]]) -> None:
    body = _written(content).encode()
    if duplicate_fields(body):
        assert may_have_duplicates(body, msgspec.json.decode(body))


YAML_SCALARS = {
    "3": 3,
    "0o17": 15,
    "017": 15,
    "0x1F": 31,
    "0b11": 3,
    "1_000": 1000,
    "1e3": 1000,
    "1.5": 1.5,
    ".5": 0.5,
    "-7": -7,
    "yes": True,
    "Off": False,
    "~": None,
    "": None,
    "2001-01-01": "2001-01-01",
    "12:30:45": "12:30:45",
    "500m": "500m",
    "1.2.3": "1.2.3",
    "'3'": "3",
    '"yes"': "yes",
    "!!str 5": "5",
    "!!int '5'": 5,
    "!!binary aGk=": "hi",
    "2026-01-01T00:00:00Z": "2026-01-01T00:00:00Z",
}


@pytest.mark.parametrize("text", YAML_SCALARS, ids=repr)
def test_scalars_mean_in_yaml_what_they_mean_to_kubernetes(text: str) -> None:
    value, problems = decode(f"a: {text}\n".encode(), YAML)
    found, expected = value["a"], YAML_SCALARS[text]
    assert (found, type(found), problems) == (expected, type(expected), [])


def test_keys_that_are_no_text_become_text() -> None:
    assert decode(b"1: a\ntrue: b\n1.5: c\n", YAML)[0] == {"1": "a", "true": "b", "1.5": "c"}


def test_aliases_are_copied_and_merge_keys_give_way_to_what_is_written() -> None:
    obj, _ = decode(b"a: &x {b: 1, c: 2}\nd: *x\ne: {<<: *x, c: 3}\n", YAML)
    assert obj == {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 2}, "e": {"b": 1, "c": 3}}
    assert obj["a"] is not obj["d"]


def test_only_the_first_document_is_read() -> None:
    assert decode(b"---\na: 1\n---\nb: 2\n", YAML)[0] == {"a": 1}
    assert decode(b"", YAML) == ({}, [])


def test_keys_that_stand_twice_in_yaml_are_told_with_their_line() -> None:
    obj, problems = decode(b"a: 1\nb:\n  c: 1\n  c: 2\n", YAML)
    assert obj == {"a": 1, "b": {"c": 2}}
    assert problems == ['yaml: unmarshal errors:\n  line 4: key "c" already set in map']


def test_a_document_that_grows_by_aliases_is_refused() -> None:
    lines = ["a: &a [x,x,x,x,x,x,x,x,x,x]"]
    lines += [
        f"{name}: &{name} [{','.join([f'*{before}'] * 10)}]" for before, name in zip("abcdefg", "bcdefgh", strict=True)
    ]
    assert "document contains excessive aliasing" in refusal("\n".join(lines).encode(), YAML).message


YAML_FAULTS = {
    "a colon in a value": ("a: 1\nb: c: d\n", "yaml: line 2: mapping values are not allowed in this context"),
    "a tab": ("\tx", "yaml: found character that cannot start any token"),
    "no number in JSON": ("a: .inf", "json: unsupported value: +Inf"),
}


@pytest.mark.parametrize("case", YAML_FAULTS, ids=str)
def test_a_text_that_is_no_yaml_is_told_as_go_tells_it(case: str) -> None:
    text, words = YAML_FAULTS[case]
    with pytest.raises(NotYamlError) as refused:
        from_yaml(text.encode())
    assert str(refused.value) == words


# JSON spells what lies above as two halves of a pair, which YAML takes for two characters that there are not.
plane = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=8)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(10**6), 10**6) | plane,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(plane, inner, max_size=3),
        max_leaves=12,
    )
)
@settings(max_examples=examples(80), deadline=None)
def test_json_is_yaml_and_means_the_same(value: Any) -> None:
    # Escapes only: YAML bars characters that JSON lets through as they are.
    assert from_yaml(json.dumps({"value": value}).encode())[0] == {"value": value}


@given(st.binary(max_size=40))
@settings(max_examples=examples(120), deadline=None)
def test_no_body_ends_in_anything_but_an_object_or_a_refusal(body: bytes) -> None:
    for content_type in (JSON, YAML):
        assert isinstance(_outcome(body, content_type), (dict, ApiError))


def _outcome(body: bytes, content_type: str) -> Any:
    try:
        return decode(body, content_type, kind="Pod")[0]
    except ApiError as refused:
        return refused


@pytest.mark.parametrize("digits", ["9" * 5_000, "0x" + "f" * 5_000, "-" + "9" * 5_000, "0" + "7" * 5_000])
def test_a_yaml_integer_of_thousands_of_digits_is_refused_like_one_in_json(digits: str) -> None:
    assert refusal(f"a: {digits}".encode(), YAML).code == 400
    assert refusal(b'{"a": ' + b"9" * 5_000 + b"}").code == 400
