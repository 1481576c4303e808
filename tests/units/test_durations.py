from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.units.durations import WITH_DAYS, DurationError, nanoseconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("-0", 0),
        ("5s", 5 * 10**9),
        ("1h30m", 5400 * 10**9),
        ("-1.5s", -1_500_000_000),
        ("+.5ms", 500_000),
        ("1.s", 10**9),
        ("10us1µs2μs3ns", 13_003),
        ("0.3333333333333333333h", 1_199_999_999_999),
        ("9223372036854775807ns", 2**63 - 1),
        ("-9223372036854775808ns", -(2**63)),
        ("0" * 1_000_000 + "7s", 7 * 10**9),
    ],
)
def test_a_duration_is_the_sum_of_its_parts(text: str, expected: int) -> None:
    assert nanoseconds(text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 'time: invalid duration ""'),
        ("-", 'time: invalid duration "-"'),
        ("--1s", 'time: invalid duration "--1s"'),
        (".s", 'time: invalid duration ".s"'),
        ("s", 'time: invalid duration "s"'),
        ("00", 'time: missing unit in duration "00"'),
        ("3", 'time: missing unit in duration "3"'),
        ("1.2.3s", 'time: missing unit in duration "1.2.3s"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("1 h", 'time: unknown unit " h" in duration "1 h"'),
        ('1"', 'time: unknown unit "\\"" in duration "1\\""'),
        ("1é", 'time: unknown unit "\\xc3\\xa9" in duration "1\\xc3\\xa9"'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
        ("3000000h", 'time: invalid duration "3000000h"'),
        ("1٣s", 'time: unknown unit "\\xd9\\xa3s" in duration "1\\xd9\\xa3s"'),
    ],
)
def test_what_is_no_duration_is_refused_in_the_words_of_go(text: str, words: str) -> None:
    with pytest.raises(DurationError) as refused:
        nanoseconds(text)
    assert str(refused.value) == words


@pytest.mark.parametrize("text", ["0" * 1_000_000, "0" * 1_000_000 + "x", "1s" * 300_000 + "!", "9" * 1_000_000 + "s"])
def test_a_long_text_that_is_no_duration_is_refused(text: str) -> None:
    """With a matcher that tries all ways to split the digits, none of these would end."""
    with pytest.raises(DurationError):
        nanoseconds(text)


def test_days_are_read_where_the_caller_allows_them() -> None:
    assert nanoseconds("1d12h", WITH_DAYS) == 129_600 * 10**9


@given(st.lists(st.tuples(st.integers(0, 999), st.sampled_from(["ns", "us", "ms", "s", "m", "h"])), min_size=1))
def test_parts_add_up_in_any_order(parts: list[tuple[int, str]]) -> None:
    text = "".join(f"{number}{unit}" for number, unit in parts)
    mirrored = "".join(f"{number}{unit}" for number, unit in reversed(parts))
    assert nanoseconds(text) == nanoseconds(mirrored) == sum(nanoseconds(f"{number}{unit}") for number, unit in parts)
