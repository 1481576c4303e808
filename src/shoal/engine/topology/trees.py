"""Builds the trees of a cluster's topologies, and keeps them until labels change."""

from __future__ import annotations

from shoal.engine.cluster import Cluster
from shoal.engine.groups import TopologyRequirement
from shoal.engine.topology.tree import Tree

_MOST = 64


class Trees:
    """One tree per list of levels, shared by all that name it."""

    __slots__ = ("_by_levels", "_cluster")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._by_levels: dict[tuple[str, ...], Tree] = {}

    def of(self, requirement: TopologyRequirement) -> Tree | None:
        """The tree a wish speaks of, up to date; None when there is no such topology."""
        if requirement.topology:
            facts = self._cluster.topologies.get(requirement.topology)
            return None if facts is None else self.over(facts.levels)
        return self.over(tuple(dict.fromkeys(key for key in _keys(requirement) if key)))

    def over(self, levels: tuple[str, ...]) -> Tree:
        """The tree of these levels, outermost first."""
        tree = self._by_levels.get(levels)
        if tree is None:
            if len(self._by_levels) >= _MOST:
                self._by_levels.clear()
            tree = self._by_levels[levels] = Tree(self._cluster, levels)
        tree.refresh()
        return tree


def _keys(requirement: TopologyRequirement) -> tuple[str, ...]:
    """Labels without a topology, the widest condition outermost."""
    return requirement.required, requirement.slice_level, requirement.preferred
