"""Parses numbers in labels and annotations, with an error that names the entry."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation

from shoal.units.errors import UserError, Where, excerpt

_MOST = 2**31 - 1
_LONGEST_FRACTION = 64


def whole_number(text: str, where: Where, *, least: int = 0, most: int = _MOST) -> int:
    """Digits and nothing else, within bounds."""
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(_MOST)):
        raise UserError(f"{excerpt(text)} is not a whole number", where=where, fix="write it as plain digits")
    number = int(text)
    if number < least:
        raise UserError(f"must be at least {least}, got {number}", where=where)
    if number > most:
        raise UserError(f"must be at most {most}, got {number}", where=where)
    return number


def optional_number(words: Mapping[str, str], name: str, where: Where, *, least: int = 0) -> int | None:
    """The entry's number, if there is such an entry."""
    return whole_number(words[name], where.key(name), least=least) if name in words else None


def fraction_milli(text: str, where: Where) -> int:
    """A part of one GPU in thousandths, more than none and at most all of it.

    Finer parts are rounded to the nearest: three times 0.3333 fit where they are meant to.
    """
    try:
        fraction = Decimal(text if len(text) <= _LONGEST_FRACTION else "none")
    except InvalidOperation:
        raise UserError(f"{excerpt(text)} is not a number", where=where, fix='write e.g. "0.5"') from None
    if not (fraction.is_finite() and 0 < fraction <= 1):
        raise UserError(
            f"must be more than 0 and at most 1, got {excerpt(text)}",
            where=where,
            fix="ask for several whole GPUs with nvidia.com/gpu",
        )
    return max(int((fraction * 1000).to_integral_value(ROUND_HALF_UP)), 1)


def groups(text: str, where: Where) -> tuple[int, ...]:
    """`0-3,4-7` or `0-1+4-5,2-3`: group by group its numbers; the group of each number comes back.

    Numbers that no group names belong to none, which is -1.
    """
    group_of: dict[int, int] = {}
    for group, part in enumerate(text.split(",")):
        for numbers in part.split("+"):
            for number in span(numbers, where):
                if number in group_of:
                    raise UserError(f"{number} is in two groups", where=where)
                group_of[number] = group
    return tuple(group_of.get(number, -1) for number in range(max(group_of) + 1))


def numbers(text: str, where: Where) -> tuple[int, ...]:
    """`0,2-3`: each number once, in order."""
    return tuple(sorted({number for part in text.split(",") for number in span(part, where)}))


def span(text: str, where: Where) -> range:
    """`2-5`, both included, or one number."""
    first, dash, last = text.strip().partition("-")
    low = whole_number(first.strip(), where, most=1023)
    high = whole_number(last.strip(), where, most=1023) if dash else low
    if high < low:
        raise UserError(f"{excerpt(text)} ends before it begins", where=where)
    return range(low, high + 1)


def one_of(text: str, choices: tuple[str, ...], where: Where) -> str:
    if text not in choices:
        known = ", ".join(choices)
        raise UserError(f"Unsupported value: {excerpt(text)}", where=where, fix=f"supported values: {known}")
    return text
