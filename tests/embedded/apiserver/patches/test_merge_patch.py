"""JSON merge patch: the cases and the laws of RFC 7386."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.embedded.apiserver.patches.merge_patch import merge_patch, merge_values
from shoal.embedded.apiserver.status import ApiError

APPENDIX: list[tuple[Any, Any, Any]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("target", "patch", "wanted"), APPENDIX)
def test_the_appendix_of_the_merge_rfc(target: Any, patch: Any, wanted: Any) -> None:
    before = copy.deepcopy((target, patch))
    assert merge_values(target, patch) == wanted
    assert (target, patch) == before


@pytest.mark.parametrize(("patch", "kind"), [([], "array"), ("x", "string"), (1, "number"), (True, "bool")])
def test_a_merge_patch_is_a_map(patch: Any, kind: str) -> None:
    with pytest.raises(ApiError) as caught:
        merge_patch({}, patch)
    words = f"error decoding patch: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
    assert (caught.value.code, caught.value.message) == (400, words)


KEYS = st.sampled_from(["a", "b", "c", "d"])
LEAVES = st.booleans() | st.integers(0, 3) | st.sampled_from(["x", "y"])
FULL = st.recursive(LEAVES, lambda inner: st.dictionaries(KEYS, inner, max_size=3) | st.lists(inner, max_size=2))
OBJECTS = st.dictionaries(KEYS, FULL)
PATCHES = st.dictionaries(
    KEYS, st.recursive(LEAVES | st.none(), lambda inner: st.dictionaries(KEYS, inner, max_size=3))
)


def patch_between(source: dict[str, Any], target: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = dict.fromkeys(source.keys() - target.keys())
    for key, value in target.items():
        before = source.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            made[key] = patch_between(before, value)
        elif key not in source or before != value or type(before) is not type(value):
            made[key] = value
    return made


@settings(max_examples=examples(80))
@given(OBJECTS, OBJECTS)
def test_merging_the_difference_reproduces_the_target(source: dict[str, Any], target: dict[str, Any]) -> None:
    assert merge_patch(source, patch_between(source, target)) == target


@settings(max_examples=examples(80))
@given(OBJECTS, PATCHES)
def test_merging_twice_is_merging_once(source: dict[str, Any], patch: dict[str, Any]) -> None:
    before = copy.deepcopy((source, patch))
    once = merge_patch(source, patch)
    assert merge_patch(once, patch) == once
    assert (source, patch) == before


@settings(max_examples=examples(40))
@given(OBJECTS)
def test_an_empty_patch_changes_nothing(source: dict[str, Any]) -> None:
    assert merge_patch(source, {}) == source
