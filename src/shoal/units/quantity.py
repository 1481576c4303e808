"""Kubernetes quantities, exact: what `500m`, `1.5Gi` or `12e6` amount to, and how the API server writes them.

A quantity is an integer count of nano-units and the notation it was written in. That is the API server's
own resolution: anything finer is rounded away from zero to the next nano when parsed, so a crumb asked for
never becomes nothing. Binary notation is capped at 2^63-1 as there; the other two are not. Comparing and
hashing see the amount only (`1Ki == 1024`); a sum keeps the notation of its left operand unless that is
zero.

`str(q)` is always canonical (no fraction, the largest suffix that loses nothing). The API server echoes a few
odd spellings such as `+1`, `1E3` or `1.500` as they came and reads a lone `-` or `.` as zero; Shoal makes the
former canonical and refuses the latter, as the documented grammar says.

Rejected: floats (0.1 + 0.2), `Decimal` (a context decides its rounding) and `Fraction` (slow to compare),
where one integer is enough.
"""

from __future__ import annotations

import enum
import re
from functools import lru_cache
from typing import Final, NoReturn

from shoal.units.errors import UserError, excerpt

NANO = 1_000_000_000
NANO_PER_MILLI = 1_000_000
MAX_INT64 = 2**63 - 1

# The API server has no limit here and takes minutes over 1e2147483647; nothing real needs a thousand digits.
_MAX_DIGITS = 1000

_GRAMMAR = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?"
    r"(?P<suffix>[numkMGTPE]?|[KMGTPE]i|[eE](?P<exponent>[+-]?[0-9]+))"
)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX = {power: suffix for suffix, power in _DECIMAL.items()}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_BINARY_SUFFIXES = ("", *_BINARY)


class Format(enum.Enum):
    """The notation a quantity was written in, and will be written in again."""

    DECIMAL = "DecimalSI"
    BINARY = "BinarySI"
    EXPONENT = "DecimalExponent"


class Quantity:
    """An exact amount. Not a dataclass, because decoders would take one for a map of its fields."""

    __slots__ = ("format", "nano")

    nano: Final[int]  # type: ignore[misc]
    format: Final[Format]  # type: ignore[misc]

    def __init__(self, nano: int, format: Format = Format.DECIMAL) -> None:  # noqa: A002 - the API's own word
        object.__setattr__(self, "nano", nano)
        object.__setattr__(self, "format", format)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{name}: a quantity does not change")

    def __reduce__(self) -> tuple[type[Quantity], tuple[int, Format]]:
        return Quantity, (self.nano, self.format)

    @staticmethod
    def parse(text: str) -> Quantity:
        """Read one quantity or raise a UserError naming the text. Cached: fleets repeat a few spellings."""
        return _parse(text)

    @staticmethod
    def of(value: int, format: Format = Format.DECIMAL) -> Quantity:  # noqa: A002
        return Quantity(value * NANO, format)

    @staticmethod
    def of_milli(value: int, format: Format = Format.DECIMAL) -> Quantity:  # noqa: A002
        return Quantity(value * NANO_PER_MILLI, format)

    def value(self) -> int:
        """Whole units, rounded away from zero: asking for half a unit needs one."""
        return _away_from_zero(self.nano, NANO)

    def milli_value(self) -> int:
        return _away_from_zero(self.nano, NANO_PER_MILLI)

    def is_integer(self) -> bool:
        return self.nano % NANO == 0

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano + other.nano, self.format if self.nano else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano - other.nano, self.format if self.nano else other.format)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nano, self.format)

    def __bool__(self) -> bool:
        return self.nano != 0

    def __eq__(self, other: object) -> bool:
        return self.nano == other.nano if isinstance(other, Quantity) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.nano)

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano

    def __le__(self, other: Quantity) -> bool:
        return self.nano <= other.nano

    def __gt__(self, other: Quantity) -> bool:
        return self.nano > other.nano

    def __ge__(self, other: Quantity) -> bool:
        return self.nano >= other.nano

    def __str__(self) -> str:
        if self.nano == 0:
            return "0"
        # Binary suffixes cannot express a fraction, and below 1Ki have nothing to say.
        if self.format is Format.BINARY and self.nano % NANO == 0 and abs(self.nano) >= 1024 * NANO:
            whole = self.nano // NANO
            thousands = ((whole & -whole).bit_length() - 1) // 10
            if thousands < len(_BINARY_SUFFIXES):
                return f"{whole >> 10 * thousands}{_BINARY_SUFFIXES[thousands]}"
        digits, power = _strip_thousands(self.nano)
        if self.format is not Format.EXPONENT and power in _DECIMAL_SUFFIX:
            return f"{digits}{_DECIMAL_SUFFIX[power]}"
        return f"{digits}e{power}" if power else str(digits)

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"


