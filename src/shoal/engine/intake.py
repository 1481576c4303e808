"""Applies events to the facts. Watches may repeat themselves, arrive late or in the wrong order between kinds: each
event is applied so that the facts end up right all the same.
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
from shoal.engine.pod_identity import NO_IDENTITY, PodIdentity
from shoal.engine.pods import PodAllocation, PodState, Waiting

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

    def pod_state(self, key: str) -> PodState | None:
        """The state of a pod; None for a pod that is not known."""
        allocation = self.cluster.pods.get(key)
        if allocation is not None:
            return allocation.state
        if key in self._stray_node:
            return PodState.NODE_UNKNOWN
        return PodState.PENDING if key in self.cluster.pending else None

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
        allocation = cluster.pods.get(event.key)
        if allocation is not None and allocation.is_bound and allocation.who.group:
            cluster.gangs.ended(allocation.who.group, allocation.who.part, cluster.names[allocation.row])
        self._remove_pod(event.key)
        if allocation is not None:
            if allocation.is_bound:
                cluster.refusing.lift(allocation.row)
            self._guess_again(allocation.row)

    def _arrived(self, event: PodArrived) -> None:
        pending = self.cluster.pending
        turn: int | None = None
        allocation = self.cluster.pods.get(event.key)
        if allocation is not None and allocation.is_nominated and not _is_known(allocation, event):
            # Its request has changed since its nomination: it is pending again, at its old place.
            self._release(event.key)
            self._requeue(event.key, allocation)
        elif allocation is not None or event.key in self._stray_node:
            return
        if event.key in pending:
            waiting = pending[event.key]
            if _is_known(waiting, event):
                return
            turn = waiting.turn if allocation is not None else None
            pending.remove(event.key)
        charge = self.cluster.charge(event.ask)
        # Tried before all others: between its arrival and its turn no other pod may take its reserved room.
        pending.add(
            event.key,
            charge,
            event.priority,
            turn,
            has_precedence=bool(event.daemon_set),
            who=event.who,
            nominated=event.nominated,
        )
        if event.daemon_set:
            self._daemon_sets.await_pod(event.key, event.daemon_set, event.ask)

    def _remove_pod(self, key: str) -> None:
        cluster = self.cluster
        cluster.pending.remove(key)
        if key in cluster.pods:
            self._release(key)
        if self._stray_node:
            self._forget_stray(key)
        self._daemon_sets.forget_pod(key)
        cluster.dra.release_reservations(key)

    def _forget_stray(self, key: str) -> None:
        node = self._stray_node.pop(key, None)
        if node is not None:
            del self._strays[node][key]
            if not self._strays[node]:
                del self._strays[node]

    def _rejected(self, event: PodRejected) -> None:
        key = event.key
        cluster = self.cluster
        allocation = cluster.pods.get(key)
        if allocation is None or allocation.is_bound:
            return
        self._release(key)
        self._requeue(key, allocation)
        self._guess_again(allocation.row)

    def _stays(self, event: PodStays) -> None:
        if event.key in self.cluster.terminating:
            self.cluster.mark_terminating(event.key, False)
            self.cluster.news += 1

    def _requeue(self, key: str, allocation: PodAllocation) -> None:
        self.cluster.pending.add(
            key,
            allocation.charge,
            allocation.priority,
            allocation.turn,
            has_precedence=allocation.has_precedence,
            who=allocation.who,
        )

    def _bound(self, event: PodBound) -> None:
        cluster = self.cluster
        row = cluster.row_of.get(event.node)
        if row is None:
            self._remove_pod(event.key)
            self._stray(event)
            return
        if self._stray_node:
            self._forget_stray(event.key)
        allocation = cluster.pods.get(event.key)
        if allocation is not None:
            same_place = allocation.row == row and event.grant in (None, allocation.grant) and not event.anew
            if same_place and allocation.charge.ask == event.ask and not allocation.is_nominated:
                if event.who is not NO_IDENTITY and event.who != allocation.who:
                    self._recast(event.key, allocation, event.who)
                if not allocation.is_bound:
                    allocation.confirm_binding()
                    self._has_started(allocation.who)
                if event.terminating and not allocation.is_terminating:
                    # The other way round it is old news: the end of a pod cannot be called off, only refused.
                    cluster.mark_terminating(event.key)
                    cluster.news += 1
                if event.daemon_set:
                    self._update_daemon_set(event, allocation)
                return
            self._release(event.key)
            if allocation.row != row:
                cluster.refusing.lift(allocation.row)
                self._guess_again(allocation.row)
        is_new_there = allocation is None or allocation.row != row
        cluster.pending.remove(event.key)
        # Its end may be under way and not be seen yet.
        terminating = event.terminating or (allocation is not None and allocation.is_terminating)
        grant, guessed = self._grant(event, row)
        charge = cluster.charge(event.ask)
        state = PodState.TERMINATING if terminating else PodState.BOUND
        allocation = PodAllocation(row, charge, grant, event.priority, None, state, who=event.who, guessed=guessed)
        cluster.hold(event.key, allocation)
        if is_new_there:
            cluster.refusing.lift(row)
        self._guess_again(row)
        self._has_started(event.who)
        if event.ask.claims:
            cluster.dra.release_reservations(event.key)
        if event.daemon_set:
            self._update_daemon_set(event, allocation)

    def _grant(self, event: PodBound, row: int) -> tuple[DeviceGrant | None, bool]:
        """What the pod holds on the row, and whether that is a guess."""
        cluster, devices, grant = self.cluster, event.ask.devices, event.grant
        if grant is not None and any(device >= cluster.devices.width for device in grant.devices):
            # The annotation names devices that this node cannot have; the pod runs here all the same.
            grant = None
        guessed = False
        if grant is None and devices is not None:
            grant = grant_held(cluster.devices, row, devices, event.positions)
            if guessed := grant is None:
                grant = grant_there(cluster.devices, row, devices)
        if event.ask.claims and (grant is None or not grant.claims):
            grant = cluster.dra.with_claims(grant, event.ask.claims, row)
        return grant, guessed

    def _has_started(self, who: PodIdentity) -> None:
        if who.group:
            self.cluster.gangs.bound(who.group, who.part)

    def _recast(self, key: str, allocation: PodAllocation, who: PodIdentity) -> None:
        """The identity of a running pod has changed: with other labels, for example, rules count it differently."""
        before = allocation.who
        if who.traits == before.traits and who.group == before.group:
            allocation.who = who
            saved = structs.replace(before, since_s=who.since_s, saved_s=who.saved_s, saves_every_s=who.saves_every_s)
            if saved != who:
                self.cluster.news += 1
            return
        self.cluster.release(key)
        allocation.who = who
        self.cluster.hold(key, allocation)

    def _guess_again(self, row: int, *, anew: bool = False) -> None:
        """Devices became free or were named: pods whose devices are not known may hold others than it seemed.

        While nothing is asked for twice the guesses stay, unless the devices are other ones than before (`anew`).
        """
        cluster = self.cluster
        keys = cluster.guessed.get(row)
        if keys is None or not (anew or cluster.devices.is_overloaded(row)):
            return
        again = [(key, cluster.release(key)) for key in list(keys)]
        for key, allocation in again:
            if allocation.ask.devices is not None:
                claims = allocation.grant.claims if allocation.grant is not None else ()
                grant = grant_there(cluster.devices, row, allocation.ask.devices)
                allocation.grant = structs.replace(grant, claims=claims) if claims else grant
            cluster.hold(key, allocation)

    def _update_daemon_set(self, event: PodBound, allocation: PodAllocation) -> None:
        allocation.daemon_set = event.daemon_set
        self._daemon_sets.forget_pod(event.key)
        self._daemon_sets.update_reservation(event.daemon_set, allocation.row)

    def _release(self, key: str) -> None:
        allocation = self.cluster.release(key)
        if allocation.daemon_set:
            self._daemon_sets.update_reservation(allocation.daemon_set, allocation.row)

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
            self._daemon_sets.update_row(row)

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
        for key, allocation in self.cluster.drop_node(event.name):
            if allocation.is_bound:
                # The pod outlives the news of its node: should the node come back, it still holds what it held.
                self._stray(_as_bound(key, allocation, event.name))
            else:
                # It was only assumed there and not deleted, so it waits again.
                self._requeue(key, allocation)

    def _stray(self, event: PodBound) -> None:
        self._strays.setdefault(event.node, {})[event.key] = event
        self._stray_node[event.key] = event.node


def _forget(known: dict[K, V], key: K) -> None:
    known.pop(key, None)


def _is_known(pod: Waiting | PodAllocation, event: PodArrived) -> bool:
    """Whether the event says nothing new of a pod."""
    return pod.charge.ask == event.ask and pod.priority == event.priority and pod.who == event.who


def _as_bound(key: str, allocation: PodAllocation, node: str) -> PodBound:
    return PodBound(
        key,
        allocation.ask,
        node,
        None if allocation.guessed else allocation.grant,
        allocation.priority,
        allocation.daemon_set,
        allocation.who,
        allocation.is_terminating,
    )
