"""Counts the different label values over instance types, for requirements that ask for a least number of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec


class MinValues(msgspec.Struct, frozen=True):
    """Whether the instance types have enough different values."""

    needed: int | None
    """How many leading types are enough; None if all of them are not."""
    missing: Mapping[str, int] = {}
    """The labels with too few values, and how many they have."""

    @property
    def is_satisfied(self) -> bool:
        return self.needed is not None


def min_values_of(types: Iterable[Mapping[str, Collection[str]]], least: Mapping[str, int]) -> MinValues:
    """`types`: the values of each label, type by type; `least`: the least number of values of a label."""
    found: dict[str, set[str]] = {key: set() for key in least}
    if not least:
        return MinValues(0)
    for count, values in enumerate(types, start=1):
        for key, seen in found.items():
            seen.update(values.get(key, ()))
        if all(len(found[key]) >= number for key, number in least.items()):
            return MinValues(count)
    return MinValues(None, {key: len(found[key]) for key, number in least.items() if len(found[key]) < number})
