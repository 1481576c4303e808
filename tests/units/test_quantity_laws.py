"""Laws of quantities, held against `fractions`: exact values, order, rounding, and the way to text and back."""

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from shoal.units.quantity import MAX_INT64, NANO, Quantity

POWERS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}

numbers = st.builds(
    lambda sign, whole, fraction: f"{sign}{whole}{'.' + fraction if fraction else ''}",
    st.sampled_from(["", "+", "-"]),
    st.integers(0, 10**13).map(str),
    st.text("0123456789", max_size=12),
)
exponents = st.builds(lambda e, n: f"{e}{n}", st.sampled_from("eE"), st.integers(-15, 20))
texts = st.builds(
    lambda number, suffix: number + suffix,
    numbers,
    st.one_of(st.sampled_from([*POWERS, *BINARY]), exponents),
)
quantities = texts.map(Quantity.parse)


def denoted(text: str) -> Fraction:
    """The exact value a text stands for, rounded away from zero to nano and capped as the API server does."""
    number = text.rstrip("numkKMGTPEi")
    suffix = text[len(number) :]
    if suffix in BINARY:
        value = Fraction(number) * 2 ** BINARY[suffix]
    elif suffix in POWERS:
        value = Fraction(number) * Fraction(10) ** POWERS[suffix]
    else:
        value = Fraction(number)
    nano = Fraction(math.ceil(abs(value) * NANO), NANO)
    if suffix in BINARY:
        nano = min(nano, Fraction(MAX_INT64))
    return -nano if value < 0 else nano


def exact(quantity: Quantity) -> Fraction:
    return Fraction(quantity.nano, NANO)


@given(texts)
def test_parsing_gives_the_exact_value(text: str) -> None:
    assert exact(Quantity.parse(text)) == denoted(text)


@given(quantities)
def test_writing_and_reading_gives_an_equal_quantity(quantity: Quantity) -> None:
    assert Quantity.parse(str(quantity)) == quantity


@given(quantities)
def test_the_canonical_form_is_a_fixed_point(quantity: Quantity) -> None:
    again = Quantity.parse(str(quantity))
    assert str(again) == str(quantity)


@given(quantities)
def test_the_canonical_form_has_no_fraction(quantity: Quantity) -> None:
    assert "." not in str(quantity)


@given(quantities, quantities)
def test_order_is_the_order_of_values(a: Quantity, b: Quantity) -> None:
    assert (a < b, a <= b, a == b, a >= b, a > b) == (
        exact(a) < exact(b),
        exact(a) <= exact(b),
        exact(a) == exact(b),
        exact(a) >= exact(b),
        exact(a) > exact(b),
    )


@given(quantities, quantities, quantities)
def test_addition_is_exact(a: Quantity, b: Quantity, c: Quantity) -> None:
    assert exact(a + b) == exact(a) + exact(b)
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert (a + b) - b == a
    assert a - b == a + -b


@given(quantities)
def test_rounding_never_gives_less_than_was_asked(quantity: Quantity) -> None:
    value, milli = quantity.value(), quantity.milli_value()
    assert abs(exact(quantity)) <= abs(value) < abs(exact(quantity)) + 1
    assert abs(exact(quantity) * 1000) <= abs(milli) < abs(exact(quantity) * 1000) + 1
    assert quantity.is_integer() == (value == exact(quantity))


@given(quantities, quantities)
def test_rounding_keeps_order_and_is_subadditive(a: Quantity, b: Quantity) -> None:
    low, high = sorted((a, b))
    assert low.value() <= high.value()
    if a.nano >= 0 and b.nano >= 0:
        assert (a + b).value() <= a.value() + b.value()


@given(st.integers(-(10**20), 10**20))
def test_whole_numbers_come_back_whole(value: int) -> None:
    assert Quantity.of(value).value() == value
    assert Quantity.of_milli(value).milli_value() == value
