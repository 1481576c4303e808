"""Cycles among the parents of queues are found from each queue that ends in one."""

from __future__ import annotations

import pytest

from shoal.api.groups.queue_parents import cycle_above, cycle_words

CASES: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "a top queue": ({"q": ""}, ()),
    "a queue that does not exist": ({}, ()),
    "a parent that does not exist": ({"q": "p"}, ()),
    "a chain to the top": ({"q": "p", "p": "r", "r": ""}, ()),
    "its own parent": ({"q": "q"}, ("q",)),
    "two queues": ({"q": "p", "p": "q"}, ("p", "q")),
    "a queue below a cycle": ({"q": "b", "b": "c", "c": "a", "a": "b"}, ("a", "b", "c")),
    "a cycle elsewhere": ({"q": "", "a": "b", "b": "a"}, ()),
}


@pytest.mark.parametrize(("parents", "cycle"), CASES.values(), ids=CASES)
def test_the_cycle_above_a_queue(parents: dict[str, str], cycle: tuple[str, ...]) -> None:
    assert cycle_above("q", lambda name: parents.get(name, "")) == cycle


def test_the_words_close_the_cycle() -> None:
    assert cycle_words(("a", "b")) == "a -> b -> a"
