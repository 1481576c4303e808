"""Places on nodes for those who are admitted: proven before the admission, kept until the pods come, taken by them."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from shoal.controllers.brain.parts import Holder
from shoal.controllers.queues.arrivals import Arrivals
from shoal.controllers.queues.book import Book
from shoal.controllers.queues.ghosts import KEPT_S, Ghosts
from shoal.controllers.queues.losses import Losses
from shoal.controllers.queues.telling import Telling
from shoal.controllers.queues.template_asks import TemplateAsks
from shoal.engine.events import Event, NodeSeen, PodArrived, PodGone
from shoal.engine.plan import Place
from shoal.engine.queues.facts import Admission, WorkloadFacts
from shoal.engine.queues.proof import Proof, Proven
from shoal.store.watched.queues import WatchedQueues

_log = logging.getLogger("shoal.queues")


class Places:
    def __init__(self, brain: Holder, watched: WatchedQueues, book: Book, telling: Telling) -> None:
        self._brain = brain
        self._watched = watched
        self._book = book
        self._telling = telling
        self.arrivals = Arrivals(brain.intake, brain.placement, brain.world)
        self._asks = TemplateAsks(brain.world, watched)
        self.ghosts = Ghosts(brain.intake, watched.workload, self._asks.of, self.arrivals.present)
        self.losses = Losses(book, self.arrivals, brain.world, brain.cluster)
        self._wanted: dict[str, None] = {}
        """Workloads that are admitted and have no places kept for pods that are still to come."""
        self._unplaced: dict[str, None] = {}
        """Those of them for whom there was no room."""
        self._changed_nodes: set[str] = set()
        self._prover: Proof | None = None

    # -- before an admission ---------------------------------------------------------------------------------

    def hear(self, event: Event) -> None:
        """Before anybody takes it in."""
        self.losses.hear(event)
        if isinstance(event, NodeSeen):
            self._changed_nodes.add(event.node.name)

    def begin_round(self, now_s: float) -> bool:
        """Whether pods may be placed by now that could not, as far as their volumes go."""
        stirred = self._asks.stirred()
        self._give_back_unreachable(stirred)
        self._wanted.update(dict.fromkeys(self.ghosts.homeless()))
        if self._prover is None:
            queues = self._book.queues
            intake, placement = self._brain.intake, self._brain.placement
            self._prover = Proof(queues, intake, placement, self._pods_of, self._running_of)
            self._prover.leaving = lambda: self.arrivals.former
        self._brain.placement.renew()
        self._keep_up(now_s)
        return bool(stirred)

    def _keep_up(self, now_s: float) -> None:
        """Places that were lost, and those that are none any more."""
        placement, nodes = self._brain.placement, self._changed_nodes
        self._changed_nodes = set()
        self.losses.tidy(self.ghosts, now_s)
        self._wanted.update(dict.fromkeys(self.losses.keep(self.ghosts, placement, now_s)))
        if nodes:
            self._wanted.update(dict.fromkeys(self.ghosts.unfit(nodes, placement)))

    def begin_anew(self) -> None:
        """Queues are decided by other rules."""
        self._prover = None

    @property
    def prover(self) -> Proof | None:
        """None where nothing is proven: no node is known, or nobody wants it."""
        if not self._brain.cluster.row_of or self._book.queues.settings.placement == "quotaOnly":
            return None
        return self._prover

    def keep_proven(self) -> None:
        """What the last cycle proved is kept."""
        if self._prover is not None and self._prover.placed:
            placed, self._prover.placed = self._prover.placed, []
            self.ghosts.keep(placed)

    def drop_proven(self) -> None:
        """What was proven for decisions that nobody was told of."""
        if self._prover is not None:
            placed, self._prover.placed = self._prover.placed, []
            for place in placed:
                self._brain.intake.apply(PodGone(place.pod))

    # -- while it lasts --------------------------------------------------------------------------------------

    def want(self, workload: str, since_s: float = 0.0) -> None:
        """It is admitted, and pods of it are still to come; since when, where that is later than its admission."""
        self._wanted[workload] = None
        if since_s:
            self.losses.since(workload, since_s)

    def give_back(self, workload: str) -> None:
        """It is admitted no more."""
        self.ghosts.drop(workload)
        self._wanted.pop(workload, None)
        self._unplaced.pop(workload, None)

    def forget(self, workload: str) -> None:
        """It is gone, and its pods are like any."""
        self.give_back(workload)
        self.arrivals.let_go(workload)
        self.arrivals.disinherit(workload)
        self._asks.forget(workload)

    def find_wanted(self, now_s: float, *, is_freed: bool) -> None:
        """Places for those that were admitted before, as far as their pods are still to come."""
        if is_freed:
            self._wanted |= self._unplaced
            self._unplaced = {}
        wanted, self._wanted = self._wanted, {}
        for key in wanted:
            held = self._book.held(key)
            if held is None or held.evicted or not held.facts.admitted or now_s >= self._kept_until_s(key):
                continue
            if self._prover is not None and self._brain.cluster.row_of:
                if self._prover.admit(held.facts, held.admission) in (Proven.NO_ROOM, Proven.LATER):
                    self._unplaced[key] = None
                self.keep_proven()

    def take(self, now_s: float) -> list[Place]:
        """The pods that take places in this round."""
        placed: list[Place] = []
        for workload in dict.fromkeys((*self.arrivals.waiting(), *self.losses.take_stirred())):
            held, sight = self._book.held(workload), self._book.sights.get(workload)
            if held is None and sight is not None and not sight.is_finished:
                # It is not admitted: its pods are on their way out, or came too early.
                continue
            if held is not None and (held.evicted or not held.facts.admitted):
                continue
            try:
                placed += self._taken(workload, now_s)
            except Exception:  # noqa: BLE001 - what the others have taken stands in the facts, and has to be handed out
                _log.exception("the pods of %s could not take their places", workload)
        return placed

    def _taken(self, workload: str, now_s: float) -> list[Place]:
        if self.ghosts.count(workload):
            return self.arrivals.take(workload, self.ghosts, now_s)
        self.arrivals.let_go(workload)
        return []

    def expire(self, now_s: float) -> None:
        for key in self.ghosts.workloads():
            if now_s >= self._kept_until_s(key):
                count, sight = self.ghosts.drop(key), self._book.sights.get(key)
                if sight is not None:
                    self._telling.places_dropped(sight, count, KEPT_S)

    def let_all_go(self) -> None:
        """Admission is somebody else's."""
        self.losses.forget_all()
        self._changed_nodes.clear()
        for workload in self.arrivals.waiting():
            self.arrivals.let_go(workload)
        for workload in self.ghosts.workloads():
            # Their pods stand in line like any by now, and must not wait for the room of their own ghosts.
            self.ghosts.drop(workload)
            self._wanted[workload] = None
        self.ghosts.tidy()

    def moments(self) -> list[float]:
        """When something of it is due."""
        due = (self.arrivals.due_s(key) for key in self.arrivals.waiting() if self.ghosts.count(key))
        found = [moment_s for moment_s in due if moment_s is not None] + self.losses.moments()
        return found + [self._kept_until_s(key) for key in self.ghosts.workloads()]

    # Inside

    def _kept_until_s(self, workload: str) -> float:
        held = self._book.held(workload)
        return 0.0 if held is None else max(held.facts.admitted_s + KEPT_S, self.losses.until_s(workload))

    def _pods_of(self, facts: WorkloadFacts, admission: Admission) -> list[PodArrived]:
        return self.ghosts.pods_of(self._book.queues, self._watched.priorities, facts, admission)

    def _running_of(self, workload: str) -> list[str]:
        return [*self.arrivals.there(workload), *self.ghosts.keys(workload)]

    def _give_back_unreachable(self, stirred: Iterable[str]) -> None:
        """Places from which volumes cannot be reached any more: others are looked for."""
        cluster = self._brain.cluster
        for workload in stirred:
            held = [(each.pod_set, self.ghosts.holding(each.key)) for each in self.ghosts.of(workload)]
            places = [(pod_set, cluster.names[holding.row]) for pod_set, holding in held if holding is not None]
            if places and not self._asks.are_reached(workload, places):
                self.ghosts.drop(workload)
                self.want(workload)
