"""Finds conditions that no node can meet, because no node has the label or its value: nearly always a typing error.

`A100-SXM4-80GB` never matches `NVIDIA-A100-SXM4-80GB`, and "didn't match node affinity" does not say why. Here each
such condition is named with what comes nearest among the labels that nodes do have.

Rejected: refusing the manifest. A fleet that scales from zero has no such label yet, and all is well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice

import msgspec
import numpy as np

from shoal.api.node_affinity import NodeRule
from shoal.api.requirement import Requirement
from shoal.data.gpus import PRODUCT_LABEL, family, meant_products
from shoal.engine.cluster import Cluster
from shoal.engine.pod_rules import PodRules
from shoal.units.near_texts import MOST_NEAR, near_keys, near_texts

_LONGEST_NUMBER = 20
_MOST = 20
"""Conditions that are reported, and values of each."""

_KNOWN_VALUES: Mapping[str, frozenset[str]] = {
    "kubernetes.io/arch": frozenset({"386", "amd64", "arm", "arm64", "ppc64le", "riscv64", "s390x"}),
    "kubernetes.io/os": frozenset({"darwin", "linux", "windows"}),
}
"""Those for which Kubernetes has nodes."""


class Unmatched(msgspec.Struct, frozen=True):
    """A condition without a node. `near` are values, or keys where no node has the key. Of GPUs the first is the
    name in full where it was given without its vendor."""

    key: str
    values: tuple[str, ...]
    has_key: bool
    near: tuple[str, ...] = ()
    present: tuple[str, ...] = ()
    """The values that nodes have of the key; empty where these are very many."""
    operator: str = "In"


def unmatched(cluster: Cluster, rule: NodeRule) -> tuple[Unmatched, ...]:
    """The conditions of the rule that leave no node at all; a term matters only if every term has such a one. Of very
    many the first, to keep the message short."""
    labels = _NodeLabels(cluster)
    found = list(filter(labels.lack, rule.always))
    if rule.terms:
        by_term = [list(filter(labels.lack, term.match_expressions)) for term in rule.terms]
        if all(by_term):
            found += chain.from_iterable(by_term)
    return tuple(labels.describe(each) for each in islice(dict.fromkeys(found), _MOST))


def unmatched_levels(cluster: Cluster, levels: Iterable[str]) -> tuple[Unmatched, ...]:
    """The levels of a topology (each the key of a node label) that no node has."""
    labels = _NodeLabels(cluster)
    asked = (Requirement(level, "Exists") for level in dict.fromkeys(levels) if level)
    return tuple(labels.describe(each) for each in islice(filter(labels.lack, asked), _MOST))


def untold_near(conditions: Iterable[Unmatched]) -> tuple[Unmatched, ...]:
    """The same conditions without the near labels, which do not help."""
    return tuple(msgspec.structs.replace(condition, near=()) for condition in conditions)


def levels_of(rules: PodRules) -> Iterator[str]:
    """The topology keys without which no node is feasible for a pod with these rules."""
    yield from (term.key for term in rules.affinity)
    yield from (spread.key for spread in rules.spread if spread.hard)


class _NodeLabels:
    """Those that nodes have now, looked up once: a user may write thousands of conditions."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._rows = cluster.alive[: cluster.rows].nonzero()[0]
        self._values: dict[str, frozenset[str]] = {}

    def lack(self, requirement: Requirement) -> bool:
        """Whether it leaves no node for want of a label."""
        if requirement.operator not in ("In", "Exists", "Gt", "Lt"):
            return False
        values = self._of(requirement.key)
        if not values or requirement.operator == "Exists":
            return not values
        if requirement.operator == "In":
            return values.isdisjoint(requirement.values)
        return not any(requirement.matches({requirement.key: value}) for value in values)

    def describe(self, requirement: Requirement) -> Unmatched:
        """Describe a requirement that leaves no node."""
        asked = requirement.values[:_MOST]
        values = self._of(requirement.key)
        if not values:
            keys = [key for key in self._cluster.labels.keys() if self._of(key)]  # noqa: SIM118
            return Unmatched(requirement.key, asked, False, near_keys(requirement.key, keys))
        present = tuple(sorted(values, key=_order)) if len(values) <= _MOST else ()
        if requirement.operator != "In":
            return Unmatched(requirement.key, asked, True, (), present, requirement.operator)
        near = dict.fromkeys(name for value in asked for name in _meant(requirement.key, value, values))
        return Unmatched(requirement.key, asked, True, tuple(near)[:MOST_NEAR], present)

    def _of(self, key: str) -> frozenset[str]:
        found = self._values.get(key)
        if found is None:
            found = self._values[key] = self._read(key)
        return found

    def _read(self, key: str) -> frozenset[str]:
        if key not in self._cluster.labels.keys():  # noqa: SIM118
            return frozenset()
        column = self._cluster.labels.column(key)
        codes: list[int] = np.unique(column.codes.take(self._rows)).tolist()
        return frozenset(column.values[code] for code in codes if code)


def _order(value: str) -> tuple[int, int, str]:
    """Numbers by their size, before texts."""
    is_number = value.isascii() and value.isdigit() and len(value) < _LONGEST_NUMBER
    return (0, int(value), value) if is_number else (1, 0, value)


def _meant(key: str, asked: str, present: Iterable[str]) -> tuple[str, ...]:
    """Of GPUs another model is not meant, however much its name looks like the one that was asked for. Neither is
    another architecture or operating system, where the one that was asked for exists."""
    if key == PRODUCT_LABEL and family(asked):
        return meant_products(asked, present)
    return () if asked in _KNOWN_VALUES.get(key, ()) else near_texts(asked, present)
