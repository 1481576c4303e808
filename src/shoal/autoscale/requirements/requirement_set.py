"""Represents what several requirements admit together, label by label, and whether an offer satisfies a request.

A set is a value; adding to it makes another. Two requirements on one label are intersected, and old label names mean
the current ones, so a set has one entry for each label.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from shoal.autoscale.requirements.admitted import ANY, AdmittedValues, admitted_values, only
from shoal.autoscale.requirements.labels import current_label


class RequirementSet:
    """What is admitted of each label; a label without an entry is undefined."""

    __slots__ = ("_by_key",)

    def __init__(self, by_key: Mapping[str, AdmittedValues] | None = None) -> None:
        self._by_key: Mapping[str, AdmittedValues] = by_key or {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_key)

    def __contains__(self, key: str) -> bool:
        return key in self._by_key

    def __len__(self) -> int:
        return len(self._by_key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RequirementSet) and self._by_key == other._by_key

    def __hash__(self) -> int:
        return hash(frozenset(self._by_key.items()))

    def __repr__(self) -> str:
        return f"RequirementSet({'; '.join(f'{key} {each}' for key, each in sorted(self._by_key.items()))})"

    def get(self, key: str) -> AdmittedValues:
        """What is admitted of the label; everything where it is undefined."""
        return self._by_key.get(key, ANY)

    def items(self) -> Iterable[tuple[str, AdmittedValues]]:
        return self._by_key.items()

    def with_values(self, key: str, admitted: AdmittedValues) -> RequirementSet:
        """Both what this set admits of the label and `admitted`."""
        key = current_label(key)
        known = self._by_key.get(key)
        return RequirementSet({**self._by_key, key: admitted if known is None else known.intersection(admitted)})

    def with_all(self, other: RequirementSet) -> RequirementSet:
        """What both sets admit."""
        if not other._by_key:
            return self
        if not self._by_key:
            return other
        merged = dict(self._by_key)
        for key, admitted in other._by_key.items():
            known = merged.get(key)
            merged[key] = admitted if known is None else known.intersection(admitted)
        return RequirementSet(merged)

    def without(self, key: str) -> RequirementSet:
        """The same, with this label undefined."""
        return RequirementSet({name: admitted for name, admitted in self._by_key.items() if name != key})

    def incompatible_key(self, wanted: RequirementSet, may_be_undefined: Collection[str] = ()) -> str | None:
        """The first label by which this offer does not satisfy what is wanted; None if it does.

        A label that the offer leaves undefined must be one that it may leave so, or one whose absence is wanted.
        """
        for key, admitted in wanted._by_key.items():
            offered = self._by_key.get(key)
            if offered is None:
                if key not in may_be_undefined and not admitted.is_met_by_absence():
                    return key
            elif not offered.is_compatible(admitted):
                return key
        return None

    def is_compatible(self, wanted: RequirementSet, may_be_undefined: Collection[str] = ()) -> bool:
        """Whether this offer can satisfy what is wanted."""
        return self.incompatible_key(wanted, may_be_undefined) is None

    def intersects(self, other: RequirementSet) -> bool:
        """Whether the labels that both define are compatible."""
        return all(
            self._by_key[key].is_compatible(admitted) for key, admitted in other._by_key.items() if key in self._by_key
        )

    def min_values(self) -> dict[str, int]:
        """How many different values of a label the choice must keep, where a number is asked for."""
        return {key: each.min_values for key, each in self._by_key.items() if each.min_values is not None}


def requirement_set(requirements: Iterable[tuple[str, AdmittedValues]]) -> RequirementSet:
    """The set of requirements, each a label and what is admitted of it."""
    by_key: dict[str, AdmittedValues] = {}
    for name, admitted in requirements:
        key = current_label(name)
        by_key[key] = by_key[key].intersection(admitted) if key in by_key else admitted
    return RequirementSet(by_key)


def requirements_of_labels(labels: Mapping[str, str]) -> RequirementSet:
    """Exactly these labels, as a node has them."""
    return requirement_set((key, only(value)) for key, value in labels.items())


def requirements_of_selector(selector: Mapping[str, str]) -> RequirementSet:
    """A `nodeSelector`."""
    return requirement_set((key, admitted_values("In", (value,))) for key, value in selector.items())
