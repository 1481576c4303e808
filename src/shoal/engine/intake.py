"""How events become facts. Watches may repeat themselves, arrive late or in the wrong order between kinds: each event
is applied so that the facts end up right all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import structs

from shoal.devices.layout import Layout
from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import DeviceGrant
from shoal.engine.devices.kinds import grant_held, grant_there
from shoal.engine.events import (
    BudgetGone,
    BudgetSeen,
    ClaimGone,
    ClaimSeen,
    DaemonSetGone,
    DaemonSetSeen,
    DeviceSetSeen,
    DevicesGone,
    DevicesSeen,
    Event,
    GroupGone,
    GroupSeen,
    NamespaceSeen,
    NodeGone,
    NodeRefused,
    NodeSeen,
    OthersSeen,
    PodArrived,
    PodBound,
    PodGone,
    PodRejected,
    PodStays,
    TopologyGone,
    TopologySeen,
)
from shoal.engine.overhead import DaemonSets
from shoal.engine.pod_identity import NOBODY, PodIdentity
from shoal.engine.pods import Holding, Waiting

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
            PodStays: self._stays,
            PodGone: self._pod_gone,
            NodeSeen: self._node_seen,
            NodeRefused: self._node_refused,
            OthersSeen: lambda event: cluster.put_others(place_gpus=event.place_gpus),
            NodeGone: self._node_gone,
            DaemonSetSeen: lambda event: self._daemon_sets.put(event.name, event.ask),
            DaemonSetGone: lambda event: self._daemon_sets.drop(event.name),
            GroupSeen: self._noted(lambda event: cluster.gangs.put(event.group)),
            GroupGone: self._noted(lambda event: cluster.gangs.drop(event.name)),
            TopologySeen: self._noted(
                lambda event: cluster.topologies.update({event.topology.name: event.topology}),
            ),
            TopologyGone: self._noted(lambda event: _forget(cluster.topologies, event.name)),
            BudgetSeen: self._noted(
                lambda event: cluster.budgets.update({(event.budget.namespace, event.budget.name): event.budget})
            ),
            BudgetGone: self._noted(lambda event: _forget(cluster.budgets, (event.namespace, event.name))),
            DevicesSeen: lambda event: cluster.dra.put_slice(event.piece),
            DevicesGone: lambda event: cluster.dra.drop_slice(event.name),
            DeviceSetSeen: lambda event: cluster.dra.put_set(event.name, event.devices),
            ClaimSeen: lambda event: cluster.dra.put_claim(event.claim),
            ClaimGone: lambda event: cluster.dra.drop_claim(event.key),
            NamespaceSeen: lambda event: cluster.put_namespace(event.name, event.labels),
        }

    def apply(self, event: Event) -> None:
        """Take note of what happened."""
        self._handlers[type(event)](event)

    def _noted(self, handler: Callable[[Any], None]) -> Callable[[Any], None]:
        """The handler of news that no row and no count shows."""

        def handle(event: Any) -> None:
            self.cluster.news += 1
            handler(event)

        return handle

    def _pod_gone(self, event: PodGone) -> None:
        cluster = self.cluster
        holding = cluster.pods.get(event.key)
        if holding is not None and holding.bound and holding.who.group:
            cluster.gangs.ended(holding.who.group, holding.who.part, cluster.names[holding.row])
        self._gone(event.key)
        if holding is not None:
            if holding.bound:
                cluster.refusing.lift(holding.row)
            self._guess_again(holding.row)

    def _arrived(self, event: PodArrived) -> None:
        pending = self.cluster.pending
        turn: int | None = None
        holding = self.cluster.pods.get(event.key)
        if holding is not None and holding.nominated and not _is_known(holding, event):
            # What it asks has changed since room was promised to it: it asks anew, at its old place.
            self._release(event.key)
            self._back_in_line(event.key, holding)
        elif holding is not None or event.key in self._stray_node:
            return
        if event.key in pending:
            waiting = pending[event.key]
            if _is_known(waiting, event):
                return
            turn = waiting.turn if holding is not None else None
            pending.remove(event.key)
        charge = self.cluster.charge(event.ask)
        # Tried before all others: between its arrival and its turn no other pod may take its reserved room.
        pending.add(
            event.key,
            charge,
            event.priority,
            turn,
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
        cluster.dra.settle_pod(key)

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
        self._guess_again(holding.row)

    def _stays(self, event: PodStays) -> None:
        if event.key in self.cluster.terminating:
            self.cluster.mark_terminating(event.key, False)

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
            same_place = holding.row == row and event.grant in (None, holding.grant) and not event.anew
            if same_place and holding.charge.ask == event.ask and not holding.nominated:
                if event.who is not NOBODY and event.who != holding.who:
                    self._recast(event.key, holding, event.who)
                if not holding.bound:
                    holding.bound = True
                    self._has_started(holding.who)
                if event.terminating and not holding.terminating:
                    # The other way round it is old news: the end of a pod cannot be called off, only refused.
                    cluster.mark_terminating(event.key)
                if event.daemon_set:
                    self._settle_daemon(event, holding)
                return
            self._release(event.key)
            if holding.row != row:
                cluster.refusing.lift(holding.row)
                self._guess_again(holding.row)
        is_new_there = holding is None or holding.row != row
        cluster.pending.remove(event.key)
        # Its end may be under way and not be seen yet.
        terminating = event.terminating or (holding is not None and holding.terminating)
        grant, guessed = self._grant(event, row)
        charge = cluster.charge(event.ask)
        holding = Holding(
            row, charge, grant, event.priority, None, True, who=event.who, terminating=terminating, guessed=guessed
        )
        cluster.hold(event.key, holding)
        if is_new_there:
            cluster.refusing.lift(row)
        self._guess_again(row)
        self._has_started(event.who)
        if event.ask.claims:
            cluster.dra.settle_pod(event.key)
        if event.daemon_set:
            self._settle_daemon(event, holding)

    def _grant(self, event: PodBound, row: int) -> tuple[DeviceGrant | None, bool]:
        """What the pod holds on the row, and whether that is a guess."""
        cluster, devices, grant = self.cluster, event.ask.devices, event.grant
        if grant is not None and any(device >= cluster.devices.width for device in grant.devices):
            # The annotation names devices that this node cannot have; the pod runs here all the same.
            grant = None
        guessed = False
        if grant is None and devices is not None:
            grant = grant_held(cluster.devices, row, devices, event.spots)
            if guessed := grant is None:
                grant = grant_there(cluster.devices, row, devices)
        if event.ask.claims and (grant is None or not grant.claims):
            grant = cluster.dra.with_claims(grant, event.ask.claims, row)
        return grant, guessed

    def _has_started(self, who: PodIdentity) -> None:
        if who.group:
            self.cluster.gangs.bound(who.group, who.part)

    def _recast(self, key: str, holding: Holding, who: PodIdentity) -> None:
        """The identity of a running pod has changed: with other labels, for example, rules count it differently."""
        before = holding.who
        if who.traits == before.traits and who.group == before.group:
            holding.who = who
            return
        self.cluster.release(key)
        holding.who = who
        self.cluster.hold(key, holding)

    def _guess_again(self, row: int, *, anew: bool = False) -> None:
        """Devices became free or were named: pods whose devices are not known may hold others than it seemed.

        While nothing is asked for twice the guesses stay, unless the devices are other ones than before (`anew`).
        """
        cluster = self.cluster
        keys = cluster.guessed.get(row)
        if keys is None or not (anew or cluster.devices.is_overloaded(row)):
            return
        again = [(key, cluster.release(key)) for key in list(keys)]
        for key, holding in again:
            if holding.ask.devices is not None:
                claims = holding.grant.claims if holding.grant is not None else ()
                grant = grant_there(cluster.devices, row, holding.ask.devices)
                holding.grant = structs.replace(grant, claims=claims) if claims else grant
            cluster.hold(key, holding)

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
        before = self._devices_of(event.node.name)
        row = cluster.put_node(event.node)
        self._guess_again(row, anew=before != self._devices_of(event.node.name))
        for stray in list(self._strays.get(event.node.name, {}).values()):
            self._bound(stray)
        self._strays.pop(event.node.name, None)
        if cluster.static_changes.end != static:
            self._daemon_sets.settle_row(row)

    def _node_refused(self, event: NodeRefused) -> None:
        row = self.cluster.row_of.get(event.name)
        if row is not None:
            self.cluster.refusing.add(row, event.ask, event.resource, event.owner, event.at_s)

    def _devices_of(self, node: str) -> tuple[int, Layout] | None:
        row = self.cluster.row_of.get(node)
        return None if row is None else (self.cluster.devices.count.item(row), self.cluster.devices.layout(row))

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
                # It was only assumed there and not deleted, so it waits again.
                self._back_in_line(key, holding)

    def _stray(self, event: PodBound) -> None:
        self._strays.setdefault(event.node, {})[event.key] = event
        self._stray_node[event.key] = event.node


def _forget(known: dict[K, V], key: K) -> None:
    known.pop(key, None)


def _is_known(pod: Waiting | Holding, event: PodArrived) -> bool:
    """Whether the event says nothing new of a pod."""
    return pod.charge.ask == event.ask and pod.priority == event.priority and pod.who == event.who


def _as_bound(key: str, holding: Holding, node: str) -> PodBound:
    return PodBound(
        key,
        holding.ask,
        node,
        None if holding.guessed else holding.grant,
        holding.priority,
        holding.daemon_set,
        holding.who,
        holding.terminating,
    )
