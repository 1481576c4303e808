"""Spreads new nodes over similar groups, and decides which groups are similar.

Each node goes to the smallest group that has not reached its maximum. Similar groups have nodes of nearly the same
capacity, of nearly the same allocatable and free amounts, and with the same labels but for their places.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from shoal.units.errors import UserError

_IGNORED_LABELS: Final = frozenset(
    {
        "kubernetes.io/hostname",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "beta.kubernetes.io/fluentd-ds-ready",
        "kops.k8s.io/instancegroup",
    }
)
_MEMORY: Final = "memory"


class GroupSize(msgspec.Struct, frozen=True):
    """A group, its target size and its maximum."""

    group: str
    target: int
    most: int


class NodeProfile(msgspec.Struct, frozen=True):
    """A typical node of a group."""

    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]
    labels: Mapping[str, str] = {}
    pod_requests: Mapping[str, int] = {}


class SimilarityRatios(msgspec.Struct, frozen=True):
    """By how much amounts may differ, as a part of the larger one."""

    capacity_memory: float = 0.015
    allocatable: float = 0.05
    free: float = 0.05


_USUAL_RATIOS: Final = SimilarityRatios()


def balanced(groups: Sequence[GroupSize], new_nodes: int) -> dict[str, int]:
    """The new target of each group that grows; raises UserError without groups."""
    if not groups:
        raise UserError("there are no groups to balance new nodes over")
    sizes = {each.group: each.target for each in groups if each.target < each.most}
    most = {each.group: each.most for each in groups}
    grown: dict[str, int] = {}
    for _ in range(new_nodes):
        if not sizes:
            break
        group = min(sizes, key=lambda name: sizes[name])
        sizes[group] += 1
        grown[group] = sizes[group]
        if sizes[group] >= most[group]:
            del sizes[group]
    return grown


def are_similar(
    one: NodeProfile,
    other: NodeProfile,
    ratios: SimilarityRatios = _USUAL_RATIOS,
    ignored_labels: Collection[str] = (),
) -> bool:
    """Whether groups with such nodes are balanced with each other."""
    if one.capacity.keys() != other.capacity.keys():
        return False
    for name, amount in one.capacity.items():
        ratio = ratios.capacity_memory if name == _MEMORY else 0.0
        if not _is_within(amount, other.capacity[name], ratio):
            return False
    if not _are_within(one.allocatable, other.allocatable, ratios.allocatable):
        return False
    if not _are_within(_free(one), _free(other), ratios.free):
        return False
    return _compared(one.labels, ignored_labels) == _compared(other.labels, ignored_labels)


def _free(node: NodeProfile) -> dict[str, int]:
    return {name: amount - node.pod_requests.get(name, 0) for name, amount in node.allocatable.items()}


def _are_within(one: Mapping[str, int], other: Mapping[str, int], ratio: float) -> bool:
    return one.keys() == other.keys() and all(_is_within(amount, other[name], ratio) for name, amount in one.items())


def _is_within(one: int, other: int, ratio: float) -> bool:
    larger, smaller = max(one, other), min(one, other)
    return larger - smaller <= larger * ratio


def _compared(labels: Mapping[str, str], ignored: Iterable[str]) -> dict[str, str]:
    left_out = _IGNORED_LABELS.union(ignored)
    return {key: value for key, value in labels.items() if key not in left_out}
