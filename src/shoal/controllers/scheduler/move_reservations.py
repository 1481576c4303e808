"""Reserves capacity for the successors of pods that are moved, from the decision until the pod's owner has created the
successor.

A move evicts a pod because another node has capacity for it. Without a reservation, other pods would take that capacity
before the successor arrives. A reservation is a placeholder in the facts: it gets the node as soon as the capacity is
free, and the successor replaces it. A reservation does not preempt and cannot be preempted.

Guarantees: a reservation lasts until the moved pod has been gone for `KEPT_S`, and ends at once when the pod is not
evicted after all. Members of a gang take their reservations together. Reservations end with the process; successors are
then scheduled like any pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import structs

from shoal.engine.charges import Charge
from shoal.engine.cluster import Cluster
from shoal.engine.events import Event, PodArrived, PodGone, PodStays
from shoal.engine.intake import Intake
from shoal.engine.ledger import Ledger
from shoal.engine.plan import Move, Place, Plan
from shoal.store.watched.pod_states import Owner
from shoal.store.watched.pod_views import PodView

KEPT_S = 120.0
"""The time after the end of the pod: a Job creates the next one after ten seconds, or twenty if the pod failed
before.
"""
TOGETHER_S = 10.0
"""The time for which members of a gang wait for each other."""


class PodViews(Protocol):
    def view(self, key: str, /) -> PodView | None: ...

    def owner(self, key: str, /) -> Owner | None: ...


class SchedulerState(Protocol):
    @property
    def cluster(self) -> Cluster: ...
    @property
    def intake(self) -> Intake: ...
    @property
    def watched(self) -> PodViews: ...

    def wake(self) -> None: ...


class _Reservation:
    """The reservation of one moved pod. Times are those of the first scheduling cycle after an event."""

    __slots__ = ("arrived", "arrived_s", "group", "is_gone", "key", "owner", "pod", "terminated_s")

    def __init__(self, pod: str, owner: Owner, group: str) -> None:
        self.pod = pod
        self.key = f"{pod}#moved"
        self.owner = owner
        self.group = group
        self.is_gone = False
        self.terminated_s: float | None = None
        self.arrived: PodArrived | None = None
        """A successor that is held until the others arrive."""
        self.arrived_s: float | None = None

    def until_s(self) -> float | None:
        """The end of the reservation."""
        moments = [] if self.terminated_s is None else [self.terminated_s + KEPT_S]
        moments += [] if self.arrived_s is None else [self.arrived_s + TOGETHER_S]
        return min(moments, default=None)


class MoveReservations:
    """A plan executor that receives moves, and an admission discipline that holds back successors.

    `onward` receives pods that are no longer held.
    """

    def __init__(self, scheduling: SchedulerState, onward: Callable[[Event], None]) -> None:
        self._scheduling = scheduling
        self._onward = onward
        self._kept: dict[str, _Reservation] = {}
        """By the moved pod."""

    # -- plan executor -----------------------------------------------------------------------------------------------

    def carry_out(self, plan: Plan) -> None:
        for move in plan.moved:
            self._keep(move)

    def outcomes(self) -> Sequence[Event]:
        return ()

    # -- admission discipline ----------------------------------------------------------------------------------------

    async def synced(self) -> None:
        """Needs no caches."""

    def hear(self, event: Event) -> bool:
        if not self._kept:
            return False
        if isinstance(event, PodArrived):
            return self._arrived(event)
        if isinstance(event, PodGone):
            self._gone(event.key)
        elif isinstance(event, PodStays) and event.key in self._kept:
            self._let_go(self._kept[event.key])
        return False

    def round(self, now_s: float) -> Sequence[Place]:
        for one in list(self._kept.values()):
            if one.is_gone and one.terminated_s is None:
                one.terminated_s = now_s
            if one.arrived is not None and one.arrived_s is None:
                one.arrived_s = now_s
            ends_s = one.until_s()
            if ends_s is not None and now_s >= ends_s:
                self._let_go(one)
        placed: list[Place] = []
        for one in [one for one in self._kept.values() if one.arrived is not None and self._are_all_there(one)]:
            placed += self._take_over(one)
        return placed

    def next_s(self) -> float | None:
        return min((ends_s for one in self._kept.values() if (ends_s := one.until_s()) is not None), default=None)

    @property
    def is_idle(self) -> bool:
        return True

    async def run(self) -> None:
        """Writes nothing."""
        await asyncio.Event().wait()

    # internals

    def _keep(self, move: Move) -> None:
        scheduling = self._scheduling
        view, owner, allocation = (
            scheduling.watched.view(move.pod),
            scheduling.watched.owner(move.pod),
            scheduling.cluster.pods.get(move.pod),
        )
        if view is None or owner is None or allocation is None or view.workload or move.pod in self._kept:
            return
        one = self._kept[move.pod] = _Reservation(move.pod, owner, allocation.who.group)
        who = structs.replace(
            allocation.who, group="", part="", role="", preempts=False, is_preemptible=False, returns=False
        )
        ask, priority = allocation.charge.ask, allocation.priority
        scheduling.intake.apply(PodArrived(one.key, ask, priority, who=who, nominated=move.target))
        scheduling.wake()

    def _arrived(self, event: PodArrived) -> bool:
        cluster = self._scheduling.cluster
        if event.key in cluster.pods or event.key in cluster.pending:
            return False
        known = next((one for one in self._kept.values() if one.arrived and one.arrived.key == event.key), None)
        one = known or self._stand_in_for(event)
        if one is None:
            return False
        one.arrived = event
        if self._charge(one) is not cluster.charge(event.ask):
            # Its ask differs from that of the moved pod, so the reserved capacity may not fit.
            self._pass_on(one)
        return True

    def _stand_in_for(self, event: PodArrived) -> _Reservation | None:
        """A reservation of the same owner without a successor yet; preferably of the same name or the same ask."""
        owner, charge = self._scheduling.watched.owner(event.key), self._scheduling.cluster.charge(event.ask)
        found = [
            one
            for one in self._kept.values()
            if one.owner == owner and one.arrived is None and one.group == event.who.group
        ]
        return max(found, key=lambda one: (self._charge(one) is charge, one.pod == event.key), default=None)

    def _charge(self, one: _Reservation) -> Charge | None:
        cluster = self._scheduling.cluster
        allocation = cluster.pods.get(one.key)
        if allocation is not None:
            return allocation.charge
        return cluster.pending[one.key].charge if one.key in cluster.pending else None

    def _are_all_there(self, one: _Reservation) -> bool:
        return not one.group or all(other.arrived for other in self._kept.values() if other.group == one.group)

    def _take_over(self, one: _Reservation) -> list[Place]:
        """The successor gets the place of the reservation, or its nomination."""
        intake, arrived = self._scheduling.intake, one.arrived
        cluster = intake.cluster
        allocation = cluster.pods.get(one.key)
        if arrived is None or allocation is None or allocation.is_nominated:
            self._pass_on(one)
            return []
        del self._kept[one.pod]
        intake.apply(PodGone(one.key))
        intake.apply(arrived)
        ledger = Ledger(cluster)
        ledger.place(arrived.key, allocation.row, allocation.grant)
        ledger.commit()
        return [Place(arrived.key, cluster.names[allocation.row], allocation.grant)]

    def _pass_on(self, one: _Reservation) -> None:
        """The successor replaces the reservation in the queue, with the same nomination."""
        cluster = self._scheduling.cluster
        allocation, node = cluster.pods.get(one.key), ""
        if allocation is not None:
            node = cluster.names[allocation.row]
        elif one.key in cluster.pending:
            node = cluster.pending[one.key].nominated
        if one.arrived is not None and not one.arrived.nominated:
            one.arrived = structs.replace(one.arrived, nominated=node)
        self._let_go(one)

    def _let_go(self, one: _Reservation) -> None:
        del self._kept[one.pod]
        self._scheduling.intake.apply(PodGone(one.key))
        if one.arrived is not None:
            self._onward(one.arrived)

    def _gone(self, key: str) -> None:
        one = self._kept.get(key)
        if one is not None and not one.is_gone:
            one.is_gone = True
        for other in self._kept.values():
            if other.arrived is not None and other.arrived.key == key:
                other.arrived = other.arrived_s = None
