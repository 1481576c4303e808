"""Whole numbers of users' texts: read, or none, and never an exception."""

from __future__ import annotations

import pytest

from shoal.units.numbers import whole_of


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("007", 7), ("999999999999999999", 10**18 - 1)])
def test_digits_are_a_number(text: str, number: int) -> None:
    assert whole_of(text) == number


@pytest.mark.parametrize("text", ["", "-1", "+1", " 1", "1_0", "1.0", "²", "٣", "9" * 19, "9" * 5000])
def test_anything_else_is_none(text: str) -> None:
    assert whole_of(text) is None
