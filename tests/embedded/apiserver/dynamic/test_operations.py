"""JSON patches of others: what a refusal says of the operation that failed."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.embedded.apiserver.dynamic.operations import PatchFault, UnmetTest, applied

Obj = dict[str, Any]


def test_all_operations_are_applied_and_the_object_stays() -> None:
    obj = {"a": {"b": 1}}
    operations = [{"op": "add", "path": "/a/c", "value": 2}, {"op": "remove", "path": "/a/b"}]
    assert applied(obj, operations) == {"a": {"c": 2}}
    assert obj == {"a": {"b": 1}}


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        (
            {"op": "add", "path": "/x/y", "value": 1},
            "add operation does not apply: doc is missing path: /x/y: missing value",
        ),
        ({"op": "replace", "path": "/x/y", "value": 1}, "replace operation does not apply: doc is missing path: /x/y"),
        ({"op": "remove", "path": "/x"}, "error in remove for path: '/x': Unable to remove nonexistent key: x"),
        ({"op": "move", "from": "/x", "path": "/y"}, "error in move for path: '/x'"),
        ({"op": "test", "path": "/a", "value": 2}, "testing value /a failed: test failed"),
        ({"op": "sing", "path": "/a"}, "Unexpected kind: sing"),
    ],
)
def test_the_operation_that_fails_is_named(operation: Obj, words: str) -> None:
    with pytest.raises(PatchFault) as found:
        applied({"a": 1}, [{"op": "test", "path": "/a", "value": 1}, operation])
    assert str(found.value).startswith(words)
    assert isinstance(found.value, UnmetTest) is (operation["op"] == "test")


def test_what_is_no_list_is_no_patch() -> None:
    with pytest.raises(PatchFault, match="cannot unmarshal"):
        applied({}, {"op": "add"})
