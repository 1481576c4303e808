"""JSON patch: the cases of RFC 6902's appendix, and how Kubernetes refuses what does not apply."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.embedded.apiserver.patches.json_patch import json_patch
from shoal.embedded.apiserver.status import ApiError

Operation = dict[str, Any]
FAILS = object()

APPENDIX: list[tuple[str, Any, list[Operation], Any]] = [
    ("A.1 an object member is added", {"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}],
     {"foo": "bar", "baz": "qux"}),
    ("A.2 an item is added in an array", {"foo": ["bar", "baz"]}, [{"op": "add", "path": "/foo/1", "value": "qux"}],
     {"foo": ["bar", "qux", "baz"]}),
    ("A.3 an object member is removed", {"baz": 1, "foo": 2}, [{"op": "remove", "path": "/baz"}], {"foo": 2}),
    ("A.4 an item is removed", {"foo": [1, 2, 3]}, [{"op": "remove", "path": "/foo/1"}], {"foo": [1, 3]}),
    ("A.5 a value is replaced", {"baz": "qux"}, [{"op": "replace", "path": "/baz", "value": "boo"}], {"baz": "boo"}),
    ("A.6 a value is moved", {"foo": {"bar": 1, "waldo": 2}, "qux": {}},
     [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}], {"foo": {"bar": 1}, "qux": {"thud": 2}}),
    ("A.7 an item is moved", {"foo": ["all", "grass", "cows", "eat"]},
     [{"op": "move", "from": "/foo/1", "path": "/foo/3"}], {"foo": ["all", "cows", "eat", "grass"]}),
    ("A.8 a test passes", {"baz": "qux", "foo": ["a", 2, "c"]},
     [{"op": "test", "path": "/baz", "value": "qux"}, {"op": "test", "path": "/foo/1", "value": 2}],
     {"baz": "qux", "foo": ["a", 2, "c"]}),
    ("A.9 a test fails", {"baz": "qux"}, [{"op": "test", "path": "/baz", "value": "bar"}], FAILS),
    ("A.10 a nested object is added", {"foo": "bar"}, [{"op": "add", "path": "/child", "value": {"grandchild": {}}}],
     {"foo": "bar", "child": {"grandchild": {}}}),
    ("A.11 unknown members are ignored", {"foo": 1}, [{"op": "add", "path": "/baz", "value": 2, "xyz": 3}],
     {"foo": 1, "baz": 2}),
    ("A.12 nothing is added to what is not there", {"foo": 1}, [{"op": "add", "path": "/baz/bat", "value": 2}], FAILS),
    ("A.14 tilde escapes are read in order", {"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": 10}],
     {"/": 9, "~1": 10}),
    ("A.15 a number is no text", {"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": "10"}], FAILS),
    ("A.16 an array is added as an item", {"foo": ["bar"]}, [{"op": "add", "path": "/foo/-", "value": ["abc"]}],
     {"foo": ["bar", ["abc"]]}),
]  # fmt: skip


def refused(document: Any, operations: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        json_patch(document, operations)
    return caught.value


@pytest.mark.parametrize(("name", "document", "operations", "wanted"), APPENDIX, ids=[case[0] for case in APPENDIX])
def test_the_appendix_of_the_rfc(name: str, document: Any, operations: list[Operation], wanted: Any) -> None:
    before = copy.deepcopy((document, operations))
    if wanted is FAILS:
        error = refused(document, operations)
        assert (error.code, error.reason) == (422, "Invalid")
        assert error.message == "the server rejected our request due to an error in our request"
    else:
        assert json_patch(document, operations) == wanted
    assert (document, operations) == before


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/gone"},
        {"op": "replace", "path": "/gone/deeper", "value": 1},
        {"op": "replace", "path": "/list/1", "value": 1},
        {"op": "replace", "path": "", "value": "text"},
        {"op": "add", "path": "", "value": {}},
        {"op": "move", "from": "/gone", "path": "/a"},
        {"op": "copy", "from": "/gone/deeper", "path": "/a"},
        {"op": "copy", "from": "", "path": "/a"},
        {"op": "move", "from": "/m", "path": "/m/inner"},
        {"op": "add", "path": "/list/9", "value": 1},
        {"op": "add", "path": "list", "value": 1},
        {"op": "remove", "path": "/list/-"},
        {"op": "frobnicate", "path": "/list"},
        {"op": "add", "value": 1},
        {"path": "/list"},
        {"op": "test", "path": "/flag", "value": 1},
        {"op": "test", "path": "/gone/deeper", "value": None},
    ],
    ids=str,
)
def test_an_operation_that_does_not_fit_is_refused_as_a_whole(operation: Operation) -> None:
    document = {"list": [1], "m": {}, "flag": True}
    assert refused(document, [{"op": "add", "path": "/first", "value": 1}, operation]).code == 422
    assert document == {"list": [1], "m": {}, "flag": True}


@pytest.mark.parametrize(
    ("operation", "wanted"),
    [
        ({"op": "replace", "path": "/b", "value": 1}, {"a": [0], "b": 1}),
        ({"op": "copy", "from": "/gone", "path": "/b"}, {"a": [0], "b": None}),
        ({"op": "add", "path": "/a/01", "value": 1}, {"a": [0, 1]}),
        ({"op": "add", "path": "/a/+1", "value": 1}, {"a": [0, 1]}),
        ({"op": "add", "path": "ignored/b", "value": 1}, {"a": [0], "b": 1}),
    ],
    ids=str,
)
def test_what_the_rfc_forbids_and_kubernetes_takes(operation: Operation, wanted: Any) -> None:
    assert json_patch({"a": [0]}, [operation]) == wanted


def test_the_last_item_can_be_named_from_the_end() -> None:
    assert json_patch({"a": [1, 2, 3]}, [{"op": "remove", "path": "/a/-1"}]) == {"a": [1, 2]}


def test_testing_for_null_passes_where_there_is_nothing() -> None:
    assert json_patch({"a": {}}, [{"op": "test", "path": "/a/b", "value": None}]) == {"a": {}}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"op": "add"}, "json: cannot unmarshal object into Go value of type jsonpatch.Patch"),
        ("text", "json: cannot unmarshal string into Go value of type jsonpatch.Patch"),
        ([7], "json: cannot unmarshal number into Go value of type jsonpatch.Operation"),
    ],
)
def test_a_body_that_is_no_list_of_operations_is_a_bad_request(body: Any, words: str) -> None:
    error = refused({}, body)
    assert (error.code, error.message) == (400, words)


def test_too_many_operations_are_too_large() -> None:
    error = refused({}, [{"op": "test", "path": "/a", "value": None}] * 10_001)
    assert (error.code, error.reason) == (413, "RequestEntityTooLarge")
    assert error.message == "The allowed maximum operations in a JSON patch is 10000, got 10001"


def test_copies_cannot_grow_a_document_without_end() -> None:
    doubling = [{"op": "copy", "from": "/a", "path": f"/a/{step}"} for step in range(60)]
    assert refused({"a": {"x": "y" * 100}}, doubling).code == 422


KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["x", "y"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=examples(60))
@given(st.dictionaries(KEYS, VALUES), KEYS, VALUES)
def test_what_was_added_can_be_tested_and_removed(document: dict[str, Any], key: str, value: Any) -> None:
    document.pop(key, None)
    steps = [{"op": "add", "path": f"/{key}", "value": value}, {"op": "test", "path": f"/{key}", "value": value}]
    assert json_patch(document, [*steps, {"op": "remove", "path": f"/{key}"}]) == document
