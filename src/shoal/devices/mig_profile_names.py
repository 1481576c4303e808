"""Reads names of MIG profiles: `1g.10gb`, `1g.10gb+me`, `1g.24gb-me`, and `1c.3g.40gb` for a part of a GPU instance.

`1c.3g.40gb` is a compute instance of one slice in a GPU instance `3g.40gb`. A name with equal numbers, `3c.3g.40gb`, is
the GPU instance with one compute instance that takes it whole, and is written without the first number.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

_FIELD = re.compile(r"[+-]?[0-9]+")
_ATTRIBUTE = re.compile(r"[A-Za-z0-9.]+")


class MigNameError(ValueError):
    """The text is no name of a MIG profile."""


class ProfileName(msgspec.Struct, frozen=True):
    compute: int
    """Slices of the compute instance."""
    slices: int
    """Slices of the GPU instance."""
    gigabytes: int
    attributes: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    """Attributes after a minus sign."""

    @property
    def instance(self) -> str:
        """The profile of the GPU instance."""
        signed = "+" + ",".join(self.attributes) if self.attributes else ""
        return f"{self.slices}g.{self.gigabytes}gb{signed}{'-' + ','.join(self.without) if self.without else ''}"

    @property
    def text(self) -> str:
        return self.instance if self.is_whole else f"{self.compute}c.{self.instance}"

    @property
    def is_whole(self) -> bool:
        """Whether the compute instance takes the GPU instance whole."""
        return self.compute == self.slices

    @property
    def is_plain(self) -> bool:
        return not self.attributes and not self.without


@lru_cache(maxsize=4096)
def parse_profile(text: str) -> ProfileName:
    """Raises `MigNameError`."""
    if not text:
        raise MigNameError("profile is the empty string")
    if "+" in text and "-" in text:
        raise MigNameError(f"profile '{text}' contains both '+/-' attributes")
    sign = "+" if "+" in text else "-"
    fields, has_attributes, rest = text.partition(sign)
    try:
        compute, slices, gigabytes = _fields(fields)
    except MigNameError as error:
        raise MigNameError(f"cannot parse fields of '{text}': {error}") from error
    if not has_attributes:
        return ProfileName(compute, slices, gigabytes)
    try:
        attributes = _attributes(rest)
    except MigNameError as error:
        raise MigNameError(f"cannot parse attributes of '{text}': {error}") from error
    if sign == "+":
        return ProfileName(compute, slices, gigabytes, attributes)
    return ProfileName(compute, slices, gigabytes, without=attributes)


def creation_order(text: str) -> tuple[int, ...]:
    """A key that sorts instances in the order in which they are created: large ones first, then those with attributes.

    Large instances have the fewest places; those with media engines have only one GPU's worth of engines.
    """
    name = parse_profile(text)
    letters = tuple(-ord(letter) for letter in ",".join(name.attributes))
    # The key of a text without attributes is the greatest: the shorter of two texts comes last.
    return (-name.slices, -name.compute, *letters, 1)


def flattened(counts: tuple[tuple[str, int], ...]) -> tuple[str, ...]:
    """The name of each instance, in the order of creation."""
    names = [name for name, count in sorted(counts) for _ in range(count)]
    return tuple(sorted(names, key=creation_order))


def _fields(text: str) -> tuple[int, int, int]:
    parts = text.split(".", 2)
    if len(parts) == 3:
        return _number(parts[0], "c"), _number(parts[1], "g"), _number(parts[2], "gb")
    if len(parts) == 2:
        slices = _number(parts[0], "g")
        return slices, slices, _number(parts[1], "gb")
    raise MigNameError("parsed wrong number of fields, expected 2 or 3")


def _number(text: str, unit: str) -> int:
    if text.strip() != text:
        raise MigNameError(f"leading or trailing spaces on '%d{unit}'")
    if not text.endswith(unit):
        raise MigNameError(f"missing '{unit}' from '%d{unit}'")
    digits = text.removesuffix(unit)
    if not _FIELD.fullmatch(digits) or len(digits) > 9:
        raise MigNameError(f"malformed number in '%d{unit}'")
    return int(digits)


def _attributes(text: str) -> tuple[str, ...]:
    found: list[str] = []
    for one in text.split(","):
        if one in found:
            raise MigNameError("non unique attribute in list")
        if not one:
            raise MigNameError("empty attribute in list")
        if one.strip() != one:
            raise MigNameError("leading or trailing spaces in attribute")
        if one[0].isdigit():
            raise MigNameError("attribute begins with a number")
        if not _ATTRIBUTE.fullmatch(one):
            raise MigNameError("non alpha-numeric character or digit in attribute")
        found.append(one)
    return tuple(found)
