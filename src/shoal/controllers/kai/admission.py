"""Holds pods that name a KAI queue back from the scheduling loop until quota and nodes are found for them.

The decisions come from the quota tree of the engine with fair sharing (`engine/queues`), with the queues converted by
`queue_quotas.py`. Admitted pods were placed on the nodes in a trial, and take these nodes at once. Preempted pods are
evicted by the scheduler's plan executor, and keep their quota until they are gone.

Guarantees: pods of a missing queue wait and get a condition. A refused eviction is requested again. No state is needed
that the pods on nodes do not show.

Rejected: preemption by the scheduling cycle among these pods. It knows no quotas, and would always evict the pods with
the lowest priority.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from shoal.client.context import Context
from shoal.client.presence import Presence
from shoal.client.served import Served
from shoal.controllers.kai.evictions import KaiEvictions
from shoal.controllers.kai.gang_specs import GangSpecs
from shoal.controllers.kai.podgrouper import PodGrouper
from shoal.controllers.kai.rebuild import rebuild_units
from shoal.controllers.kai.status_writer import KaiStatusWriter, has_succeeded
from shoal.controllers.scheduling_loop.protocols import SchedulerState
from shoal.engine.events import Event, NodeSeen, PodArrived, PodBound, PodGone, PodRejected
from shoal.engine.groups import GroupFacts
from shoal.engine.plan import Evict, Place
from shoal.engine.queues.decisions import Decisions
from shoal.engine.queues.disciplines.kai.admission_unit import GangSpec, gang_of
from shoal.engine.queues.disciplines.kai.admission_units import AdmissionUnits
from shoal.engine.queues.disciplines.kai.queue_quotas import SETTINGS
from shoal.engine.queues.disciplines.kai.quota_tree_updater import QuotaTreeUpdater
from shoal.engine.queues.facts import QuotaAssignment, WorkloadFacts
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.proof import Proof
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.state import Queues

_MAX_CYCLES = 32


class KaiAdmission:
    def __init__(
        self,
        context: Context,
        served: Served,
        scheduling: SchedulerState,
        onward: Callable[[Event], None] | None = None,
        presence: Presence | None = None,
    ) -> None:
        """`onward` receives a pod that may be placed; by default it enters the facts."""
        self._scheduling = scheduling
        self._presence = presence
        self._onward = onward or scheduling.intake.apply
        self.units = AdmissionUnits(self._created_s)
        self.kueue, self._proof = self._new_quota_tree()
        self._tree_updater = QuotaTreeUpdater(self.kueue.queues)
        self._evictions = KaiEvictions(self.units, scheduling.cluster, partial(has_succeeded, context))
        self._status_writer = KaiStatusWriter(
            context, self.units, lambda: len(scheduling.cluster.row_of), self._evictions.awaited
        )
        self._gang_specs = GangSpecs(context, served, scheduling.wake, self._status_writer.follow, self._facts_of)
        self._podgrouper = PodGrouper(context, served, lambda: not self._is_kai_present)
        self._has_freed = False
        self._lacks_nodes = False
        """Whether a unit was refused for lack of nodes."""
        self._placed: list[Place] = []
        """Placements that are in the facts and were not returned yet."""
        self._is_faulty = False
        """Whether a fault made the state unreliable."""

    # -- the protocol ------------------------------------------------------------------------------------------------

    def hear(self, event: Event) -> bool:
        try:
            return self._handle(event)
        except Exception:
            self._is_faulty = True
            raise

    def round(self, now_s: float) -> Sequence[Place | Evict]:
        if not self._gang_specs.is_synced:
            return []
        try:
            if self._is_faulty:
                self._rebuild(now_s)
            evicted = self._decide(now_s)
        except Exception:
            self._is_faulty = True
            raise
        placed, self._placed = self._placed, []
        return [*placed, *evicted]

    def _decide(self, now_s: float) -> list[Evict]:
        if self._is_kai_present:
            self._status_writer.pause()
            self._release_all(now_s)
            return []
        is_changed = self._update_tree(now_s)
        if self._has_freed and self._lacks_nodes:
            self._lacks_nodes = False
            self.kueue.wake()
        self._has_freed = False
        evicted: list[Evict] = []
        if not self._is_settled(now_s):
            is_changed = True
            self._scheduling.placement.renew()
        for _ in range(_MAX_CYCLES):
            if self._is_settled(now_s):
                break
            evicted += self._apply(
                self.kueue.cycle(now_s, self._proof if self._tree_updater.has_nodes else None), now_s
            )
        evicted += self._evictions.due(now_s)
        if is_changed or evicted:
            self._status_writer.round_done(self._gang_specs.queues)
        return evicted

    def next_s(self) -> float | None:
        due_times = [*self._evictions.due_times(), self.kueue.next_s()]
        return min((due_s for due_s in due_times if due_s is not None), default=None)

    def _is_settled(self, now_s: float) -> bool:
        """Whether a cycle would consider no unit now; minimum runtimes may end later."""
        due_s = self.kueue.next_s()
        return self.kueue.is_idle and (due_s is None or due_s > now_s)

    @property
    def is_idle(self) -> bool:
        if not self._gang_specs.is_synced or self._is_kai_present:
            return True
        return self.kueue.is_idle and self._gang_specs.is_settled and not self.units.dirty

    async def synced(self) -> None:
        """The admission needs the queues, and whether KAI itself runs, which would decide at the same time."""
        if self._presence is not None:
            await self._presence.look()
        await self._gang_specs.synced()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._status_writer.run())
            group.create_task(self._podgrouper.run())
            if self._presence is not None:
                group.create_task(self._presence.run(self._presence_changed))

    def _presence_changed(self) -> None:
        """KAI itself was installed or removed."""
        self._podgrouper.wake()
        self._scheduling.wake()

    # -- after a fault -----------------------------------------------------------------------------------------------

    def _rebuild(self, now_s: float) -> None:
        """Undoes placements that were not returned, and rebuilds all other state from the pods and the facts."""
        for place in self._proof.placed:
            self._scheduling.intake.apply(PodGone(place.pod))
        preempted = self._evictions.preempted()
        rebuild_units(self.units, self._scheduling, self._known_spec, now_s)
        self._evictions.rebuild(preempted, now_s)
        self.kueue, self._proof = self._new_quota_tree()
        self._tree_updater.reset(self.kueue.queues)
        self._is_faulty = False

    def _new_quota_tree(self) -> tuple[Kueue, Proof]:
        """An empty quota tree, and the placement proof for it."""
        kueue, scheduling = Kueue(Queues(SETTINGS)), self._scheduling
        return kueue, Proof(kueue.queues, scheduling.intake, scheduling.placement, self._pods_of, self._running_of)

    # -- event handlers ----------------------------------------------------------------------------------------------

    def _handle(self, event: Event) -> bool:
        if isinstance(event, PodArrived):
            return self._arrived(event)
        if isinstance(event, PodBound):
            if (spec := self._spec(event)) is not None:
                self.units.add_bound(event, spec)
        elif isinstance(event, PodGone):
            self._has_freed = self._has_freed or event.key in self._scheduling.cluster.pods
            self._podgrouper.forget(event.key)
            self.units.remove(event.key)
        elif isinstance(event, PodRejected):
            return self._rejected(event.key)
        else:
            self._tree_updater.hear(event)
            self._has_freed = self._has_freed or isinstance(event, NodeSeen)
        return False

    def _spec(self, event: PodArrived | PodBound) -> GangSpec | None:
        return None if self._is_kai_present else self._gang_specs.of(event.key, event.who)

    def _known_spec(self, event: PodArrived | PodBound) -> GangSpec | None:
        """Also while KAI itself runs, because released pods stay known. None while the pod group is not written."""
        is_held = isinstance(event, PodArrived) and self._podgrouper.holds(event)
        return None if is_held else self._gang_specs.of(event.key, event.who)

    def _arrived(self, event: PodArrived) -> bool:
        cluster = self._scheduling.cluster
        if self._is_kai_present or event.key in cluster.pods or event.key in cluster.pending:
            return False
        if self._podgrouper.holds(event):
            return True
        spec = self._gang_specs.of(event.key, event.who)
        if spec is None:
            return False
        self.units.add_waiting(event, spec)
        return True

    def _rejected(self, pod: str) -> bool:
        """A pod that is preempted before it was bound is held until there is quota for it again."""
        unit, holding, view = (
            self.units.of_pod(pod),
            self._scheduling.cluster.pods.get(pod),
            self._scheduling.watched.view(pod),
        )
        if unit is None or unit.evicted_s is None or holding is None or holding.is_bound or view is None:
            return False
        if not isinstance(view.event, PodArrived):
            return False
        self._scheduling.intake.apply(PodGone(pod))
        self._has_freed = True
        self.units.add_waiting(view.event, unit.spec)
        return True

    def _update_tree(self, now_s: float) -> bool:
        """Passes changes to the quota tree; returns whether there were any."""
        is_changed = self._gang_specs.is_stale or self._tree_updater.is_stale
        if is_changed:
            self._gang_specs.is_stale = False
            self._tree_updater.refresh(self._gang_specs.queues)
            # The reason why a unit waits may have changed.
            self._status_writer.mark_all_refused()
        for spec in self._gang_specs.take_groups():
            self._hold_group(spec.name)
            self.units.update_spec(spec)
        dirty, self.units.dirty = self.units.dirty, {}
        for key in dirty:
            self._put_unit(key, now_s)
            self._status_writer.mark_changed(key)
            self._evictions.stale.check(gang_of(key), now_s)
        return is_changed or bool(dirty)

    def _hold_group(self, group: str) -> None:
        """Holds pods that entered the scheduling queue before their group showed that they belong to KAI."""
        gang = self._scheduling.cluster.gangs.find(group)
        for pod in list(gang.waiting) if gang is not None else ():
            view = self._scheduling.watched.view(pod)
            if view is not None and isinstance(view.event, PodArrived) and self.units.of_pod(pod) is None:
                self._scheduling.intake.apply(PodGone(pod))
                self._arrived(view.event)

    def _put_unit(self, key: str, now_s: float) -> None:
        unit = self.units.all.get(key)
        facts = unit.facts() if unit is not None else None
        if unit is None or facts is None:
            self.kueue.drop_workload(key, now_s)
            self._evictions.forget(key)
            return
        self.kueue.put_workload(facts, now_s)
        if facts.admission is None:
            self._evictions.forget(key)
            if unit.spec.queue not in self.kueue.queues.cluster_queues:
                # No cycle considers a unit of a missing queue.
                self._status_writer.mark_refused(key)

    def _created_s(self, pod: str) -> float:
        view = self._scheduling.watched.view(pod)
        return 0.0 if view is None else view.created_s

    # -- decisions ---------------------------------------------------------------------------------------------------

    def _apply(self, decisions: Decisions, now_s: float) -> list[Evict]:
        placed, self._proof.placed = self._proof.placed, []
        self._placed += placed
        evicted: list[Evict] = []
        proven = {place.pod for place in placed}
        for admitted in decisions.admitted:
            unit = self.units.all[admitted.workload]
            self._status_writer.forget(unit.key)
            for event in self.units.admit(unit, now_s):
                if event.key not in proven:
                    self._onward(event)
        for preempted in decisions.preempted:
            unit = self.units.all[preempted.workload]
            unit.evicted_s = now_s
            beneficiary = self.units.all.get(preempted.beneficiary)
            evicted += self._evictions.evict_with_gang(
                unit, beneficiary.spec.name if beneficiary is not None else "", now_s
            )
        for waiting in decisions.waiting:
            self._lacks_nodes = self._lacks_nodes or waiting.why is Wait.TOPOLOGY
            self._status_writer.mark_refused(waiting.workload)
        return evicted

    def _facts_of(self, group: str) -> GroupFacts | None:
        gang = self._scheduling.cluster.gangs.find(group)
        return None if gang is None else gang.facts

    def _pods_of(self, facts: WorkloadFacts, _: QuotaAssignment) -> list[PodArrived]:
        unit = self.units.all.get(facts.key)
        return [] if unit is None else list(unit.waiting.values())

    def _running_of(self, workload: str) -> list[str]:
        unit = self.units.all.get(workload)
        return [] if unit is None else list(unit.active)

    # -- while KAI itself runs ---------------------------------------------------------------------------------------

    @property
    def _is_kai_present(self) -> bool:
        return self._presence is not None and self._presence.is_there

    def _release_all(self, now_s: float) -> None:
        """Releases all held pods into the scheduling queue."""
        for pod in self._podgrouper.release_all():
            self._onward(pod)
        for unit in list(self.units.all.values()):
            for event in self.units.admit(unit, now_s) if unit.waiting else ():
                self._onward(event)
