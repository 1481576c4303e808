"""Nodes that failed under workloads whose topology assignment names them: told in `status.unhealthyNodes`, from which
the next cycle gives them another node or stops them.

A node that is gone has failed. One that is not ready, or that the pods do not tolerate any more, has failed once no pod
of the workload runs there: until then it may come back. One that is well again is taken off the list. A workload of a
single pod is left alone: who replaces its pod makes a new workload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from shoal.api.taints import Taint, Toleration, untolerated
from shoal.api.topology import HOSTNAME_LABEL
from shoal.controllers.queues.book import Book
from shoal.controllers.queues.telling import Telling
from shoal.engine.cluster import Cluster
from shoal.engine.queues.held import Held
from shoal.engine.queues.state import Queues
from shoal.engine.queues.topology_facts import QueueNode

_ALONE = "Pod"
_Standing = tuple[bool, tuple[Taint, ...]]


class FailedNodes:
    """`there` names the pods of a workload that are in the facts."""

    def __init__(self, book: Book, telling: Telling, cluster: Cluster, there: Callable[[str], Iterable[str]]) -> None:
        self._book = book
        self._telling = telling
        self._cluster = cluster
        self._there = there
        self._generation = -1
        self._present: set[str] = set()
        self._doubtful: dict[str, _Standing] = {}
        self._is_due = True

    def stir(self) -> None:
        """Pods have ended, or workloads hold something else."""
        self._is_due = self._is_due or bool(self._doubtful)

    def find(self) -> None:
        self._look_at_nodes()
        if not self._is_due:
            return
        self._is_due = False
        queues = self._book.queues
        for held in list(queues.held.values()):
            if held.topology_flavors and held.facts.admitted and not held.evicted:
                self._judge(queues, held)

    # Inside

    def _look_at_nodes(self) -> None:
        queues = self._book.queues
        if self._generation == queues.nodes_generation:
            return
        self._generation = queues.nodes_generation
        doubtful = {
            name: (node.ready, node.taints) for name, node in queues.nodes.items() if not node.ready or node.taints
        }
        if doubtful != self._doubtful or queues.nodes.keys() != self._present:
            self._doubtful, self._present, self._is_due = doubtful, set(queues.nodes), True

    def _judge(self, queues: Queues, held: Held) -> None:
        sight = self._book.sights.get(held.key)
        if sight is None or sight.owner[0] == _ALONE or self._book.is_deciding(held.key):
            return
        known = held.facts.unhealthy_nodes
        failed = dict.fromkeys(_failed(queues, held, self._nodes_in_use(held.key)))
        now = tuple(name for name in known if name in failed) + tuple(name for name in failed if name not in known)
        if now != known:
            self._telling.nodes_failed(sight, now)

    def _nodes_in_use(self, workload: str) -> set[str]:
        """Those on which pods of it run and are not told to end."""
        cluster = self._cluster
        pods = (cluster.pods.get(key) for key in self._there(workload))
        return {cluster.names[pod.row] for pod in pods if pod is not None and not pod.leaving}


def _failed(queues: Queues, held: Held, in_use: set[str]) -> Iterator[str]:
    wanted = {pod_set.name: pod_set for pod_set in held.facts.pod_sets}
    for each in held.admission.pod_sets:
        if each.topology is None or each.topology.levels[-1:] != (HOSTNAME_LABEL,):
            continue
        pod_set = wanted.get(each.name)
        tolerations = list(pod_set.tolerations) if pod_set is not None else []
        for flavor in each.flavors.values():
            tolerations += queues.flavors[flavor].tolerations if flavor in queues.flavors else ()
        for values, _ in each.topology.domains:
            node = queues.nodes.get(values[-1])
            if node is None or (values[-1] not in in_use and not _is_well(node, tolerations)):
                yield values[-1]


def _is_well(node: QueueNode, tolerations: list[Toleration]) -> bool:
    return node.ready and untolerated(node.taints, tuple(tolerations)) is None
