"""Converts Volcano's HyperNodes to node labels: one label per tier, so that a network is a topology like any other.

A node carries, for every tier, the HyperNode of that tier that it is in. Where a tier is missing above it, the next
faster one replaces it: a group that may spread over tier 2 may stay inside a lone HyperNode of tier 1. Above all tiers
is one domain with every node, as Volcano has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shoal.api.hyper_nodes import HyperNode, Member
from shoal.engine.groups import TopologyFacts
from shoal.units.errors import UserError, Where, excerpt

TOPOLOGY = "hypernodes"
TOP = "shoal.dev/hypernode-top"
_EVERYTHING = "all"


def tier_label(tier: int) -> str:
    return f"shoal.dev/hypernode-tier-{tier}"


class HyperTree:
    """All HyperNodes over all nodes."""

    def __init__(
        self, hyper_nodes: Sequence[tuple[HyperNode, Where]], nodes: Iterable[tuple[str, Mapping[str, str]]]
    ) -> None:
        self._by_name = {node.metadata.name: (node, where) for node, where in hyper_nodes}
        self._nodes = list(nodes) if hyper_nodes else []
        self._inside: dict[str, frozenset[str]] = {}
        self.tiers = sorted({node.spec.tier for node, _ in hyper_nodes})
        """The fastest first."""
        self.warnings: list[str] = []
        self._labels: dict[str, dict[str, str]] = {}
        if hyper_nodes:
            self._label()

    def labels_of(self, node: str) -> Mapping[str, str]:
        """What the node gets beside its own labels."""
        return self._labels.get(node, {})

    def facts(self) -> TopologyFacts | None:
        """The slowest tier is the outermost level."""
        if not self.tiers:
            return None
        return TopologyFacts(TOPOLOGY, (TOP, *(tier_label(tier) for tier in reversed(self.tiers))))

    def tier_named(self, name: str) -> int | None:
        return next((node.spec.tier for node, _ in self._by_name.values() if node.spec.tier_name == name), None)

    def tier_names(self) -> list[str]:
        return sorted({node.spec.tier_name for node, _ in self._by_name.values() if node.spec.tier_name})

    def _label(self) -> None:
        by_tier: dict[int, dict[str, str]] = {tier: {} for tier in self.tiers}
        for name, (hyper, where) in sorted(self._by_name.items()):
            there = by_tier[hyper.spec.tier]
            for node in sorted(self._members(name, ())):
                first = there.setdefault(node, name)
                if first != name:
                    self.warnings.append(
                        f"{where}: node {node} is in {first} of the same tier already, and counts there"
                    )
        for node, _ in self._nodes:
            labels = {TOP: _EVERYTHING}
            inner = ""
            for tier in self.tiers:
                inner = by_tier[tier].get(node, inner)
                if inner:
                    labels[tier_label(tier)] = inner
            self._labels[node] = labels

    def _members(self, name: str, path: tuple[str, ...]) -> frozenset[str]:
        """The nodes below a HyperNode."""
        known = self._inside.get(name)
        if known is not None:
            return known
        hyper, where = self._by_name[name]
        found: set[str] = set()
        for index, member in enumerate(hyper.spec.members):
            here = where.with_path(f"spec.members[{index}]")
            found.update(self._of_member(member, name, path, here))
        inside = self._inside[name] = frozenset(found)
        return inside

    def _of_member(self, member: Member, name: str, path: tuple[str, ...], where: Where) -> Iterable[str]:
        if member.is_node():
            return [node for node, labels in self._nodes if member.selector.matches(node, labels)]
        found: set[str] = set()
        for inner, (hyper, _) in self._by_name.items():
            if not member.selector.matches(inner, hyper.metadata.labels):
                continue
            if inner == name or inner in path:
                raise UserError(f"{excerpt(inner)} would be inside itself", where=where)
            found |= self._members(inner, (*path, name))
        return found
