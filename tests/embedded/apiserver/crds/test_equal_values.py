"""When two JSON values are one: what a choice allows, and what an update left as it was."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.embedded.apiserver.crds.values import same, value_errors


@pytest.mark.parametrize(
    ("one", "other", "are_one"),
    [
        ({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        (1, 1.0, True),
        (True, True, True),
        (True, 1, False),
        ({"a": [{"b": 0}]}, {"a": [{"b": False}]}, False),
        ([1, 2], [2, 1], False),
        ({"a": None}, {}, False),
    ],
    ids=str,
)
def test_values_are_one_however_deep_and_true_is_not_1(one: Any, other: Any, *, are_one: bool) -> None:
    assert same(one, other) is are_one
    assert same(other, one) is are_one


def test_who_writes_1_where_true_was_has_changed_it() -> None:
    published = {"type": "array", "items": {"type": "boolean"}}
    assert value_errors([True], published, "a", [True]) == []
    assert len(value_errors([1], published, "a", [True])) == 1
