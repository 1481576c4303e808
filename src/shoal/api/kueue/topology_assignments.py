"""Topology assignments of admitted pod sets: domains and the number of pods in each, compressed.

An assignment may name ten thousand nodes, so v1beta2 packs it: domains come in slices, what all domains of a slice have
in common is written once, and of names only the part that differs. `domains()` unpacks.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Annotated

from msgspec import Meta, field

from shoal.api.kueue.lists import check_most
from shoal.api.wire import ApiStruct
from shoal.units.errors import UserError, Where

MOST_SLICES = 1000
MOST_LEVELS = 16
MOST_DOMAINS = 100_000

Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]

Domain = tuple[tuple[str, ...], int]
"""(values of the levels, pods)"""


class IndividualValues(ApiStruct, frozen=True):
    """One value for each domain: prefix, root, suffix."""

    prefix: str = ""
    suffix: str = ""
    roots: tuple[str, ...] = ()


class LevelValues(ApiStruct, frozen=True):
    """The values of one level: one for all domains of the slice, or one for each."""

    universal: str | None = None
    individual: IndividualValues | None = None

    def value(self, index: int) -> str:
        if self.individual is None:
            return self.universal or ""
        return self.individual.prefix + self.individual.roots[index] + self.individual.suffix


class PodCounts(ApiStruct, frozen=True):
    universal: Count | None = None
    individual: tuple[Count, ...] | None = None

    def count(self, index: int) -> int:
        return (self.universal or 0) if self.individual is None else self.individual[index]


class AssignmentSlice(ApiStruct, frozen=True):
    domain_count: Count
    values_per_level: tuple[LevelValues, ...] = ()
    pod_counts: PodCounts = field(default_factory=PodCounts)

    def check(self, levels: int, where: Where) -> None:
        if not 1 <= self.domain_count <= MOST_DOMAINS:
            what = f"must be 1 to {MOST_DOMAINS}, got {self.domain_count}"
            raise UserError(what, where=where.below("domainCount"))
        _check_values(len(self.values_per_level), levels, where.below("valuesPerLevel"))
        for index, level in enumerate(self.values_per_level):
            roots = None if level.individual is None else level.individual.roots
            _check_choice(level.universal, roots, self.domain_count, where.below(f"valuesPerLevel[{index}]"))
        counts = self.pod_counts
        _check_choice(counts.universal, counts.individual, self.domain_count, where.below("podCounts"))


class ListedDomain(ApiStruct, frozen=True):
    values: tuple[str, ...]
    count: Count


class TopologyAssignment(ApiStruct, frozen=True):
    levels: tuple[str, ...]
    slices: tuple[AssignmentSlice, ...] = ()
    listed: tuple[ListedDomain, ...] = field(default=(), name="domains")
    """The unpacked spelling of v1beta1, which people also write by hand."""

    def domains(self) -> tuple[Domain, ...]:
        """In the order in which they are written, which is not always that of their names."""
        unpacked = (
            (tuple(level.value(index) for level in piece.values_per_level), piece.pod_counts.count(index))
            for piece in self.slices
            for index in range(piece.domain_count)
        )
        return (*unpacked, *((domain.values, domain.count) for domain in self.listed))

    def check(self, where: Where) -> None:
        """What unpacking relies on. Without it one number could represent more domains than memory holds."""
        check_most(self.slices, MOST_SLICES, where.below("slices"))
        check_most(self.levels, MOST_LEVELS, where.below("levels"))
        for index, piece in enumerate(self.slices):
            piece.check(len(self.levels), where.below(f"slices[{index}]"))
        for index, domain in enumerate(self.listed):
            _check_values(len(domain.values), len(self.levels), where.below(f"domains[{index}].values"))


def _check_choice(universal: object, individual: Sized | None, wanted: int, where: Where) -> None:
    if (universal is None) == (individual is None):
        raise UserError("exactly one of universal and individual is required", where=where)
    if individual is not None and len(individual) != wanted:
        what = f"must be one for each of the {wanted} domains, got {len(individual)}"
        raise UserError(what, where=where.below("individual"))


def _check_values(found: int, levels: int, where: Where) -> None:
    if found != levels:
        raise UserError(f"must have one entry for each of the {levels} levels, got {found}", where=where)
