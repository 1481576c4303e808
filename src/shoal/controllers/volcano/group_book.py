"""Where the pods of groups are: kept from the brain's facts, or in them and counted to their queue.

Promises: nothing stands here that caches and facts do not say, so that it can be made anew from them at any time, after
a fault as after a restart.

Rejected: mending what a fault may have left undone. Whatever breaks next would leave something else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from shoal.controllers.brain.parts import Holder
from shoal.controllers.volcano.group_room import GroupRoom
from shoal.controllers.volcano.group_view import GroupView
from shoal.controllers.volcano.kept_pods import KeptPods
from shoal.controllers.volcano.names import JOB_QUEUE, SCHEDULER
from shoal.controllers.volcano.sights import PodGroup
from shoal.engine.events import PodArrived, PodBound, PodGone


class GroupBook:
    def __init__(self, brain: Holder, view: GroupView, onward: Callable[[PodArrived], None]) -> None:
        """`onward`: what becomes of a pod that may be placed."""
        self._brain = brain
        self._view = view
        self._onward = onward
        self.kept = KeptPods()
        self.room = GroupRoom(self.queue_of)
        self.released_s: dict[str, float] = {}
        """Since when groups may look for nodes."""
        self.recalls: dict[str, int] = {}
        """How often they did in vain."""
        self._fading: set[str] = set()
        """Groups that may be gone, with all their pods."""

    def queue_of(self, group: str) -> str:
        return self._view.queues_of.get(group, "")

    # -- hearing ----------------------------------------------------------------------------------------------------

    def arrived(self, event: PodArrived) -> bool:
        """Whether it is kept."""
        if not self._is_ours(event):
            return False
        self.kept.drop(event.key)
        self.kept.keep(event.who.group, event)
        return True

    def bound(self, event: PodBound) -> None:
        self.kept.drop(event.key)
        if event.key not in self.room:
            self._count(event)

    def gone(self, pod: str) -> bool:
        """Whether a queue has more room by that."""
        self._fading.add(self.kept.group_of(pod) if self.kept.event(pod) else self.room.group_of(pod))
        self.kept.drop(pod)
        was_there = pod in self.room
        self.room.leave(pod)
        return was_there

    def fade(self, group: str) -> None:
        """It may be gone."""
        self._fading.add(group)

    def let_fade(self) -> None:
        """Nothing is remembered of groups of which nothing is left."""
        for name in self._fading if self._view.has_groups else ():
            if name not in self.kept and not self.room.pods(name) and self._view.group(name) is None:
                self._view.queues_of.pop(name, None)
                self.released_s.pop(name, None)
                self.recalls.pop(name, None)
        self._fading.clear()

    # -- from the one to the other ----------------------------------------------------------------------------------

    def hold(self, key: str, now_s: float, *, is_placed: bool = False) -> None:
        """The pod is in the facts from now on; one without a place looks for it."""
        group, pod = self.kept.group_of(key), self._view.pod(key)
        self.room.hold(group, key, pod.requests() if pod is not None else {})
        self.released_s[group] = now_s
        event = self.kept.drop(key)
        if event is not None and not is_placed:
            self._onward(event)

    def take_back(self, group: str) -> None:
        """It looked for nodes for too long, and comes behind others from now on."""
        self.released_s.pop(group)
        self.recalls[group] = self.recalls.get(group, 0) + 1
        for pod in self.room.pods(group):
            self.take_out(pod)

    def take_out(self, pod: str) -> None:
        """Of the facts."""
        group = self.room.group_of(pod)
        self.room.leave(pod)
        self._brain.intake.apply(PodGone(pod))
        sight = self._brain.world.sight(pod)
        if sight is not None and isinstance(sight.event, PodArrived):
            self.kept.keep(group, sight.event)

    def begin_anew(self, *, keeps: bool) -> None:
        """From what is said of pods and what the facts have; `keeps`: pods without a place are kept from them."""
        self.kept.clear()
        self.room.clear()
        cluster = self._brain.cluster
        for event in self._brain.world.told():
            if event.key in cluster.pods:
                self._count(event)
            elif keeps and isinstance(event, PodArrived) and self._is_ours(event):
                if event.key in cluster.pending:
                    self._brain.intake.apply(PodGone(event.key))
                self.kept.keep(event.who.group, event)

    def turns(self) -> Iterator[tuple[str, PodGroup]]:
        """Groups that were let in and have pods here, in the order in which they may go on."""
        found = []
        for name in self.kept:
            group = self._view.group(name) if name else None
            if group is not None and not group.is_waiting:
                first = next(iter(self.kept.of(name).values()))
                turn = (-first.priority, self.recalls.get(name, 0), group.metadata.created_s, name)
                found.append((turn, name, group))
        for _, name, group in sorted(found, key=lambda one: one[0]):
            yield name, group

    # Inside

    def _is_ours(self, event: PodArrived) -> bool:
        if not self._view.has_groups:
            return False
        if event.who.group:
            if self._view.group(event.who.group) is not None:
                return True
            pod = self._view.pod(event.key)
            if pod is None or not pod.group:
                # A group of another project.
                return False
        sight = self._brain.world.sight(event.key)
        return sight is not None and sight.scheduler == SCHEDULER

    def _count(self, event: PodArrived | PodBound) -> None:
        if not event.who.group or not self._view.has_groups:
            return
        pod = self._view.pod(event.key)
        if pod is not None and pod.group:
            self._view.queues_of.setdefault(event.who.group, pod.metadata.annotations.get(JOB_QUEUE, ""))
            self.room.hold(event.who.group, event.key, pod.requests())
