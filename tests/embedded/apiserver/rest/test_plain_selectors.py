"""Label selectors of specs: what they take, and their one text."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.embedded.apiserver.label_selectors import selects, text_of

LABELS = {"app": "web", "tier": "front"}
ASKED: dict[str, tuple[dict[str, Any], bool]] = {
    "an empty one takes all": ({}, True),
    "all labels have to be there": ({"matchLabels": {"app": "web", "zone": "a"}}, False),
    "one of the values": ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["x", "web"]}]}, True),
    "none of the values": ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
    "none of the values, without the label": (
        {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]},
        True,
    ),
    "the label is there": ({"matchExpressions": [{"key": "zone", "operator": "Exists"}]}, False),
    "the label is not there": ({"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]}, True),
    "an operator that nobody knows": ({"matchExpressions": [{"key": "zone", "operator": "Like"}]}, False),
}


@pytest.mark.parametrize(("selector", "takes"), ASKED.values(), ids=ASKED)
def test_labels_are_taken(selector: dict[str, Any], takes: bool) -> None:
    assert selects(selector, LABELS) is takes


def test_the_text_is_ordered_by_key_whatever_the_operators() -> None:
    expressions = [
        {"key": "z", "operator": "DoesNotExist"},
        {"key": "b", "operator": "NotIn", "values": ["y", "x"]},
        {"key": "a-b", "operator": "Exists"},
    ]
    assert text_of({"matchLabels": {"a": "1"}, "matchExpressions": expressions}) == "a=1,a-b,b notin (x,y),!z"
