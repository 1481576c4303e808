"""Who is admitted and who has to stop: the discipline's cycles over the book, and what follows from each decision."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec import structs

from shoal.controllers.queues.book import Book
from shoal.controllers.queues.places import Places
from shoal.controllers.queues.telling import Telling
from shoal.controllers.queues.words import path_of
from shoal.engine.queues.decisions import Admitted, Decisions, Preempted, Stopped
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.upkeep import next_deadline_s, to_stop

_MOST_CYCLES = 32


class Deciding:
    def __init__(self, book: Book, places: Places, telling: Telling) -> None:
        self._book = book
        self._places = places
        self._telling = telling
        self._is_starved = False
        """Somebody was turned away for want of places."""
        self._unplaced: dict[str, str] = {}
        """Workloads that need other domains, and why there are none."""
        self._deadline_s: float | None = None
        self.around: Callable[[Callable[[], Decisions]], Decisions] = lambda cycle: cycle()
        """Whoever measures cycles stands around each."""

    def heed(self, *, is_freed: bool) -> None:
        """`is_freed`: there are nodes or room on nodes that were not there in the last round."""
        if is_freed and self._is_starved:
            self._is_starved = False
            self._book.kueue.wake()

    def stop_who_must(self, now_s: float) -> None:
        book = self._book
        if not book.is_upkeep_due and (self._deadline_s is None or now_s < self._deadline_s):
            return
        book.is_upkeep_due = False
        for stopped in list(to_stop(book.queues, now_s)):
            self._stop(stopped, now_s)
        self._deadline_s = next_deadline_s(book.queues)

    def run_cycles(self, now_s: float) -> None:
        book = self._book
        prover = self._places.prover
        for _ in range(_MOST_CYCLES):
            due_s = book.kueue.next_s()
            if book.kueue.is_idle and not book.is_cycle_due and (due_s is None or due_s > now_s):
                break
            book.is_cycle_due = False
            self._obey(self.around(partial(book.kueue.cycle, now_s, prover)), now_s)

    def moments(self) -> list[float | None]:
        return [self._book.kueue.next_s(), self._deadline_s]

    # Inside

    def _stop(self, stopped: Stopped, now_s: float) -> None:
        book = self._book
        held, sight = book.queues.held[stopped.workload], book.sights.get(stopped.workload)
        if sight is None or book.is_deciding(held.key):
            return
        self._telling.stopped(sight, held.facts, stopped)
        if held.facts.active and stopped.deactivate:
            # It is evicted once it is switched off; until then it is not told twice.
            return
        held.evicted = True
        held.facts = structs.replace(held.facts, evicted_s=now_s, evicted_why=stopped.reason)
        self._places.ghosts.drop(held.key)

    def _obey(self, decisions: Decisions, now_s: float) -> None:
        book = self._book
        self._places.keep_proven()
        for admitted in decisions.admitted:
            self._admit(admitted, now_s)
        for preempted in decisions.preempted:
            self._preempt(preempted)
        for stopped in decisions.stopped:
            sight, held = book.sights.get(stopped.workload), book.held(stopped.workload)
            if sight is not None and held is not None:
                self._telling.stopped(sight, held.facts, stopped)
                self._places.ghosts.drop(stopped.workload)
        self._tell_unplaced(decisions)
        for waiting in decisions.waiting:
            sight = book.sights.get(waiting.workload)
            if sight is not None:
                book.untold.pop(waiting.workload, None)
                self._is_starved = self._is_starved or waiting.why in (Wait.TOPOLOGY, Wait.VICTIMS)
                self._telling.waits(sight, sight.facts, (str(waiting.why), waiting.message))

    def _tell_unplaced(self, decisions: Decisions) -> None:
        """Once, as long as it is for the same reason."""
        for key, why in decisions.unplaced.items():
            sight = self._book.sights.get(key)
            if sight is not None and self._unplaced.get(key) != why:
                self._telling.unplaced(sight, why)
        held = self._book.queues.held
        placed = {admitted.workload for admitted in decisions.admitted}
        known = {**self._unplaced, **decisions.unplaced}
        self._unplaced = {key: why for key, why in known.items() if key in held and key not in placed}

    def _admit(self, decision: Admitted, now_s: float) -> None:
        sight, held = self._book.sights.get(decision.workload), self._book.held(decision.workload)
        self._book.untold.pop(decision.workload, None)
        if not decision.again:
            self._places.arrivals.dismiss(decision.workload)
        if held is not None and self._book.queues.heirs.has_place(held.facts):
            self._places.arrivals.succeed(held.facts.replaces, held.key)
        if sight is not None and held is not None:
            self._telling.admitted(sight, held, decision, now_s)

    def _preempt(self, decision: Preempted) -> None:
        book = self._book
        sight, held = book.sights.get(decision.workload), book.held(decision.workload)
        if sight is None or held is None:
            return
        found = book.sights.get(decision.beneficiary)
        local = book.queues.local_queues.get(found.queue) if found is not None else None
        queue = book.queues.cluster_queues.get(local.cluster_queue) if local is not None else None
        self._telling.preempted(sight, decision, (path_of(queue), path_of(held.queue)))
        if found is not None:
            self._telling.made_room(found, sight, held.queue.name)
        self._places.ghosts.drop(decision.workload)
