"""Holds pods of Volcano's groups back from the scheduling loop until their queue has admitted the group and has quota.

If queues declare what they deserve, quota is shared by that and may be reclaimed (`quota_sharing`); otherwise only
capabilities limit the admission (`capability_admission`).

Guarantees: no state survives a restart. Pods then arrive again, and bound pods show what is used. After a fault, the
next round rebuilds all state from the same sources and returns the placements that were decided.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from shoal.client.context import Context
from shoal.client.presence import Presence
from shoal.client.served import Served
from shoal.controllers.scheduling_loop.protocols import SchedulerState
from shoal.controllers.volcano.capability_admission import NODE_SEARCH_S, CapabilityAdmission, RoundSchedule
from shoal.controllers.volcano.group_cache import GroupCache
from shoal.controllers.volcano.group_members import GroupMembers
from shoal.controllers.volcano.pod_conditions import HeldPodConditions
from shoal.controllers.volcano.quota_sharing import QuotaSharing, SharingResult
from shoal.engine.events import Event, PodArrived, PodBound, PodGone, PodRejected
from shoal.engine.plan import Evict, Place
from shoal.engine.queues.disciplines.volcano.admission_units import AdmissionUnit, UnitOrder, units_of_group
from shoal.engine.queues.disciplines.volcano.group_phases import NOT_READY
from shoal.engine.queues.disciplines.volcano.queue_quotas import QueueQuotas
from shoal.engine.queues.disciplines.volcano.queue_tree import QueueTree


class VolcanoAdmission:
    def __init__(
        self,
        context: Context,
        served: Served,
        scheduling: SchedulerState,
        presence: Presence | None = None,
        onward: Callable[[PodArrived], None] | None = None,
    ) -> None:
        """`onward` receives a pod that may be placed; by default it enters the facts."""
        self._scheduling = scheduling
        self._presence = presence
        self._schedule = RoundSchedule()
        self._cache = GroupCache(context, served, self._on_change)
        self._members = GroupMembers(scheduling, self._cache, onward or scheduling.intake.apply)
        self._by_capability = CapabilityAdmission(scheduling, self._cache, self._members, self._schedule)
        self._sharing = QuotaSharing(scheduling, self._members.held.event)
        self._conditions = HeldPodConditions(context, lambda: len(scheduling.cluster.all_rows()))
        self._placed: list[Place] = []
        """Placements that are in the facts and were not returned yet."""
        self._fault_s: float | None = None
        """When a fault made the state unreliable; infinite if the fault was outside a round."""

    # -- the protocol -----------------------------------------------------------------------------------------------

    def hear(self, event: Event) -> bool:
        try:
            return self._heard(event)
        except Exception:
            self._note_fault(math.inf)
            raise

    def round(self, now_s: float) -> Sequence[Place | Evict]:
        if not self._schedule.is_reached(now_s):
            return []
        self._schedule.begin()
        try:
            self._rebuild()
            evicted = self._decide(now_s)
        except Exception:
            # The next round repeats every eviction since then.
            self._note_fault(now_s)
            raise
        placed, self._placed = self._placed, []
        return [*placed, *evicted]

    def next_s(self) -> float | None:
        return self._schedule.next_s

    @property
    def is_idle(self) -> bool:
        return not self._schedule.is_due

    async def synced(self) -> None:
        """The admission needs the queues and groups, and whether Volcano itself runs."""
        if self._presence is not None:
            await self._presence.look()
        await self._cache.synced()

    async def run(self) -> None:
        """Writes conditions of held pods of enqueued groups; the enqueue controller covers the other groups."""
        await self._conditions.run(lambda pod: self._members.held.event(pod) is not None)

    # -- event handlers ---------------------------------------------------------------------------------------------

    def _on_change(self, group: str = "") -> None:
        """Called when a group or the queues changed."""
        self._members.mark_stale(group)
        if not group or group in self._members.held:
            self._schedule.is_due = True
            self._scheduling.wake()

    def _heard(self, event: Event) -> bool:
        if isinstance(event, PodArrived):
            return self._arrived(event)
        self._schedule.is_due |= self._sharing.hear(event)
        if isinstance(event, PodBound):
            self._members.bound(event)
        elif isinstance(event, PodGone):
            has_quota = self._members.gone(event.key)
            self._schedule.is_due |= has_quota and bool(self._members.held)
        elif isinstance(event, PodRejected):
            return self._rejected(event.key)
        return False

    def _arrived(self, event: PodArrived) -> bool:
        cluster = self._scheduling.cluster
        if event.key in cluster.pods or event.key in cluster.pending or not self._is_volcano_absent():
            return False
        is_held = self._members.arrived(event)
        self._schedule.is_due |= is_held
        return is_held

    def _rejected(self, pod: str) -> bool:
        """A pod that is preempted before it was bound is held until its queue has quota again."""
        holding = self._scheduling.cluster.pods.get(pod)
        if holding is None or holding.is_bound or not self._sharing.is_preempted(pod):
            return False
        self._members.hold_again(pod)
        self._schedule.is_due = True
        return True

    # -- after a fault ----------------------------------------------------------------------------------------------

    def _note_fault(self, fault_s: float) -> None:
        self._fault_s = min(fault_s, math.inf if self._fault_s is None else self._fault_s)
        self._schedule.is_due = True

    def _rebuild(self) -> None:
        if self._fault_s is not None:
            self._sharing.rebuild(self._fault_s)
            self._members.rebuild(holds=self._is_volcano_absent())
            self._fault_s = None

    # -- decisions --------------------------------------------------------------------------------------------------

    def _decide(self, now_s: float) -> Sequence[Evict]:
        self._members.drop_stale()
        tree = self._cache.tree()
        if not self._is_volcano_absent():
            self._schedule.schedule(now_s + NODE_SEARCH_S if self._members.held else None)
        elif tree is not None:
            quotas = self._sharing.quotas(tree)
            if quotas is not None:
                return self._share_quota(tree, quotas, now_s)
            self._by_capability.run(tree, set(self._members.held), now_s)
        return []

    def _share_quota(self, tree: QueueTree, quotas: QueueQuotas, now_s: float) -> Sequence[Evict]:
        """Shares quota by what queues deserve, including reclaim."""
        members, sharing, found = self._members, self._sharing, SharingResult()
        names = dict.fromkeys((*members.held, *members.usage.groups()))
        units = [unit for name in names if sharing.has_queue(members.queue_of(name)) for unit in self._units(name)]
        try:
            sharing.round(quotas, units, now_s, found)
        finally:
            self._placed += found.placed
        for place in found.placed:
            members.admit(place.pod, now_s, is_placed=True)
        for pod in found.released:
            members.admit(pod, now_s)
        for group in members.admitted_s.keys() & set(found.to_requeue):
            members.requeue(group)
        self._by_capability.run(
            tree, {name for name in members.held if not sharing.has_queue(members.queue_of(name))}, now_s
        )
        if found.stuck:
            stuck = {one.name for queue in found.stuck for one in tree.path_to_root(queue)}
            self._by_capability.requeue_stuck(tree, stuck, now_s)
        if found.released or found.placed:
            # The pods beyond the minimum of the groups come next.
            self._schedule.is_due = True
            self._scheduling.wake()
        self._schedule.schedule(sharing.next_s())
        self._set_messages()
        return found.evicted

    def _set_messages(self) -> None:
        """Sets the messages of held pods of enqueued groups."""
        members = self._members
        for name in members.held:
            group = self._cache.group(name) if name else None
            if group is None or group.is_waiting:
                continue
            pods, minimum = list(members.held.of(name)), max(group.spec.min_member, 1)
            if len(pods) + len(members.usage.amounts(name)) < minimum:
                self._conditions.set_gang_too_small(name, minimum, pods)
            else:
                self._conditions.set_message(
                    pods, f"{NOT_READY}; queue resource quota insufficient in queue {members.queue_of(name)}"
                )

    def _units(self, name: str) -> Iterator[AdmissionUnit]:
        members, holdings = self._members, self._scheduling.cluster.pods
        group = self._cache.group(name) if name else None
        held = members.held.of(name) if group is not None and not group.is_waiting else {}
        waiting = [pod for key in held if (pod := self._cache.pod(key)) is not None]
        active_priorities = [holdings[pod].priority for pod in members.usage.pods(name) if pod in holdings]
        priority = max([event.priority for event in held.values()] + active_priorities, default=0)
        order = UnitOrder(members.queue_of(name), priority, members.requeues.get(name, 0))
        return units_of_group(name, group, waiting, members.usage.amounts(name), order)

    def _is_volcano_absent(self) -> bool:
        return self._presence is None or not self._presence.is_there
