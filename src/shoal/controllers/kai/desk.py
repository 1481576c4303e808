"""KAI's queues beside Kueue's: pods that name one are kept from the facts until quota and places let them in.

The discipline is the one quota tree with fair shares (`engine/queues`), over queues read as in `quotas.py`. Who is let
in was proven on the nodes with the very pods, which take their places at once; who has to yield is ended by the hands,
and holds what it holds until its pods are gone.

Promises: work of a queue that is not there waits and says so; an end that was refused is asked for again; nothing is
remembered that pods on nodes do not say.

Rejected: the cycle's own preemption among these pods. It knows no quotas, and would take from whoever is lowest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from shoal.controllers.brain.parts import Holder
from shoal.controllers.kai.anew import hear_anew
from shoal.controllers.kai.ends import Ends
from shoal.controllers.kai.grouping import Grouping
from shoal.controllers.kai.knowledge import Knowledge
from shoal.controllers.kai.origins import Origins
from shoal.controllers.kai.quotas import SETTINGS
from shoal.controllers.kai.statuses import Statuses, has_succeeded
from shoal.controllers.kai.work import Origin, gang_of
from shoal.controllers.kai.works import Works
from shoal.engine.events import Event, NodeSeen, PodArrived, PodBound, PodGone, PodRejected
from shoal.engine.groups import GroupFacts
from shoal.engine.plan import Evict, Place
from shoal.engine.queues.decisions import Decisions
from shoal.engine.queues.facts import Admission, WorkloadFacts
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.proof import Proof
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.state import Queues
from shoal.store.live.context import Context
from shoal.store.live.presence import Presence
from shoal.store.live.served import Served

_MOST_CYCLES = 32


class KaiDesk:
    def __init__(
        self,
        context: Context,
        served: Served,
        brain: Holder,
        onward: Callable[[Event], None] | None = None,
        presence: Presence | None = None,
    ) -> None:
        """`onward`: what becomes of a pod that may be placed; by default the facts take it."""
        self._brain = brain
        self._presence = presence
        self._onward = onward or brain.intake.apply
        self.works = Works(self._created_s)
        self.kueue, self._prover = self._book()
        self._knowledge = Knowledge(self.kueue.queues)
        self._ends = Ends(self.works, brain.cluster, partial(has_succeeded, context))
        self._statuses = Statuses(context, self.works, lambda: len(brain.cluster.row_of), self._ends.awaited)
        self._origins = Origins(context, served, brain.wake, self._statuses.follow, self._facts_of)
        self._grouping = Grouping(context, served, lambda: not self._is_left)
        self._is_freed = False
        self._is_starved = False
        """Somebody was turned away for want of places."""
        self._placed: list[Place] = []
        """In the facts already, and not handed out yet."""
        self._is_torn = False
        """Something broke since the books were whole."""

    # -- the protocol ------------------------------------------------------------------------------------------------

    def hear(self, event: Event) -> bool:
        try:
            return self._heard(event)
        except Exception:
            self._is_torn = True
            raise

    def round(self, now_s: float) -> Sequence[Place | Evict]:
        if not self._origins.is_synced:
            return []
        try:
            if self._is_torn:
                self._begin_anew(now_s)
            ended = self._decided(now_s)
        except Exception:
            self._is_torn = True
            raise
        placed, self._placed = self._placed, []
        return [*placed, *ended]

    def _decided(self, now_s: float) -> list[Evict]:
        if self._is_left:
            self._statuses.pause()
            self._let_all_go(now_s)
            return []
        is_moved = self._take_in(now_s)
        if self._is_freed and self._is_starved:
            self._is_starved = False
            self.kueue.wake()
        self._is_freed = False
        ended: list[Evict] = []
        if not self._is_quiet(now_s):
            is_moved = True
            self._brain.placement.renew()
        for _ in range(_MOST_CYCLES):
            if self._is_quiet(now_s):
                break
            ended += self._obey(self.kueue.cycle(now_s, self._prover if self._knowledge.has_nodes else None), now_s)
        ended += self._ends.due(now_s)
        if is_moved or ended:
            self._statuses.note(self._origins.queues)
        return ended

    def next_s(self) -> float | None:
        moments = [*self._ends.moments(), self.kueue.next_s()]
        return min((due_s for due_s in moments if due_s is not None), default=None)

    def _is_quiet(self, now_s: float) -> bool:
        """Whether a cycle would look at nobody; some were spared until now."""
        due_s = self.kueue.next_s()
        return self.kueue.is_idle and (due_s is None or due_s > now_s)

    @property
    def is_idle(self) -> bool:
        if not self._origins.is_synced or self._is_left:
            return True
        return self.kueue.is_idle and self._origins.is_quiet and not self.works.dirty

    async def synced(self) -> None:
        """Before it is known whether KAI itself is here, a round would decide beside it."""
        if self._presence is not None:
            await self._presence.look()
        await self._origins.synced()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._statuses.run())
            group.create_task(self._grouping.run())
            if self._presence is not None:
                group.create_task(self._presence.run(self._moved))

    def _moved(self) -> None:
        """KAI itself came or went."""
        self._grouping.wake()
        self._brain.wake()

    # -- after a fault -----------------------------------------------------------------------------------------------

    def _begin_anew(self, now_s: float) -> None:
        """What was proven for nobody is given back; all else follows from what is said of pods, and who has a place."""
        for place in self._prover.placed:
            self._brain.intake.apply(PodGone(place.pod))
        yielding = self._ends.yielding()
        hear_anew(self.works, self._brain, self._whose, now_s)
        self._ends.begin_anew(yielding, now_s)
        self.kueue, self._prover = self._book()
        self._knowledge.begin_anew(self.kueue.queues)
        self._is_torn = False

    def _book(self) -> tuple[Kueue, Proof]:
        """Of quota, in which nobody is known yet."""
        kueue, brain = Kueue(Queues(SETTINGS)), self._brain
        return kueue, Proof(kueue.queues, brain.intake, brain.placement, self._pods_of, self._running_of)

    # -- hearing -----------------------------------------------------------------------------------------------------

    def _heard(self, event: Event) -> bool:
        if isinstance(event, PodArrived):
            return self._arrived(event)
        if isinstance(event, PodBound):
            if (origin := self._origin(event)) is not None:
                self.works.bound(event, origin)
        elif isinstance(event, PodGone):
            self._is_freed = self._is_freed or event.key in self._brain.cluster.pods
            self._grouping.forget(event.key)
            self.works.leave(event.key)
        elif isinstance(event, PodRejected):
            return self._called_off(event.key)
        else:
            self._knowledge.hear(event)
            self._is_freed = self._is_freed or isinstance(event, NodeSeen)
        return False

    def _origin(self, event: PodArrived | PodBound) -> Origin | None:
        return None if self._is_left else self._origins.of(event.key, event.who)

    def _whose(self, event: PodArrived | PodBound) -> Origin | None:
        """Also while KAI is here itself: what is let go has to be known. None while its group is not written."""
        is_kept = isinstance(event, PodArrived) and self._grouping.keeps(event)
        return None if is_kept else self._origins.of(event.key, event.who)

    def _arrived(self, event: PodArrived) -> bool:
        cluster = self._brain.cluster
        if self._is_left or event.key in cluster.pods or event.key in cluster.pending:
            return False
        if self._grouping.keeps(event):
            return True
        origin = self._origins.of(event.key, event.who)
        if origin is None:
            return False
        self.works.arrive(event, origin)
        return True

    def _called_off(self, pod: str) -> bool:
        """Who has to yield and was not bound yet looks for no place until there is quota for it again."""
        work, holding, sight = self.works.of_pod(pod), self._brain.cluster.pods.get(pod), self._brain.world.sight(pod)
        if work is None or work.evicted_s is None or holding is None or holding.bound or sight is None:
            return False
        if not isinstance(sight.event, PodArrived):
            return False
        self._brain.intake.apply(PodGone(pod))
        self._is_freed = True
        self.works.arrive(sight.event, work.origin)
        return True

    def _take_in(self, now_s: float) -> bool:
        """Whether there was anything."""
        is_moved = self._origins.is_stale or self._knowledge.is_stale
        if is_moved:
            self._origins.is_stale = False
            self._knowledge.refresh(self._origins.queues)
            # What waits may be told something else by now.
            self._statuses.all_again()
        for origin in self._origins.take_groups():
            self._claim(origin.name)
            self.works.again(origin)
        dirty, self.works.dirty = self.works.dirty, {}
        for key in dirty:
            self._put(key, now_s)
            self._statuses.touch(key)
            self._ends.stale.look(gang_of(key), now_s)
        return is_moved or bool(dirty)

    def _claim(self, group: str) -> None:
        """Pods that nobody could know to be KAI's, and that are in line already."""
        gang = self._brain.cluster.gangs.find(group)
        for pod in list(gang.waiting) if gang is not None else ():
            sight = self._brain.world.sight(pod)
            if sight is not None and isinstance(sight.event, PodArrived) and self.works.of_pod(pod) is None:
                self._brain.intake.apply(PodGone(pod))
                self._arrived(sight.event)

    def _put(self, key: str, now_s: float) -> None:
        work = self.works.all.get(key)
        facts = work.facts() if work is not None else None
        if work is None or facts is None:
            self.kueue.drop_workload(key, now_s)
            self._ends.forget(key)
            return
        self.kueue.put_workload(facts, now_s)
        if facts.admission is None:
            self._ends.forget(key)
            if work.origin.queue not in self.kueue.queues.cluster_queues:
                # No cycle will look at it.
                self._statuses.stir(key)

    def _created_s(self, pod: str) -> float:
        sight = self._brain.world.sight(pod)
        return 0.0 if sight is None else sight.created_s

    # -- deciding ----------------------------------------------------------------------------------------------------

    def _obey(self, decisions: Decisions, now_s: float) -> list[Evict]:
        placed, self._prover.placed = self._prover.placed, []
        self._placed += placed
        ended: list[Evict] = []
        proven = {place.pod for place in placed}
        for admitted in decisions.admitted:
            work = self.works.all[admitted.workload]
            self._statuses.forget(work.key)
            for event in self.works.let_in(work, now_s):
                if event.key not in proven:
                    self._onward(event)
        for preempted in decisions.preempted:
            work = self.works.all[preempted.workload]
            work.evicted_s = now_s
            beneficiary = self.works.all.get(preempted.beneficiary)
            ended += self._ends.end_with_rest(work, beneficiary.origin.name if beneficiary is not None else "", now_s)
        for waiting in decisions.waiting:
            self._is_starved = self._is_starved or waiting.why is Wait.TOPOLOGY
            self._statuses.stir(waiting.workload)
        return ended

    def _facts_of(self, group: str) -> GroupFacts | None:
        gang = self._brain.cluster.gangs.find(group)
        return None if gang is None else gang.facts

    def _pods_of(self, facts: WorkloadFacts, _: Admission) -> list[PodArrived]:
        work = self.works.all.get(facts.key)
        return [] if work is None else list(work.waiting.values())

    def _running_of(self, workload: str) -> list[str]:
        work = self.works.all.get(workload)
        return [] if work is None else list(work.there)

    # -- leaving it to others ----------------------------------------------------------------------------------------

    @property
    def _is_left(self) -> bool:
        return self._presence is not None and self._presence.is_there

    def _let_all_go(self, now_s: float) -> None:
        """They stand in line like any pod."""
        for pod in self._grouping.let_go():
            self._onward(pod)
        for work in list(self.works.all.values()):
            for event in self.works.let_in(work, now_s) if work.waiting else ():
                self._onward(event)
