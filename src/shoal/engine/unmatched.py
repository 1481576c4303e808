"""Conditions that no node can meet, because nobody has the label or its value: nearly always a typing error.

`A100-SXM4-80GB` never matches `NVIDIA-A100-SXM4-80GB`, and "didn't match node affinity" does not say why. Here each
such condition is named with what comes nearest among the labels that nodes do have.

Rejected: refusing the manifest. A fleet that scales from zero has no such label yet, and all is well.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

import msgspec
import numpy as np

from shoal.api.node_affinity import NodeRule
from shoal.api.requirement import Requirement
from shoal.engine.cluster import Cluster

_MOST_NEAR = 3
_LEAST_TYPED = 3
"""Shorter text is inside of nearly everything."""


class Unmatched(msgspec.Struct, frozen=True):
    """A condition without a node. `near` are values, or keys where no node has the key."""

    key: str
    values: tuple[str, ...]
    has_key: bool
    near: tuple[str, ...] = ()


def unmatched(cluster: Cluster, rule: NodeRule) -> tuple[Unmatched, ...]:
    """The conditions of the rule that leave no node at all; a term matters only if every term has such a one."""
    found = list(_of(cluster, rule.always))
    if rule.terms:
        by_term = [list(_of(cluster, term.match_expressions)) for term in rule.terms]
        if all(by_term):
            found += [each for term in by_term for each in term]
    return tuple(dict.fromkeys(found))


def _of(cluster: Cluster, requirements: Iterable[Requirement]) -> Iterator[Unmatched]:
    for requirement in requirements:
        if requirement.operator not in ("In", "Exists", "Gt", "Lt"):
            continue
        values = _values(cluster, requirement.key)
        if not values:
            keys = [key for key in cluster.labels.keys() if _values(cluster, key)]  # noqa: SIM118
            yield Unmatched(requirement.key, requirement.values, False, _near(requirement.key, keys))
        elif requirement.operator == "In" and not values.intersection(requirement.values):
            near = dict.fromkeys(name for value in requirement.values for name in _near(value, values))
            yield Unmatched(requirement.key, requirement.values, True, tuple(near)[:_MOST_NEAR])


def _values(cluster: Cluster, key: str) -> frozenset[str]:
    """Values that nodes have now."""
    if key not in cluster.labels.keys():  # noqa: SIM118
        return frozenset()
    rows = cluster.alive[: cluster.rows].nonzero()[0]
    column = cluster.labels.column(key)
    codes: list[int] = np.unique(column.codes.take(rows)).tolist()
    return frozenset(column.values[code] for code in codes if code)


def _near(text: str, known: Iterable[str]) -> tuple[str, ...]:
    """What contains it comes before what merely looks like it."""
    lower = {name.lower(): name for name in sorted(known)}
    typed = text.lower()
    inside = [name for low, name in lower.items() if min(len(typed), len(low)) >= _LEAST_TYPED and _within(typed, low)]
    alike = [lower[low] for low in difflib.get_close_matches(typed, lower, n=_MOST_NEAR)]
    return tuple(dict.fromkeys([*inside, *alike]))[:_MOST_NEAR]


def _within(one: str, other: str) -> bool:
    return one in other or other in one
