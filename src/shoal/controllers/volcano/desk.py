"""Pods of groups are kept from the brain's facts until their queue has let the group in and has room for them.

A queue's capability holds here a second time: between the moment a group was let in and the moment its pods are placed
others may have come, and groups that name no least were let in unasked. A gang goes whole up to its minimum or not at
all. One that was let go and found no nodes gives its room back after a while, when others of its queue wait for it.
Where queues say what they deserve, quota goes by that (`sharing`), and may be taken back.

Nothing is remembered: after a restart pods arrive anew, and those that are bound say what is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence

from shoal.controllers.brain.parts import Holder
from shoal.controllers.volcano.group_room import GroupRoom, choose
from shoal.controllers.volcano.group_view import GroupView
from shoal.controllers.volcano.kept_pods import KeptPods
from shoal.controllers.volcano.kept_words import KeptWords
from shoal.controllers.volcano.names import JOB_QUEUE, SCHEDULER
from shoal.controllers.volcano.phases import NOT_READY
from shoal.controllers.volcano.queue_tree import QueueTree
from shoal.controllers.volcano.shares import Shares
from shoal.controllers.volcano.sharing import Sharing
from shoal.controllers.volcano.sights import PodGroup
from shoal.controllers.volcano.units import Turn, Unit, units_of
from shoal.engine.events import Event, PodArrived, PodBound, PodGone, PodRejected
from shoal.engine.plan import Evict, Place
from shoal.store.live.context import Context
from shoal.store.live.presence import Presence
from shoal.store.live.served import Served

PATIENCE_S = 10.0
"""How long a group may look for nodes while others wait for the room it takes of its queue."""


class VolcanoDesk:
    def __init__(
        self,
        context: Context,
        served: Served,
        brain: Holder,
        presence: Presence | None = None,
        onward: Callable[[PodArrived], None] | None = None,
    ) -> None:
        """`onward`: what becomes of a pod that may be placed; by default the facts take it."""
        self._brain = brain
        self._presence = presence
        self._onward = onward or brain.intake.apply
        self._kept = KeptPods()
        self._released_s: dict[str, float] = {}
        self._recalls: dict[str, int] = {}
        self._fading: set[str] = set()
        """Groups that may be gone, with all their pods."""
        self._is_due = False
        self._next_s: float | None = None
        self._view = GroupView(context, served, self._stir)
        self._room = GroupRoom(self._queue_of)
        self._sharing = Sharing(brain, self._kept.event)
        self._words = KeptWords(context, lambda: len(brain.cluster.all_rows()))

    # -- the protocol -----------------------------------------------------------------------------------------------

    def hear(self, event: Event) -> bool:
        if isinstance(event, PodArrived):
            return self._arrived(event)
        self._is_due |= self._sharing.hear(event)
        if isinstance(event, PodBound):
            self._bound(event)
        elif isinstance(event, PodGone):
            self._forget(event.key)
        elif isinstance(event, PodRejected):
            return self._called_off(event.key)
        return False

    def round(self, now_s: float) -> Sequence[Place | Evict]:
        if not self._is_due and (self._next_s is None or now_s < self._next_s):
            return []
        self._is_due, self._next_s = False, None
        try:
            return self._decided(now_s)
        except Exception:
            # Whoever asks again after a fault asks for all of it.
            self._is_due = True
            raise

    def _decided(self, now_s: float) -> Sequence[Place | Evict]:
        self._let_fade()
        tree = self._view.tree()
        if not self._is_away():
            self._next_s = now_s + PATIENCE_S if self._kept else None
        elif tree is not None:
            shares = self._sharing.shares(tree)
            if shares is not None:
                return self._share(tree, shares, now_s)
            self._let_go(tree, set(self._kept), now_s)
        return []

    def next_s(self) -> float | None:
        return self._next_s

    @property
    def is_idle(self) -> bool:
        return not self._is_due

    async def synced(self) -> None:
        """What is let go and what is kept follows from queues and groups, and from whose they are."""
        if self._presence is not None:
            await self._presence.look()
        await self._view.synced()

    async def run(self) -> None:
        """Pods of groups that were not let in are told by those who look after groups, and the others here."""
        await self._words.run(lambda pod: self._kept.event(pod) is not None)

    # -- hearing ----------------------------------------------------------------------------------------------------

    def _stir(self, group: str = "") -> None:
        """A group changed, or queues did."""
        self._fading.add(group)
        if not group or group in self._kept:
            self._is_due = True
            self._brain.wake()

    def _arrived(self, event: PodArrived) -> bool:
        cluster = self._brain.cluster
        if event.key in cluster.pods or event.key in cluster.pending or not self._is_away() or not self._is_ours(event):
            return False
        self._kept.drop(event.key)
        self._kept.keep(event.who.group, event)
        self._is_due = True
        return True

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

    def _bound(self, event: PodBound) -> None:
        self._kept.drop(event.key)
        if not event.who.group or not self._view.has_groups or event.key in self._room:
            return
        pod = self._view.pod(event.key)
        if pod is not None and pod.group:
            self._view.queues_of.setdefault(event.who.group, pod.metadata.annotations.get(JOB_QUEUE, ""))
            self._room.hold(event.who.group, event.key, pod.requests())

    def _called_off(self, pod: str) -> bool:
        """Who has to yield and was not bound yet looks for no place until its queue has room for it again."""
        holding = self._brain.cluster.pods.get(pod)
        if holding is None or holding.bound or not self._sharing.has_to_yield(pod):
            return False
        self._take_out(self._room.group_of(pod), pod)
        self._is_due = True
        return True

    def _forget(self, pod: str) -> None:
        self._fading.add(self._kept.group_of(pod) if self._kept.event(pod) else self._room.group_of(pod))
        self._kept.drop(pod)
        if pod in self._room:
            self._room.leave(pod)
            self._is_due = self._is_due or bool(self._kept)

    def _let_fade(self) -> None:
        """Nothing is remembered of groups of which nothing is left."""
        for name in self._fading if self._view.has_groups else ():
            if name not in self._kept and not self._room.pods(name) and self._view.group(name) is None:
                self._view.queues_of.pop(name, None)
                self._released_s.pop(name, None)
                self._recalls.pop(name, None)
        self._fading.clear()

    # -- letting go -------------------------------------------------------------------------------------------------

    def _share(self, tree: QueueTree, shares: Shares, now_s: float) -> Sequence[Place | Evict]:
        """Queues say what they deserve: quota goes by that, and may be taken back."""
        names = dict.fromkeys((*self._kept, *self._room.groups()))
        units = [unit for name in names if self._sharing.knows(self._queue_of(name)) for unit in self._units(name)]
        found = self._sharing.round(shares, units, now_s)
        for place in found.placed:
            self._hold(place.pod, now_s, is_placed=True)
        for pod in found.released:
            self._hold(pod, now_s)
        for group in self._released_s.keys() & set(found.taken_back):
            self._take_back(group)
        self._let_go(tree, {name for name in self._kept if not self._sharing.knows(self._queue_of(name))}, now_s)
        if found.stuck:
            self._recall(tree, {one.name for queue in found.stuck for one in tree.upwards(queue)}, now_s)
        if found.released or found.placed:
            # What groups have beyond their minimum comes now.
            self._is_due = True
            self._brain.wake()
        self._look_at(self._sharing.next_s())
        self._tell()
        return [*found.placed, *found.evicted]

    def _tell(self) -> None:
        """Of groups that are let in and still kept."""
        for name in self._kept:
            group = self._view.group(name) if name else None
            if group is None or group.is_waiting:
                continue
            pods, least = list(self._kept.of(name)), max(group.spec.min_member, 1)
            if len(pods) + len(self._room.amounts(name)) < least:
                self._words.too_small(name, least, pods)
            else:
                self._words.say(pods, f"{NOT_READY}; queue resource quota insufficient in queue {self._queue_of(name)}")

    def _units(self, name: str) -> Iterator[Unit]:
        group = self._view.group(name) if name else None
        kept = self._kept.of(name) if group is not None and not group.is_waiting else {}
        waiting = [pod for key in kept if (pod := self._view.pod(key)) is not None]
        holdings = self._brain.cluster.pods
        there = [holdings[pod].priority for pod in self._room.pods(name) if pod in holdings]
        priority = max([event.priority for event in kept.values()] + there, default=0)
        turn = Turn(self._queue_of(name), priority, self._recalls.get(name, 0))
        return units_of(name, group, waiting, self._room.amounts(name), turn)

    def _hold(self, key: str, now_s: float, *, is_placed: bool = False) -> None:
        """The pod is in the facts from now on; one without a place looks for it."""
        group, pod = self._kept.group_of(key), self._view.pod(key)
        self._room.hold(group, key, pod.requests() if pod is not None else {})
        self._released_s[group] = now_s
        event = self._kept.drop(key)
        if event is not None and not is_placed:
            self._onward(event)

    def _let_go(self, tree: QueueTree, names: Container[str], now_s: float) -> None:
        usage = self._room.usage(tree) if tree.has_limits else {}
        stuck: set[str] = set()
        for name, group in self._turns():
            if name not in names:
                continue
            kept = self._kept.of(name)
            pods = [pod for key in kept if (pod := self._view.pod(key)) is not None]
            there = len(tuple(self._room.pods(name)))
            chosen, refusal = choose(tree, group, pods, there, usage)
            for pod in chosen:
                self._hold("/".join(pod.metadata.key), now_s)
            if refusal is not None:
                stuck.update(queue.name for queue in tree.upwards(group.queue))
        if stuck:
            self._recall(tree, stuck, now_s)

    def _turns(self) -> Iterator[tuple[str, PodGroup]]:
        """Groups that were let in and have pods here, in the order in which they may go on."""
        found = []
        for name in self._kept:
            group = self._view.group(name) if name else None
            if group is not None and not group.is_waiting:
                first = next(iter(self._kept.of(name).values()))
                turn = (-first.priority, self._recalls.get(name, 0), group.metadata.created_s, name)
                found.append((turn, name, group))
        for _, name, group in sorted(found, key=lambda one: one[0]):
            yield name, group

    def _recall(self, tree: QueueTree, stuck: set[str], now_s: float) -> None:
        """Groups that hold room of these queues and have no node yet go back behind those that wait."""
        pending = self._brain.cluster.pending
        for group in self._room.groups():
            released_s = self._released_s.get(group)
            if released_s is None or all(one.name not in stuck for one in tree.upwards(self._queue_of(group))):
                continue
            pods = self._room.pods(group)
            if not all(pod in pending for pod in pods):
                continue
            if now_s < released_s + PATIENCE_S:
                self._look_at(released_s + PATIENCE_S)
                continue
            self._take_back(group)
            self._is_due = True

    def _take_back(self, group: str) -> None:
        self._released_s.pop(group)
        self._recalls[group] = self._recalls.get(group, 0) + 1
        for pod in self._room.pods(group):
            self._take_out(group, pod)

    def _take_out(self, group: str, pod: str) -> None:
        """Of the facts."""
        self._room.leave(pod)
        self._brain.intake.apply(PodGone(pod))
        sight = self._brain.world.sight(pod)
        if sight is not None and isinstance(sight.event, PodArrived):
            self._kept.keep(group, sight.event)

    def _look_at(self, due_s: float | None) -> None:
        self._next_s = min((each for each in (self._next_s, due_s) if each is not None), default=None)

    def _queue_of(self, group: str) -> str:
        return self._view.queues_of.get(group, "")

    def _is_away(self) -> bool:
        return self._presence is None or not self._presence.is_there
