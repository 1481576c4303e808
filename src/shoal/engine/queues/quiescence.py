"""Selects the cluster queues that a cycle has to look at: those with a pending head, in trees that are active.

A tree is active while a cycle could come out differently from the one before. A tree becomes quiescent after a cycle in
which none of its workloads was admitted, preempted or became inadmissible, and no flavor search advanced; the next
event in the tree makes it active again. A search that advances may return to an earlier position; when the heads of a
tree are at positions that an earlier cycle has seen, all combinations have been tried. Either all queues of a tree are
looked at or none, because pending heads reserve capacity against each other. Trees that share nodes through a topology
count as one tree.

Rejected: quiescence per queue. A head that lost to capacity that another head only reserved would not be tried again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.quota_tree import CohortNode
from shoal.engine.queues.state import Queues

Group = str
HeadPositions = Mapping[str, Hashable]
"""Cluster queue -> its head, and how far the head's search has come."""
_MOST_SEEN = 128
_NODES: Group = "nodes"


class ActiveTrees:
    """By tree: the queues with a head, and whether the tree is inactive."""

    def __init__(self) -> None:
        self._group_of: dict[str, Group] = {}
        """By cluster queue."""
        self._active_queues: dict[Group, set[str]] = {}
        """Cluster queues with an active workload, as far as is known."""
        self._moving: set[Group] = set()
        self._seen: dict[Group, set[Hashable]] = {}
        """The states of heads in the cycles since the last change."""

    def regroup(self, queues: Queues) -> None:
        """Queues or flavors changed: all trees anew, and nothing is known to rest."""
        shared = {queue.root for queue in queues.cluster_queues.values() if _has_topology(queues, queue)}
        self._group_of = {
            name: _NODES if queue.root in shared else _tree(queue.root) for name, queue in queues.cluster_queues.items()
        }
        self._active_queues.clear()
        self._moving.clear()
        self._seen.clear()

    def add(self, name: str) -> None:
        """There is an active workload."""
        group = self._group_of.get(name)
        if group is not None:
            self._active_queues.setdefault(group, set()).add(name)
            self._stir(group)

    def remove(self, name: str) -> None:
        """There is none."""
        group = self._group_of.get(name)
        if group is not None:
            self._active_queues.get(group, set()).discard(name)

    def stir(self, name: str) -> None:
        """Something happened in its tree."""
        group = self._group_of.get(name)
        if group is not None and self._active_queues.get(group):
            self._stir(group)

    def active_queues(self) -> list[str]:
        """The queues that the next cycle has to look at."""
        return sorted(name for group in self._moving for name in self._active_queues.get(group, ()))

    def end_cycle(self, news: Iterable[str], before: HeadPositions, after: HeadPositions) -> set[str]:
        """End a cycle. Trees stay active if they have news, or if their heads are in positions of no earlier cycle.

        Returns the cluster queues whose search has repeated itself without a result."""
        unresolved: set[str] = set()
        moved = {self._group_of[name] for name in news if name in self._group_of}
        for group in self._moving - moved:
            names = [name for name in before if self._group_of.get(name) == group]
            earlier, later = (tuple((name, each[name]) for name in names) for each in (before, after))
            seen = self._seen.setdefault(group, set())
            if later == earlier:
                continue
            if later in seen or len(seen) >= _MOST_SEEN:
                unresolved.update(name for name in names if before[name] != after[name])
            else:
                seen.update((earlier, later))
                moved.add(group)
        for group in self._moving - moved:
            self._seen.pop(group, None)
        self._moving = {group for group in moved if self._active_queues.get(group)}
        return unresolved

    def _stir(self, group: Group) -> None:
        self._moving.add(group)
        self._seen.pop(group, None)

    @property
    def is_any(self) -> bool:
        return any(self._active_queues.get(group) for group in self._moving)


def _tree(root: CohortNode) -> Group:
    """A cohort and a queue may have one name."""
    return f"queue {root.name}" if isinstance(root, ClusterQueue) else f"cohort {root.name}"


def _has_topology(queues: Queues, queue: ClusterQueue) -> bool:
    if "TopologyAwareScheduling" not in queues.settings.gates:
        return False
    known = queues.flavors
    return any(
        flavor.name in known and known[flavor.name].topology for group in queue.facts.groups for flavor in group.flavors
    )
