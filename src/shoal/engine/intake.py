"""How events become facts. Watches may repeat themselves, arrive late or in the wrong order between kinds: each event
is applied so that the facts end up right all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from shoal.engine.cluster import Cluster, Holding
from shoal.engine.devices.kinds import kind_of
from shoal.engine.events import (
    BudgetGone,
    BudgetSeen,
    DaemonSetGone,
    DaemonSetSeen,
    Event,
    GroupGone,
    GroupSeen,
    NamespaceSeen,
    NodeGone,
    NodeSeen,
    PodArrived,
    PodBound,
    PodGone,
    PodRejected,
    TopologyGone,
    TopologySeen,
)
from shoal.engine.overhead import DaemonSets

K = TypeVar("K")
V = TypeVar("V")


class Intake:
    """Applies events to one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._daemon_sets = DaemonSets(cluster)
        self._strays: dict[str, dict[str, PodBound]] = {}
        """Pods seen on nodes not seen yet, by node."""
        self._stray_node: dict[str, str] = {}
        # A look-up by type: a million events a minute pass here, and a chain of cases is walked for each.
        self._handlers: dict[type[Event], Callable[[Any], None]] = {
            PodArrived: self._arrived,
            PodBound: self._bound,
            PodRejected: self._rejected,
            PodGone: self._pod_gone,
            NodeSeen: self._node_seen,
            NodeGone: self._node_gone,
            DaemonSetSeen: lambda event: self._daemon_sets.put(event.name, event.ask),
            DaemonSetGone: lambda event: self._daemon_sets.drop(event.name),
            GroupSeen: lambda event: cluster.gangs.put(event.group),
            GroupGone: lambda event: cluster.gangs.drop(event.name),
            TopologySeen: lambda event: cluster.topologies.update({event.topology.name: event.topology}),
            TopologyGone: lambda event: _forget(cluster.topologies, event.name),
            BudgetSeen: lambda event: cluster.budgets.update(
                {(event.budget.namespace, event.budget.name): event.budget}
            ),
            BudgetGone: lambda event: _forget(cluster.budgets, (event.namespace, event.name)),
            NamespaceSeen: lambda event: cluster.namespaces.update({event.name: dict(event.labels)}),
        }

    def apply(self, event: Event) -> None:
        """Take note of what happened."""
        self._handlers[type(event)](event)

    def _pod_gone(self, event: PodGone) -> None:
        self._gone(event.key)

    def _arrived(self, event: PodArrived) -> None:
        pending = self.cluster.pending
        if event.key in self.cluster.pods or event.key in self._stray_node:
            return
        if event.key in pending:
            waiting = pending[event.key]
            if waiting.charge.ask == event.ask and waiting.priority == event.priority and waiting.who == event.who:
                return
            pending.remove(event.key)
        charge = self.cluster.charge(event.ask)
        # Tried before all others: between its arrival and its turn nobody may take the room that was kept for it.
        pending.add(
            event.key,
            charge,
            event.priority,
            goes_first=bool(event.daemon_set),
            who=event.who,
            nominated=event.nominated,
        )
        if event.daemon_set:
            self._daemon_sets.await_pod(event.key, event.daemon_set, event.ask)

    def _gone(self, key: str) -> None:
        cluster = self.cluster
        cluster.pending.remove(key)
        if key in cluster.pods:
            self._release(key)
        if self._stray_node:
            self._forget_stray(key)
        self._daemon_sets.forget_pod(key)

    def _forget_stray(self, key: str) -> None:
        node = self._stray_node.pop(key, None)
        if node is not None:
            del self._strays[node][key]
            if not self._strays[node]:
                del self._strays[node]

    def _rejected(self, event: PodRejected) -> None:
        key = event.key
        cluster = self.cluster
        holding = cluster.pods.get(key)
        if holding is None or holding.bound:
            return
        self._release(key)
        self._back_in_line(key, holding)

    def _back_in_line(self, key: str, holding: Holding) -> None:
        self.cluster.pending.add(
            key,
            holding.charge,
            holding.priority,
            holding.turn,
            goes_first=holding.goes_first,
            who=holding.who,
        )

    def _bound(self, event: PodBound) -> None:
        cluster = self.cluster
        row = cluster.row_of.get(event.node)
        if row is None:
            self._gone(event.key)
            self._stray(event)
            return
        if self._stray_node:
            self._forget_stray(event.key)
        holding = cluster.pods.get(event.key)
        if holding is not None:
            same_place = holding.row == row and event.grant in (None, holding.grant)
            if same_place and holding.charge.ask == event.ask and not holding.promised:
                holding.bound = True
                if event.leaving != holding.leaving:
                    cluster.leave(event.key, event.leaving)
                if event.daemon_set:
                    self._settle_daemon(event, holding)
                return
            self._release(event.key)
        cluster.pending.remove(event.key)
        grant = event.grant
        devices = event.ask.devices
        if grant is not None and any(device >= cluster.devices.width for device in grant.devices):
            # Somebody wrote down devices that this node cannot have; that the pod runs here is true all the same.
            grant = None
        if grant is None and devices is not None:
            free = cluster.devices.free(row)[: int(cluster.devices.count[row])]
            kind = kind_of(devices)
            grant = kind.tightest(free, devices) or kind.forced(free, devices)
        charge = cluster.charge(event.ask)
        holding = Holding(row, charge, grant, event.priority, None, True, who=event.who, leaving=event.leaving)
        cluster.hold(event.key, holding)
        if event.daemon_set:
            self._settle_daemon(event, holding)

    def _settle_daemon(self, event: PodBound, holding: Holding) -> None:
        holding.daemon_set = event.daemon_set
        self._daemon_sets.forget_pod(event.key)
        self._daemon_sets.settle(event.daemon_set, holding.row)

    def _release(self, key: str) -> None:
        holding = self.cluster.release(key)
        if holding.daemon_set:
            self._daemon_sets.settle(holding.daemon_set, holding.row)

    def _node_seen(self, event: NodeSeen) -> None:
        cluster = self.cluster
        static = cluster.static_changes.end
        row = cluster.put_node(event.node)
        for stray in list(self._strays.get(event.node.name, {}).values()):
            self._bound(stray)
        self._strays.pop(event.node.name, None)
        if cluster.static_changes.end != static:
            self._daemon_sets.settle_row(row)

    def _node_gone(self, event: NodeGone) -> None:
        row = self.cluster.row_of.get(event.name)
        if row is None:
            return
        self._daemon_sets.forget_row(row)
        for key, holding in self.cluster.drop_node(event.name):
            if holding.bound:
                # The pod outlives the news of its node: should the node come back, it still holds what it held.
                self._stray(_as_bound(key, holding, event.name))
            else:
                # Only our plan put it there: nobody deleted the pod, so it waits again.
                self._back_in_line(key, holding)

    def _stray(self, event: PodBound) -> None:
        self._strays.setdefault(event.node, {})[event.key] = event
        self._stray_node[event.key] = event.node


def _forget(known: dict[K, V], key: K) -> None:
    known.pop(key, None)


def _as_bound(key: str, holding: Holding, node: str) -> PodBound:
    return PodBound(
        key,
        holding.ask,
        node,
        holding.grant,
        holding.priority,
        holding.daemon_set,
        holding.who,
        holding.leaving,
    )
