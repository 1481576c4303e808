"""Pods of groups are kept from the brain's facts until their queue has let the group in and has room for them.

Where queues say what they deserve, quota goes by that (`sharing`), and may be taken back; else capabilities alone say
who goes on (`letting_go`).

Promises: nothing is remembered. After a restart pods arrive anew, and those that are bound say what is taken; after a
fault, wherever it was, the next round begins with books made anew from the same, and hands out what was decided.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from shoal.controllers.brain.parts import Holder
from shoal.controllers.volcano.agenda import Agenda
from shoal.controllers.volcano.group_book import GroupBook
from shoal.controllers.volcano.group_view import GroupView
from shoal.controllers.volcano.kept_words import KeptWords
from shoal.controllers.volcano.letting_go import PATIENCE_S, LettingGo
from shoal.controllers.volcano.phases import NOT_READY
from shoal.controllers.volcano.queue_tree import QueueTree
from shoal.controllers.volcano.shares import Shares
from shoal.controllers.volcano.sharing import Shared, Sharing
from shoal.controllers.volcano.units import Turn, Unit, units_of
from shoal.engine.events import Event, PodArrived, PodBound, PodGone, PodRejected
from shoal.engine.plan import Evict, Place
from shoal.store.live.context import Context
from shoal.store.live.presence import Presence
from shoal.store.live.served import Served


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
        self._agenda = Agenda()
        self._view = GroupView(context, served, self._stir)
        self._book = GroupBook(brain, self._view, onward or brain.intake.apply)
        self._letting_go = LettingGo(brain, self._view, self._book, self._agenda)
        self._sharing = Sharing(brain, self._book.kept.event)
        self._words = KeptWords(context, lambda: len(brain.cluster.all_rows()))
        self._placed: list[Place] = []
        """In the facts already, and not handed out yet."""
        self._torn_s: float | None = None
        """When something broke since the books were whole; without end where no round did."""

    # -- the protocol -----------------------------------------------------------------------------------------------

    def hear(self, event: Event) -> bool:
        try:
            return self._heard(event)
        except Exception:
            self._tear(math.inf)
            raise

    def round(self, now_s: float) -> Sequence[Place | Evict]:
        if not self._agenda.is_reached(now_s):
            return []
        self._agenda.begin()
        try:
            self._mend()
            evicted = self._decide(now_s)
        except Exception:
            # Whoever asks again after a fault asks for all of it.
            self._tear(now_s)
            raise
        placed, self._placed = self._placed, []
        return [*placed, *evicted]

    def next_s(self) -> float | None:
        return self._agenda.next_s

    @property
    def is_idle(self) -> bool:
        return not self._agenda.is_due

    async def synced(self) -> None:
        """What is let go and what is kept follows from queues and groups, and from whose they are."""
        if self._presence is not None:
            await self._presence.look()
        await self._view.synced()

    async def run(self) -> None:
        """Pods of groups that were not let in are told by those who look after groups, and the others here."""
        await self._words.run(lambda pod: self._book.kept.event(pod) is not None)

    # -- hearing ----------------------------------------------------------------------------------------------------

    def _stir(self, group: str = "") -> None:
        """A group changed, or queues did."""
        self._book.fade(group)
        if not group or group in self._book.kept:
            self._agenda.is_due = True
            self._brain.wake()

    def _heard(self, event: Event) -> bool:
        if isinstance(event, PodArrived):
            return self._arrived(event)
        self._agenda.is_due |= self._sharing.hear(event)
        if isinstance(event, PodBound):
            self._book.bound(event)
        elif isinstance(event, PodGone):
            has_room = self._book.gone(event.key)
            self._agenda.is_due |= has_room and bool(self._book.kept)
        elif isinstance(event, PodRejected):
            return self._called_off(event.key)
        return False

    def _arrived(self, event: PodArrived) -> bool:
        cluster = self._brain.cluster
        if event.key in cluster.pods or event.key in cluster.pending or not self._is_away():
            return False
        is_kept = self._book.arrived(event)
        self._agenda.is_due |= is_kept
        return is_kept

    def _called_off(self, pod: str) -> bool:
        """Who has to yield and was not bound yet looks for no place until its queue has room for it again."""
        holding = self._brain.cluster.pods.get(pod)
        if holding is None or holding.bound or not self._sharing.has_to_yield(pod):
            return False
        self._book.take_out(pod)
        self._agenda.is_due = True
        return True

    # -- after a fault ----------------------------------------------------------------------------------------------

    def _tear(self, moment_s: float) -> None:
        self._torn_s = min(moment_s, math.inf if self._torn_s is None else self._torn_s)
        self._agenda.is_due = True

    def _mend(self) -> None:
        if self._torn_s is not None:
            self._sharing.begin_anew(self._torn_s)
            self._book.begin_anew(keeps=self._is_away())
            self._torn_s = None

    # -- deciding ---------------------------------------------------------------------------------------------------

    def _decide(self, now_s: float) -> Sequence[Evict]:
        self._book.let_fade()
        tree = self._view.tree()
        if not self._is_away():
            self._agenda.look_at(now_s + PATIENCE_S if self._book.kept else None)
        elif tree is not None:
            shares = self._sharing.shares(tree)
            if shares is not None:
                return self._share(tree, shares, now_s)
            self._letting_go.run(tree, set(self._book.kept), now_s)
        return []

    def _share(self, tree: QueueTree, shares: Shares, now_s: float) -> Sequence[Evict]:
        """Queues say what they deserve: quota goes by that, and may be taken back."""
        book, sharing, found = self._book, self._sharing, Shared()
        names = dict.fromkeys((*book.kept, *book.room.groups()))
        units = [unit for name in names if sharing.knows(book.queue_of(name)) for unit in self._units(name)]
        try:
            sharing.round(shares, units, now_s, found)
        finally:
            self._placed += found.placed
        for place in found.placed:
            book.hold(place.pod, now_s, is_placed=True)
        for pod in found.released:
            book.hold(pod, now_s)
        for group in book.released_s.keys() & set(found.taken_back):
            book.take_back(group)
        self._letting_go.run(tree, {name for name in book.kept if not sharing.knows(book.queue_of(name))}, now_s)
        if found.stuck:
            stuck = {one.name for queue in found.stuck for one in tree.upwards(queue)}
            self._letting_go.recall(tree, stuck, now_s)
        if found.released or found.placed:
            # What groups have beyond their minimum comes now.
            self._agenda.is_due = True
            self._brain.wake()
        self._agenda.look_at(sharing.next_s())
        self._tell()
        return found.evicted

    def _tell(self) -> None:
        """Of groups that are let in and still kept."""
        book = self._book
        for name in book.kept:
            group = self._view.group(name) if name else None
            if group is None or group.is_waiting:
                continue
            pods, least = list(book.kept.of(name)), max(group.spec.min_member, 1)
            if len(pods) + len(book.room.amounts(name)) < least:
                self._words.too_small(name, least, pods)
            else:
                self._words.say(pods, f"{NOT_READY}; queue resource quota insufficient in queue {book.queue_of(name)}")

    def _units(self, name: str) -> Iterator[Unit]:
        book, holdings = self._book, self._brain.cluster.pods
        group = self._view.group(name) if name else None
        kept = book.kept.of(name) if group is not None and not group.is_waiting else {}
        waiting = [pod for key in kept if (pod := self._view.pod(key)) is not None]
        there = [holdings[pod].priority for pod in book.room.pods(name) if pod in holdings]
        priority = max([event.priority for event in kept.values()] + there, default=0)
        turn = Turn(book.queue_of(name), priority, book.recalls.get(name, 0))
        return units_of(name, group, waiting, book.room.amounts(name), turn)

    def _is_away(self) -> bool:
        return self._presence is None or not self._presence.is_there
