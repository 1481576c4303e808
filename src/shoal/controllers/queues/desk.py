"""Who is admitted, decided round after round over the brain's facts, and written down beside.

The discipline is the one that manifests are decided by (`engine/queues`): here its facts come from caches, its
admissions are proven on the nodes as they are, and what it decides stands in the facts at once and in the Workloads as
soon as they are written. Until then what caches say of such a workload is old, and is not heard.

Promises: nothing is remembered that the Workloads do not say, so whoever comes after decides as this one would have;
one workload that cannot be read or written is told so on itself and keeps nobody else waiting; a round looks at what
changed, however many wait.

Rejected: deciding from a snapshot per cycle. Five thousand that wait would be read anew for each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from shoal.controllers.brain.parts import Holder
from shoal.controllers.queues.arrivals import Arrivals
from shoal.controllers.queues.book import Book
from shoal.controllers.queues.deciding import Deciding
from shoal.controllers.queues.elastic_gates import ElasticGates
from shoal.controllers.queues.failed_nodes import FailedNodes
from shoal.controllers.queues.ghosts import Ghosts
from shoal.controllers.queues.hearing import Hearing
from shoal.controllers.queues.pen import Pen
from shoal.controllers.queues.places import Places
from shoal.controllers.queues.queue_statuses import QueueStatuses
from shoal.controllers.queues.stories import Stories
from shoal.controllers.queues.telling import Telling
from shoal.controllers.queues.topology_gates import TopologyGates
from shoal.controllers.queues.troubles import tell_troubles
from shoal.controllers.queues.untold import tell_the_untold
from shoal.engine.events import Event, NodeGone, NodeSeen, PodBound, PodGone
from shoal.engine.plan import Place
from shoal.engine.queues.decisions import Decisions
from shoal.engine.queues.kueue import Kueue
from shoal.store.live.context import Context
from shoal.store.live.presence import KUEUE, Presence
from shoal.store.live.upkeep import kept_up
from shoal.store.watched.queue_news import QueueNews
from shoal.store.watched.queues import WatchedQueues

_AGAIN_S = 1.0


class QueueDesk:
    def __init__(
        self, context: Context, watched: WatchedQueues, brain: Holder, presence: Presence | None = None
    ) -> None:
        self._context = context
        self._watched = watched
        self._brain = brain
        self.presence = presence or Presence(context, KUEUE)
        self._pen = Pen(context, watched, self._settled)
        self._telling = Telling(self._pen, watched)
        self._book = Book(watched.settings, self._pen)
        self._places = Places(brain, watched, self._book, self._telling)
        self._stories = Stories(brain.cluster, self.arrivals.there, self.arrivals.workload_of)
        self._hearing = Hearing(self._book, self._places, self._telling, self._stories)
        self._deciding = Deciding(self._book, self._places, self._telling)
        self._failed_nodes = FailedNodes(self._book, self._telling, brain.cluster, self.arrivals.there)
        self._statuses = QueueStatuses(context, watched)
        self._gates = TopologyGates(context, watched.workload, lambda: not self.presence.is_there)
        self._elastic = ElasticGates(context, watched.workload, self.arrivals.heir, lambda: not self.presence.is_there)
        self._news: list[QueueNews] = []
        self._is_freed = False
        """There may be room on nodes that was not there in the last round."""

    @property
    def kueue(self) -> Kueue:
        return self._book.kueue

    @property
    def ghosts(self) -> Ghosts:
        return self._places.ghosts

    @property
    def arrivals(self) -> Arrivals:
        return self._places.arrivals

    def measure(self, around: Callable[[Callable[[], Decisions]], Decisions]) -> None:
        """Who stands around each cycle, and times it."""
        self._deciding.around = around

    # -- the protocol ----------------------------------------------------------------------------------------

    def hear(self, event: Event) -> bool:
        self._places.hear(event)
        if isinstance(event, (NodeSeen, NodeGone)) or (
            isinstance(event, PodGone) and event.key in self._brain.cluster.pods
        ):
            self._is_freed = True
        if isinstance(event, PodGone):
            self._stories.hear(event)
            self._failed_nodes.stir()
            return self.arrivals.hear(event, self.ghosts)
        is_kept = self.arrivals.hear(event, self.ghosts)
        self._stories.hear(event)
        if isinstance(event, PodBound):
            # It may have been told to end.
            self._failed_nodes.stir()
        return is_kept

    def round(self, now_s: float) -> list[Place]:
        if self.presence.is_there:
            self._places.let_all_go()
            return []
        if not self._watched.is_synced:
            return []
        try:
            return self._decided(now_s)
        except Exception:
            # What was decided and not told is nobody's: everybody is heard once more, as his Workload has it.
            self._places.drop_proven()
            self._watched.tell_all_again()
            raise

    def _decided(self, now_s: float) -> list[Place]:
        # Conditions tell whole seconds; what is read back is then what was decided.
        moment_s = float(int(now_s))
        self._hear_news(moment_s)
        self._is_freed |= self._places.begin_round(moment_s)
        self._deciding.heed(is_freed=self._is_freed)
        self._failed_nodes.find()
        self._places.find_wanted(moment_s, is_freed=self._is_freed)
        self._deciding.stop_who_must(moment_s)
        self._stories.tell(self._book.queues, moment_s)
        self._deciding.run_cycles(moment_s)
        tell_the_untold(self._book, self._telling)
        self._places.expire(moment_s)
        self.ghosts.tidy()
        self._is_freed = False
        self._statuses.note(self.kueue, self._book.sights)
        tell_troubles(self._context, self._watched.troubles)
        return self._places.take(now_s)

    def _hear_news(self, moment_s: float) -> None:
        """What broke is heard again: once it has been said nobody says it a second time."""
        self._news.append(self._watched.drain())
        while self._news:
            left = self._hearing.take_in(self._news[0], moment_s)
            del self._news[0]
            for key in left:
                self._watched.again(key)
            if left:
                self._context.clock.call_later(_AGAIN_S, self._brain.wake)

    def next_s(self) -> float | None:
        if self.presence.is_there:
            return None
        moments = [*self._deciding.moments(), self._hearing.next_s(), *self._places.moments()]
        return min((each for each in moments if each is not None), default=None)

    @property
    def is_idle(self) -> bool:
        if self.presence.is_there or not self._watched.is_synced:
            return True
        return self.kueue.is_idle and not self._book.untold

    async def run(self) -> None:
        # Each by itself: a fault in one must not end what the others are writing.
        parts: dict[str, Callable[[], Awaitable[None]]] = {
            "the configuration of queues": self._watched.run,
            "writing Workloads": self._pen.run,
            "the statuses of queues": self._statuses.run,
            "gates of pods": self._open_gates,
            "looking for Kueue": partial(self.presence.run, self._brain.wake),
        }
        async with asyncio.TaskGroup() as group:
            for name, run in parts.items():
                group.create_task(kept_up(self._context.clock, name, run))

    async def synced(self) -> None:
        """Returns when a round may decide: until then it leaves everything as it is."""
        await self._watched.synced()

    # Inside

    async def _open_gates(self) -> None:
        await self._watched.synced()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._gates.run())
            group.create_task(self._elastic.run())

    def _settled(self, key: str, refused: str) -> None:
        """A decision is written, or the server would not have it: what is there now is what counts."""
        if refused:
            self._hearing.refused(key, refused)
        self._gates.stir(key)
        self._elastic.stir(key)
        self._watched.again(key)
        self._brain.wake()
