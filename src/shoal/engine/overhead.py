"""Room that a node owes to DaemonSets whose pod is not there yet.

A fresh node looks empty and is not: exporters, plugins and log shippers will come, each on every node it may run on.
Filling that room with other work leaves the DaemonSet's pod pending, so it is set aside until the pod is bound. What
the system itself keeps is already taken off a node's allocatable amounts.
"""

from __future__ import annotations

from shoal.api.taints import Toleration
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.filters import STATIC_FILTERS

_CONDITIONS = (
    "not-ready",
    "unreachable",
    "disk-pressure",
    "memory-pressure",
    "pid-pressure",
    "unschedulable",
)

DAEMON_TOLERATIONS = tuple(
    Toleration(key=f"node.kubernetes.io/{condition}", operator="Exists") for condition in _CONDITIONS
)
"""The DaemonSet controller adds these to its pods: they run on nodes that take nobody else."""


class DaemonSets:
    """Which node owes which DaemonSet."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._asks: dict[str, Ask] = {}
        self._owed: dict[str, set[int]] = {}
        self._awaited: dict[str, tuple[str, Ask]] = {}
        """Pods that wait for the room set aside for them, and their DaemonSets."""

    def put(self, name: str, ask: Ask) -> None:
        """A DaemonSet appeared or changed."""
        if name in self._asks:
            self.drop(name)
        tolerations = (*ask.tolerations, *DAEMON_TOLERATIONS)
        self._asks[name] = _with_tolerations(ask, tolerations)
        self._owed[name] = set()
        self._settle_all(name)

    def drop(self, name: str) -> None:
        ask = self._asks.pop(name, None)
        if ask is None:
            return
        taken = self._cluster.charge(ask)
        for row in self._owed.pop(name):
            self._cluster.owe(row, taken, -1)

    def await_pod(self, key: str, name: str, ask: Ask) -> None:
        """A DaemonSet's own pod is in line: the room on the node it is meant for is no longer withheld from it."""
        self._awaited[key] = name, ask
        self._settle_all(name)

    def forget_pod(self, key: str) -> None:
        """The pod has gone, or has arrived on a node."""
        awaited = self._awaited.pop(key, None)
        if awaited is not None:
            self._settle_all(awaited[0])

    def settle_row(self, row: int) -> None:
        """The node appeared or changed: compare what it owes with what it should."""
        for name in self._asks:
            self.settle(name, row)

    def forget_row(self, row: int) -> None:
        """The node is about to leave."""
        for name, owed in self._owed.items():
            if row in owed:
                owed.discard(row)
                self._cluster.owe(row, self._cluster.charge(self._asks[name]), -1)

    def settle(self, name: str, row: int) -> None:
        """Owe exactly when the DaemonSet may run on the node and does not yet."""
        ask = self._asks.get(name)
        if ask is None:
            return
        owed = self._owed[name]
        due = self._may_run(ask, row) and not self._runs(name, row) and not self._is_awaited(name, row)
        if due == (row in owed):
            return
        self._cluster.owe(row, self._cluster.charge(ask), 1 if due else -1)
        if due:
            owed.add(row)
        else:
            owed.discard(row)

    def _settle_all(self, name: str) -> None:
        for row in self._cluster.row_of.values():
            self.settle(name, row)

    def _is_awaited(self, name: str, row: int) -> bool:
        return any(whose == name and self._may_run(ask, row) for whose, ask in self._awaited.values())

    def _may_run(self, ask: Ask, row: int) -> bool:
        cluster = self._cluster
        rows = cluster.all_rows()[row : row + 1]
        return all(
            verdicts is None or bool(verdicts[0])
            for verdicts in (rule.passes(cluster, ask, rows) for rule in STATIC_FILTERS)
        )

    def _runs(self, name: str, row: int) -> bool:
        pods = self._cluster.pods
        return any(pods[key].daemon_set == name for key in self._cluster.pods_on(row))


def _with_tolerations(ask: Ask, tolerations: tuple[Toleration, ...]) -> Ask:
    return Ask(
        requests=ask.requests,
        devices=None,
        gpu_models=ask.gpu_models,
        nodes=ask.nodes,
        preferred=ask.preferred,
        tolerations=tolerations,
        host_ports=ask.host_ports,
        node_name=ask.node_name,
    )
