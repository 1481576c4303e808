"""Each regular expression in the sources takes linear time, or its texts are known to be short.

Patterns that users write go through `units/linear_patterns.py`, so `re` never sees one that is not in the sources.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from build.regular_expression_automata import fault
from build.regular_expressions_used import Unknown, Use, uses

pytestmark = pytest.mark.slow
EXPLAINED = {
    "api/jsonpath_template.py": ("the first brace that is not closed ends the reading", 1),
    "units/semver.py": ("_STRICT is matched from the beginning to the end only", 1),
    "views/waits.py": ("at most 200 letters are compared at each place of a message that Shoal wrote", 1),
}
"""By the file: why the time is bounded all the same, and for how many patterns."""


@cache
def everything() -> list[Use | Unknown]:
    return list(uses())


def test_every_pattern_is_part_of_the_sources() -> None:
    assert [one for one in everything() if isinstance(one, Unknown)] == []


def test_every_pattern_takes_linear_time() -> None:
    found = [one for one in everything() if isinstance(one, Use)]
    assert len(found) > 100
    faults = [(one, why) for one in found if (why := fault(one.pattern, one.flags, searches=one.searches))]
    counts = Counter(one.place.partition(":")[0] for one, _ in faults)
    assert counts == {file: count for file, (_, count) in EXPLAINED.items()}, faults


@pytest.mark.parametrize(
    "pattern", ["(a+)+", "(a*)*", "a*a*", "(a|aa)+$", "(a|a?)+b", r"[+-]?(0|([0-9]+\.?[0-9]*)(s|m))+", "(x+x+)+y"]
)
def test_patterns_that_can_read_a_text_in_many_ways_are_found(pattern: str) -> None:
    assert fault(pattern)


@pytest.mark.parametrize(
    ("pattern", "searches"), [("[0-9]+s", False), ("(a,)*", True), ("(.*)-(0|[1-9][0-9]*)", False)]
)
def test_patterns_that_can_not_are_not(pattern: str, searches: bool) -> None:
    assert not fault(pattern, searches=searches)


@pytest.mark.parametrize("pattern", ["[0-9]+s", "<[^>]*>", "a+(?!b)c"])
def test_a_search_that_may_begin_at_each_letter_and_go_on_to_the_end_is_found(pattern: str) -> None:
    assert not fault(pattern)
    assert fault(pattern, searches=True)
