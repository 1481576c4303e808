"""Amounts are exact, and rounding loses no cent."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.units.money import MoneyError, cents, money, rounded


@pytest.mark.parametrize(("text", "amount"), [("98.32", "98.32"), ("0", "0"), ("0.000000000001", "1E-12")])
def test_an_amount_is_read_exactly(text: str, amount: str) -> None:
    assert money(text) == Decimal(amount)


@pytest.mark.parametrize("text", ["", "-1", "1e3", "1,000", "NaN", "1.", ".5", "1.0000000000001", "٣", "1" * 16])
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(MoneyError):
        money(text)


def test_half_a_cent_goes_to_the_even_neighbour() -> None:
    assert [cents(Decimal(text)) for text in ("0.005", "0.015", "0.025")] == [
        Decimal("0.00"),
        Decimal("0.02"),
        Decimal("0.02"),
    ]


@given(st.lists(st.decimals(-1000, 1000, places=6), max_size=30))
def test_rounded_parts_add_up_to_the_rounded_total(parts: list[Decimal]) -> None:
    shown = rounded(parts)
    assert sum(shown, Decimal(0)) == cents(sum(parts, Decimal(0)))
    assert all(abs(one - part) < Decimal("0.01") for one, part in zip(shown, parts, strict=True))


def test_the_missing_cent_goes_to_the_largest_remainder() -> None:
    third = Decimal(100) / 3
    assert rounded([third, third, third]) == [Decimal("33.34"), Decimal("33.33"), Decimal("33.33")]
