"""Stores the domains of one flavor's topology as columns: capacity of the leaves, usage, and which domains contain
which.

Domains of a level are in the order of their label values, children of one domain side by side. So a sum per domain
is one `reduceat`, a tie is broken by position, and a domain is an integer. `charge` is exact: +1 and -1 in any order
leave the same numbers.

Rejected: a tree of objects per placement, as Kueue's snapshot is. At 640 nodes, building it costs more than the answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.queues.facts import PODS, Amounts, FlavorFacts
from shoal.engine.queues.topology_facts import QueueNode, TopologyAssignment

HOSTNAME = "kubernetes.io/hostname"

MOST = 1 << 56
"""More than any node has, and far enough below what a column can count: absurd amounts are as good as this one."""

Column = NDArray[np.int64]
Path = tuple[str, ...]


class FlavorTopology:
    """Domains are named by (depth, position); the deepest are the leaves."""

    def __init__(self, flavor: FlavorFacts, levels: tuple[str, ...], nodes: Iterable[QueueNode]) -> None:
        self.flavor = flavor
        self.levels = levels
        self.by_host = bool(levels) and levels[-1] == HOSTNAME
        """Whether a leaf is one node, so that taints and labels of nodes count."""
        self.nodes: list[list[QueueNode]] = []
        """By leaf."""
        self.paths: list[list[Path]] = []
        """By depth: the label values from the top down to each domain."""
        self.bounds: list[list[int]] = []
        """By depth, leaves aside: children of domain `i` are `bounds[i]` up to `bounds[i + 1]` one level down."""
        self.starts: list[NDArray[np.intp]] = []
        """`bounds` without the end, for reductions."""
        self.capacity: dict[str, Column] = {}
        """By resource: what each leaf has besides pods that no admission accounts for."""
        self.free: dict[str, Column] = {}
        """The part of it that no assignment uses; negative where too much is assigned."""
        self.suited: dict[object, MatchingLeaves] = {}
        """Which leaves suit a pod, by what it asks of nodes."""
        self.asks: dict[object, TopologyLevelsRequest | str] = {}
        """Requests that were read against these levels."""
        self.overlaps: tuple[Overlap, ...] | None = None
        """Other flavors' use of the same nodes; None until the first look."""
        self._leaf_of: dict[str | Path, int] = {}
        self._grow(nodes)
        self._measure()

    def charge(self, assignment: TopologyAssignment, per_pod: Amounts, sign: int) -> None:
        """Count an assignment's pods in (1) or out (-1). Domains that are not here have nothing to count."""
        charged = [(self.free[name], amount) for name, amount in per_pod.items() if name in self.free and name != PODS]
        slots = self.free.get(PODS)
        for values, pods in assignment.domains:
            leaf = self.leaf(assignment.levels, values)
            if leaf is None:
                continue
            for column, amount in charged:
                column[leaf] -= sign * min(amount * pods, MOST)
            if slots is not None:
                slots[leaf] -= sign * pods

    def leaf(self, levels: tuple[str, ...], values: Path) -> int | None:
        """The leaf that an assignment means; None for one that is not here (any more)."""
        if not (levels and values):
            return None
        if self.by_host:
            return self._leaf_of.get(values[-1]) if levels[-1] == HOSTNAME else None
        return self._leaf_of.get(values) if levels == self.levels else None

    def above(self, leaf: int, depth: int) -> int:
        """The domain of that depth in which a leaf lies."""
        return self._position[depth][self.paths[-1][leaf][: depth + 1]]

    def leaves_below(self, depth: int, domain: int) -> tuple[int, int]:
        """First leaf of a domain, and the one after its last."""
        first, after = domain, domain + 1
        for bounds in self.bounds[depth:]:
            first, after = bounds[first], bounds[after]
        return first, after

    @property
    def size(self) -> int:
        """Leaves."""
        return len(self.nodes)

    @property
    def named_levels(self) -> tuple[str, ...]:
        """The levels that an assignment spells out: a host name says the rest."""
        return self.levels[-1:] if self.by_host else self.levels

    def _grow(self, nodes: Iterable[QueueNode]) -> None:
        wanted = self.flavor.labels.items()
        at: dict[Path, list[QueueNode]] = {}
        for node in nodes:
            labels = node.labels
            if node.ready and not node.unschedulable and wanted <= labels.items():
                path = tuple(labels.get(level, "") for level in self.levels)
                if all(path):
                    at.setdefault(path, []).append(node)
        leaves = sorted(at)
        self.nodes = [at[path] for path in leaves]
        self._leaf_of = {path[-1] if self.by_host else path: leaf for leaf, path in enumerate(leaves)}
        self.paths = [leaves]
        for depth in range(len(self.levels) - 1, 0, -1):
            below = self.paths[0]
            first = [i for i, path in enumerate(below) if i == 0 or path[:depth] != below[i - 1][:depth]]
            self.paths.insert(0, [below[i][:depth] for i in first])
            self.bounds.insert(0, [*first, len(below)])
            self.starts.insert(0, np.array(first, np.intp))
        self._position = [{path: i for i, path in enumerate(paths)} for paths in self.paths]

    def _measure(self) -> None:
        for leaf, nodes in enumerate(self.nodes):
            for node in nodes:
                for sign, amounts in ((1, node.allocatable), (-1, node.taken)):
                    for name, amount in amounts.items():
                        if name not in self.capacity:
                            self.capacity[name] = np.zeros(self.size, np.int64)
                        self.capacity[name][leaf] += sign * min(amount, MOST)
        self.free = {name: column.copy() for name, column in self.capacity.items()}


class Overlap(NamedTuple):
    other: FlavorTopology
    here: NDArray[np.intp]
    """Leaves of this forest."""
    there: NDArray[np.intp]
    """The same nodes' leaves in the other."""


class MatchingLeaves:
    """The answer for every leaf of a forest."""

    __slots__ = ("liking", "ok", "refusals")

    def __init__(self, leaves: int) -> None:
        self.ok: NDArray[np.bool_] | None = None
        """None: every leaf suits."""
        self.liking: Column = np.zeros(leaves, np.int64)
        """Summed weights of the preferred terms that hold there."""
        self.refusals: dict[str, int] = {}
        """Leaves refused, by rule, in the words that a refusal uses."""


class TopologyLevelsRequest(NamedTuple):
    depth: int
    """Where all pods should be in one domain."""
    slice_depth: int
    units: tuple[int, ...]
    """By depth: pods that are placed as one. At `slice_depth` and above, the size of a slice."""
    required: bool
    least: bool
    """Fill the domains with the least capacity first, instead of as few as possible."""
    balanced: bool
    by_liking: bool
    climbs: bool
    """Whether wider levels are tried before the pods are spread."""

    @property
    def size(self) -> int:
        return self.units[self.slice_depth]