ZERO = Quantity(0)


@lru_cache(maxsize=16384)
def _parse(text: str) -> Quantity:
    match = _GRAMMAR.fullmatch(text) if len(text) <= _MAX_DIGITS else None
    if match is None or not (match["whole"] or match["fraction"]):
        raise _refusal(text)
    fraction, suffix, exponent = match["fraction"] or "", match["suffix"], match["exponent"]
    digits = int(match["whole"] + fraction)
    if match["sign"] == "-":
        digits = -digits
    if exponent is not None:
        return Quantity(_nano(text, digits, int(exponent) - len(fraction)), Format.EXPONENT)
    if suffix not in _BINARY:
        return Quantity(_nano(text, digits, _DECIMAL[suffix] - len(fraction)), Format.DECIMAL)
    nano = _nano(text, digits << _BINARY[suffix], -len(fraction))
    nano = max(-MAX_INT64 * NANO, min(nano, MAX_INT64 * NANO))
    return Quantity(nano, Format.BINARY if abs(nano) >= NANO else Format.DECIMAL)


def _nano(text: str, digits: int, power: int) -> int:
    """`digits * 10^power` in nano-units, rounded away from zero when finer."""
    power += 9
    if digits == 0:
        return 0
    if power > _MAX_DIGITS:
        raise UserError(f"quantity {excerpt(text)} is too large", fix=f"exponents above e{_MAX_DIGITS - 9} are refused")
    if power >= 0:
        scale: int = 10**power
        return digits * scale
    # Far below one nano the answer is one nano: do not build 10^1000000 to learn that.
    return _away_from_zero(digits, 10 ** min(-power, _MAX_DIGITS + 30))


def _away_from_zero(amount: int, unit: int) -> int:
    return -(-amount // unit) if amount >= 0 else amount // unit


def _strip_thousands(nano: int) -> tuple[int, int]:
    """Digits and a decimal exponent that is a multiple of three, the largest that loses nothing."""
    power = -9
    while nano % 1000 == 0:
        nano //= 1000
        power += 3
    return nano, power


def _refusal(text: str) -> UserError:
    """Say which part is wrong: the API server answers all of these with the same regular expression."""
    shown = excerpt(text)
    if not text.strip():
        return UserError("quantity is empty", fix="write a number such as 2, 500m or 1.5Gi")
    if len(text) > _MAX_DIGITS:
        return UserError(f"quantity {shown} has {len(text)} characters", fix=f"at most {_MAX_DIGITS} are read")
    number = _NUMBER.match(text)
    if number is None:
        return UserError(f"quantity {shown} does not start with a number", fix="write e.g. 2, 500m or 1.5Gi")
    rest = text[number.end() :]
    if rest.startswith("."):
        return UserError(f"quantity {shown} has more than one decimal point", fix="write e.g. 1.5Gi")
    if rest != rest.strip() or " " in rest:
        return UserError(f"quantity {shown} contains blanks", fix="write number and suffix together, e.g. 8Gi")
    return UserError(
        f"quantity {shown} has the unknown suffix {excerpt(rest)}",
        fix=_likely_suffix(rest) or "use one of n u m k M G T P E Ki Mi Gi Ti Pi Ei, or an exponent such as e3",
    )


def _likely_suffix(suffix: str) -> str:
    bare = suffix.removesuffix("b").removesuffix("B")
    for known in (*_BINARY, *_DECIMAL):
        if known and bare.lower() == known.lower():
            return f"write {known}"
    return ""
