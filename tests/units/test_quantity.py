"""What each spelling of a quantity amounts to, and how it is written back."""

import pickle

import pytest

from shoal.units.errors import UserError
from shoal.units.quantity import MAX_INT64, ZERO, Format, Quantity

CANONICAL = {
    "whole numbers stay": ("100", "100"),
    "a fraction becomes milli": ("1.5", "1500m"),
    "half a core": ("0.5", "500m"),
    "a leading point is fine": (".5", "500m"),
    "a trailing point is fine": ("5.", "5"),
    "a plus sign goes": ("+1", "1"),
    "leading zeros go": ("007", "7"),
    "a binary fraction moves to the smaller suffix": ("1.5Gi", "1536Mi"),
    "1024 of one binary suffix is one of the next": ("1024Ki", "1Mi"),
    "1025 is not": ("1025Ki", "1025Ki"),
    "a binary amount below 1Ki needs no suffix": ("0.5Ki", "512"),
    "nor does one with a fraction keep it": ("1.1Ki", "1126400m"),
    "binary below one turns decimal": ("0.0001Ki", "102400u"),
    "1000 of one decimal suffix is one of the next": ("1000k", "1M"),
    "1010 is not": ("1010k", "1010k"),
    "milli adds up to units": ("1000m", "1"),
    "micro": ("12u", "12u"),
    "nano": ("12n", "12n"),
    "exa is a suffix, not an exponent": ("1E", "1E"),
    "beyond exa only an exponent is left": ("1000E", "1e21"),
    "exponents stay exponents": ("12e6", "12e6"),
    "in lower case": ("1E3", "1e3"),
    "and in steps of three": ("1e4", "10e3"),
    "with a sign": ("1e+3", "1e3"),
    "small exponents too": ("12e-6", "12e-6"),
    "a zero exponent is no exponent": ("5e0", "5"),
    "nothing is 0 in any notation": ("0Gi", "0"),
    "nothing however written": ("-0.000e999999999", "0"),
    "negative": ("-1.5", "-1500m"),
    "negative binary": ("-1Ki", "-1Ki"),
    "finer than nano rounds away from zero": ("0.1n", "1n"),
    "also below zero": ("-0.1n", "-1n"),
    "also by far": ("1e-999999999", "1e-9"),
    "also when only the last digit is too fine": ("1.0000000001", "1000000001n"),
    "binary stops at 2^63-1": ("8Ei", str(MAX_INT64)),
    "and at its negative": ("-9Ei", str(-MAX_INT64)),
    "decimal does not": ("10000000000G", "10E"),
}


@pytest.mark.parametrize(("text", "want"), CANONICAL.values(), ids=CANONICAL)
def test_canonical_form(text: str, want: str) -> None:
    assert str(Quantity.parse(text)) == want


AMOUNTS = {
    "half a unit needs a whole one": ("500m", 1, 500),
    "a nano needs a whole milli": ("1n", 1, 1),
    "whole stays whole": ("2", 2, 2000),
    "binary": ("1Gi", 2**30, 2**30 * 1000),
    "below zero it also rounds away": ("-1500m", -2, -1500),
    "and by one nano": ("-1n", -1, -1),
}


@pytest.mark.parametrize(("text", "units", "milli"), AMOUNTS.values(), ids=AMOUNTS)
def test_whole_units_and_thousandths_round_away_from_zero(text: str, units: int, milli: int) -> None:
    quantity = Quantity.parse(text)
    assert (quantity.value(), quantity.milli_value()) == (units, milli)


REFUSED = {
    "nothing": ("", "is empty"),
    "blanks only": ("  ", "is empty"),
    "a sign alone": ("-", '"-" does not start with a number'),
    "a point alone": (".", '"." does not start with a number'),
    "two points": ("1.5.2Gi", '"1.5.2Gi" has more than one decimal point'),
    "two signs": ("--1", '"--1" does not start with a number'),
    "words": ("lots", '"lots" does not start with a number'),
    "not a number": ("nan", '"nan" does not start with a number'),
    "an unknown suffix": ("5x", '"5x" has the unknown suffix "x"'),
    "bytes spelled out": ("5GB", 'unknown suffix "GB"; write G'),
    "lower-case binary": ("1gi", 'unknown suffix "gi"; write Gi'),
    "capital kilo": ("1K", 'unknown suffix "K"; write k'),
    "a fraction in the exponent": ("1e3.5", 'unknown suffix "e3.5"'),
    "an exponent without digits": ("1e", 'unknown suffix "e"'),
    "blank before the suffix": ("1 Gi", '"1 Gi" contains blanks'),
    "a newline at the end": ("1\n", "contains blanks"),
    "digits of another script": ("१", "does not start with a number"),
    "hexadecimal": ("0x10", 'unknown suffix "x10"'),
    "an exponent nobody can mean": ("1e2147483647", "is too large"),
    "a number nobody can mean": ("9" * 2000, "has 2000 characters"),
}


@pytest.mark.parametrize(("text", "complaint"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_a_quantity_is_named_and_refused(text: str, complaint: str) -> None:
    with pytest.raises(UserError) as refusal:
        Quantity.parse(text)
    assert complaint in str(refusal.value)


SUMS = {
    "the left notation stays": ("1Gi", "1G", "1Gi", Format.BINARY),
    "decimal stays decimal": ("1G", "1Gi", "1G", Format.DECIMAL),
    "from zero the other notation is taken": ("0", "1Gi", "0", Format.BINARY),
}


@pytest.mark.parametrize(("left", "right", "back", "notation"), SUMS.values(), ids=SUMS)
def test_sums_keep_a_notation(left: str, right: str, back: str, notation: Format) -> None:
    total = Quantity.parse(left) + Quantity.parse(right)
    assert total.format is notation
    assert total - Quantity.parse(right) == Quantity.parse(back)


def test_a_sum_of_thirds_is_exact() -> None:
    assert str(Quantity.parse("0.1") + Quantity.parse("0.2")) == "300m"


def test_notation_does_not_matter_for_equality() -> None:
    assert Quantity.parse("1Ki") == Quantity.parse("1024") == Quantity.parse("1.024k")
    assert hash(Quantity.parse("1Ki")) == hash(Quantity.parse("1024"))
    assert Quantity.parse("1") != 1
    assert Quantity.parse("0Gi") == ZERO
    assert not ZERO


def test_a_binary_sum_beyond_exa_is_written_without_loss() -> None:
    assert str(Quantity.parse("4Ei") + Quantity.parse("4Ei")) == "8Ei"
    assert str(Quantity.of(2**70, Format.BINARY)) == str(2**70)


def test_a_quantity_cannot_be_changed() -> None:
    with pytest.raises(AttributeError, match="does not change"):
        Quantity.parse("1").nano = 2  # type: ignore[misc]


def test_a_quantity_survives_the_way_to_another_process() -> None:
    quantity = Quantity.parse("1.5Gi")
    copy = pickle.loads(pickle.dumps(quantity))  # noqa: S301 - our own bytes
    assert (copy, copy.format) == (quantity, quantity.format)


def test_repeated_spellings_are_read_once() -> None:
    assert Quantity.parse("77Gi") is Quantity.parse("77Gi")
