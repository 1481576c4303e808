"""Finds failed nodes in the topology assignments of Workloads and names them in `status.unhealthyNodes`; the next cycle
replaces the node or stops the Workload.

A node that is gone has failed. A node that is not ready, or has taints that the pods do not tolerate, has failed once
no pod of the Workload runs there: until then it may recover. A node that recovered is removed from the list. The
Workload of a single pod is skipped: the controller that replaces the pod creates a new Workload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from shoal.api.taints import Taint, Toleration, untolerated
from shoal.api.topology import HOSTNAME_LABEL
from shoal.controllers.queues.workload_cache import WorkloadCache
from shoal.controllers.queues.workload_status.status_reports import StatusReports
from shoal.engine.cluster import Cluster
from shoal.engine.queues.clusterqueue import AdmittedWorkload
from shoal.engine.queues.state import Queues
from shoal.engine.queues.topology_facts import QueueNode

_SINGLE_POD = "Pod"
_NodeState = tuple[bool, tuple[Taint, ...]]


class FailedNodes:
    """`pods_of` lists the pods of a Workload that are in the facts."""

    def __init__(
        self, cache: WorkloadCache, reports: StatusReports, cluster: Cluster, pods_of: Callable[[str], Iterable[str]]
    ) -> None:
        self._cache = cache
        self._reports = reports
        self._cluster = cluster
        self._pods_of = pods_of
        self._generation = -1
        self._known_nodes: set[str] = set()
        self._suspect: dict[str, _NodeState] = {}
        self._is_due = True

    def mark_due(self) -> None:
        """Pods have ended, or Workloads hold other quota."""
        self._is_due = self._is_due or bool(self._suspect)

    def find(self) -> None:
        self._update_nodes()
        if not self._is_due:
            return
        self._is_due = False
        queues = self._cache.queues
        for held in list(queues.held.values()):
            if held.topology_flavors and held.facts.admitted and not held.evicted:
                self._check(queues, held)

    # internals

    def _update_nodes(self) -> None:
        queues = self._cache.queues
        if self._generation == queues.nodes_generation:
            return
        self._generation = queues.nodes_generation
        suspect = {
            name: (node.ready, node.taints) for name, node in queues.nodes.items() if not node.ready or node.taints
        }
        if suspect != self._suspect or queues.nodes.keys() != self._known_nodes:
            self._suspect, self._known_nodes, self._is_due = suspect, set(queues.nodes), True

    def _check(self, queues: Queues, held: AdmittedWorkload) -> None:
        view = self._cache.views.get(held.key)
        if view is None or view.owner[0] == _SINGLE_POD or self._cache.is_outdated(held.key):
            return
        known = held.facts.unhealthy_nodes
        failed = dict.fromkeys(_failed(queues, held, self._nodes_in_use(held.key)))
        now = tuple(name for name in known if name in failed) + tuple(name for name in failed if name not in known)
        if now != known:
            self._reports.nodes_failed(view, now)

    def _nodes_in_use(self, workload: str) -> set[str]:
        """The nodes on which pods of the Workload run and are not terminating."""
        cluster = self._cluster
        pods = (cluster.pods.get(key) for key in self._pods_of(workload))
        return {cluster.names[pod.row] for pod in pods if pod is not None and not pod.is_terminating}


def _failed(queues: Queues, held: AdmittedWorkload, in_use: set[str]) -> Iterator[str]:
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
            if node is None or (values[-1] not in in_use and not _is_healthy(node, tolerations)):
                yield values[-1]


def _is_healthy(node: QueueNode, tolerations: list[Toleration]) -> bool:
    return node.ready and untolerated(node.taints, tuple(tolerations)) is None
