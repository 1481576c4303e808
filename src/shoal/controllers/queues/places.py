"""Places on nodes for those who are admitted: proven before the admission, kept until the pods come, taken by them."""

from __future__ import annotations

from typing import Protocol

from shoal.api.pod import Pod
from shoal.controllers.queues.arrivals import Arrivals, Sights
from shoal.controllers.queues.book import Book
from shoal.controllers.queues.ghosts import KEPT_S, Ghosts
from shoal.controllers.queues.telling import Telling
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.events import PodArrived
from shoal.engine.from_api import ask_of_pod
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.plan import Place
from shoal.engine.queues.facts import Admission, WorkloadFacts
from shoal.engine.queues.proof import Proof
from shoal.store.watched.queues import WatchedQueues


class Brain(Protocol):
    """What the desk asks of whoever holds it."""

    @property
    def cluster(self) -> Cluster: ...
    @property
    def intake(self) -> Intake: ...
    @property
    def placement(self) -> Placement: ...
    @property
    def world(self) -> Sights: ...

    def wake(self) -> None: ...


class Places:
    def __init__(self, brain: Brain, watched: WatchedQueues, book: Book, telling: Telling) -> None:
        self._brain = brain
        self._watched = watched
        self._book = book
        self._telling = telling
        self.arrivals = Arrivals(brain.intake, brain.placement, brain.world)
        self.ghosts = Ghosts(brain.intake, watched.workload, self._ask_of, self.arrivals.present)
        self._wanted: dict[str, None] = {}
        """Workloads that are admitted and have no places kept for pods that are still to come."""
        self._prover: Proof | None = None

    # -- before an admission ---------------------------------------------------------------------------------

    def begin_round(self) -> None:
        self._wanted.update(dict.fromkeys(self.ghosts.homeless()))
        if self._prover is None:
            queues = self._book.queues
            self._prover = Proof(queues, self._brain.intake, self._brain.placement, self._pods_of, self._running_of)
        self._brain.placement.renew()

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

    # -- while it lasts --------------------------------------------------------------------------------------

    def want(self, workload: str) -> None:
        """It is admitted, and its pods are still to come."""
        self._wanted[workload] = None

    def give_back(self, workload: str) -> None:
        """It is admitted no more."""
        self.ghosts.drop(workload)
        self._wanted.pop(workload, None)

    def forget(self, workload: str) -> None:
        """It is gone, and its pods are like any."""
        self.give_back(workload)
        self.arrivals.let_go(workload)

    def find_wanted(self, now_s: float) -> None:
        """Places for those that were admitted before, as far as their pods are still to come."""
        wanted, self._wanted = self._wanted, {}
        for key in wanted:
            held = self._book.held(key)
            if held is None or held.evicted or not held.facts.admitted or now_s >= held.facts.admitted_s + KEPT_S:
                continue
            if self._prover is not None and self._brain.cluster.row_of:
                self._prover.admit(held.facts, held.admission)
                self.keep_proven()

    def take(self, now_s: float) -> list[Place]:
        """The pods that take places in this round."""
        placed: list[Place] = []
        for workload in self.arrivals.waiting():
            held, sight = self._book.held(workload), self._book.sights.get(workload)
            if held is None and sight is not None and not sight.is_finished:
                # It is not admitted: its pods are on their way out, or came too early.
                continue
            if held is not None and (held.evicted or not held.facts.admitted):
                continue
            if self.ghosts.count(workload):
                placed += self.arrivals.take(workload, self.ghosts, now_s)
            else:
                self.arrivals.let_go(workload)
        return placed

    def expire(self, now_s: float) -> None:
        for key in self.ghosts.workloads():
            if now_s >= self._kept_until_s(key):
                count, sight = self.ghosts.drop(key), self._book.sights.get(key)
                if sight is not None:
                    self._telling.places_dropped(sight, count, KEPT_S)

    def let_all_go(self) -> None:
        """Admission is somebody else's."""
        for workload in self.arrivals.waiting():
            self.arrivals.let_go(workload)

    def moments(self) -> list[float]:
        """When something of it is due."""
        found = [self.arrivals.due_s(key, 0.0) for key in self.arrivals.waiting() if self.ghosts.count(key)]
        return found + [self._kept_until_s(key) for key in self.ghosts.workloads()]

    # Inside

    def _kept_until_s(self, workload: str) -> float:
        held = self._book.held(workload)
        return 0.0 if held is None else held.facts.admitted_s + KEPT_S

    def _pods_of(self, facts: WorkloadFacts, admission: Admission) -> list[PodArrived]:
        return self.ghosts.pods_of(self._book.queues, self._watched.priorities, facts, admission)

    def _running_of(self, workload: str) -> list[str]:
        return [*self.arrivals.there(workload), *self.ghosts.keys(workload)]

    def _ask_of(self, pod: Pod) -> Ask:
        devices = getattr(self._brain.world, "devices", None)
        if devices is None or not pod.spec.resource_claims:
            return ask_of_pod(pod)
        refs, asking = devices.refs(pod)
        return ask_of_pod(asking, claims=refs)
