"""Patterns for which a backtracking matcher would look till the end of days: the server needs as long as RE2 does."""

from __future__ import annotations

from time import process_time

import pytest

from shoal.embedded.apiserver.cel.program import compile_expression
from shoal.units.linear_patterns import compile_linear

ENDLESS = ["^(a+)+$", "^(a|aa)+$", "^(a*)*b$", "^([a-zA-Z]+)*$", "(x+x+)+y", r"^(\w+\s?)*$", "^(a?){50}a{50}$"]


@pytest.mark.parametrize("pattern", ENDLESS)
def test_a_pattern_that_repeats_what_repeats_is_answered_at_once(pattern: str) -> None:
    started = process_time()
    assert not compile_linear(pattern).occurs("a" * 40 + "xx" * 40 + "!")
    assert process_time() - started < 20


def test_several_repetitions_after_each_other_are_answered_at_once_in_long_texts() -> None:
    started = process_time()
    assert not compile_linear("^a*a*a*a*a*b$").occurs("a" * 5000)
    assert process_time() - started < 20


@pytest.mark.parametrize("pattern", ENDLESS[:4])
def test_so_are_patterns_in_expressions(pattern: str) -> None:
    started = process_time()
    program = compile_expression(f"self.matches('{pattern}')", {"self": "string"}, "bool")
    assert program.evaluate({"self": "a" * 60 + "!"}) is False
    found = compile_expression(f"self.find('{pattern}')", {"self": "string"}, "string")
    assert found.evaluate({"self": "a" * 60 + "!"}) == ""
    assert process_time() - started < 20
