"""What happened to queues and Workloads, put into the book.

What caches say of a Workload while a decision about it is being written is old, and is not heard: it is told again
once that is written.
"""

from __future__ import annotations

import logging

from msgspec import structs

from shoal.controllers.queues.book import Book
from shoal.controllers.queues.held_as_before import holds_as_before
from shoal.controllers.queues.local_use import as_known
from shoal.controllers.queues.places import Places
from shoal.controllers.queues.stories import Stories
from shoal.controllers.queues.telling import Telling
from shoal.controllers.queues.tending import Tending
from shoal.engine.queues.facts import WorkloadFacts
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.settings import Settings
from shoal.store.watched.queue_news import QueueNews, WorkloadSight

_log = logging.getLogger("shoal.queues")


class Hearing:
    def __init__(self, book: Book, places: Places, telling: Telling, stories: Stories) -> None:
        self._book = book
        self._places = places
        self._telling = telling
        self._stories = stories
        self._tending = Tending(telling)
        self._faults: dict[str, tuple[int, str]] = {}
        """Workloads that the server would not have written, at a generation, and its words."""

    def take_in(self, news: QueueNews, now_s: float) -> list[str]:
        """Workloads that could not be taken in, and have to be told again."""
        book = self._book
        left: list[str] = []
        if news.settings is not None and news.settings != book.queues.settings:
            left += self._begin_anew(news.settings, now_s)
        queues = book.queues
        for fact in as_known(news.facts, queues.local_queues):
            queues.put(fact)
        for kind, name in news.dropped:
            queues.drop(kind, name)
        for name, labels in news.namespaces:
            queues.put_namespace(name, labels)
        if queues.is_stale:
            queues.refresh()
            book.is_upkeep_due = book.is_cycle_due = True
            # Why somebody stands in no line may be another thing by now.
            book.untold.update(dict.fromkeys(book.sights))
            for sight in book.sights.values():
                self._tend(sight, now_s)
        for key in self._tending.due(now_s):
            if (due := book.sights.get(key)) is not None:
                self._tend(due, now_s)
        for key in news.gone:
            self._forget(key, now_s)
        for sight in news.workloads:
            try:
                self._hear(sight, now_s)
            except Exception:  # noqa: BLE001 - one that breaks the code must not keep the others from being heard
                _log.exception("workload %s cannot be taken in", sight.key)
                left.append(sight.key)
        return left

    def next_s(self) -> float | None:
        return self._tending.next_s()

    def refused(self, workload: str, words: str) -> None:
        """The server would not have it written: it waits for somebody to change it."""
        sight = self._book.sights.get(workload)
        if sight is not None:
            self._faults[workload] = sight.generation, words

    # Inside

    def _begin_anew(self, settings: Settings, now_s: float) -> list[str]:
        """By other rules: everybody lines up again, and whoever holds something holds it. All facts are told anew.
        Returns whom it could not take along."""
        book, left = self._book, list[str]()
        # Of these the sights do not say yet what they hold.
        holding = {key: held.facts for key, held in book.queues.held.items()}
        holding |= {key: facts for key, (facts, _) in book.queues.homeless.items()}
        decided = {key: facts for key, facts in holding.items() if book.is_deciding(key)}
        book.begin_anew(settings)
        self._places.begin_anew()
        for sight in book.sights.values():
            facts = decided.get(sight.key, sight.facts)
            try:
                if facts is not None and sight.is_finished:
                    self._finish(sight, now_s)
                elif facts is not None:
                    book.kueue.put_workload(self._read(sight, facts), now_s)
            except Exception:  # noqa: BLE001 - one that breaks the code must not keep the others out of the new book
                _log.exception("workload %s cannot be taken along", sight.key)
                left.append(sight.key)
        return left

    def _forget(self, key: str, now_s: float) -> None:
        book = self._book
        book.pen.forget(key)
        book.sights.pop(key, None)
        book.untold.pop(key, None)
        self._faults.pop(key, None)
        self._tending.forget(key)
        self._places.forget(key)
        book.kueue.drop_workload(key, now_s)

    def _hear(self, sight: WorkloadSight, now_s: float) -> None:
        book, key = self._book, sight.key
        book.sights[key] = sight
        if sight.is_finished:
            self._finish(sight, now_s)
            return
        if sight.facts is None:
            book.kueue.drop_workload(key, now_s)
            if sight.fault:
                self._telling.waits(sight, None, (Wait.MISCONFIGURED, sight.fault))
            return
        if book.is_deciding(key):
            return
        if sight.is_leaving and sight.facts.admission is None:
            book.kueue.drop_workload(key, now_s)
            return
        self._put(self._read(sight, sight.facts), now_s)
        self._tend(sight, now_s)

    def _finish(self, sight: WorkloadSight, now_s: float) -> None:
        self._places.give_back(sight.key)
        if (heir := self._places.arrivals.heir(sight.key)) != sight.key:
            # What was kept for it is the other's.
            self._places.want(heir)
        self._book.untold.pop(sight.key, None)
        kueue = self._book.kueue
        if sight.facts is not None and sight.ran_s is not None:
            # By its own account, which is there as long as it is: whoever comes after knows as much.
            kueue.durations.learn(sight.facts, sight.ran_s)
        kueue.drop_workload(sight.key, now_s)

    def _read(self, sight: WorkloadSight, facts: WorkloadFacts) -> WorkloadFacts:
        """As it is in a living cluster, where silence about readiness means that nothing runs yet."""
        if self._book.queues.settings.wait_for_pods_ready and facts.admitted and "PodsReady" not in sight.marks:
            facts = structs.replace(facts, pods_ready=False)
        generation, fault = self._faults.get(sight.key, (-1, ""))
        return structs.replace(facts, fault=fault) if fault and generation == sight.generation else facts

    def _succeed(self, facts: WorkloadFacts) -> None:
        """Whose the pods are of work that changes its size."""
        arrivals = self._places.arrivals
        if facts.admission is not None:
            if self._book.queues.heirs.has_place(facts):
                arrivals.succeed(facts.replaces, facts.key)
        elif arrivals.heir(facts.replaces) == facts.key and self._book.held(facts.replaces) is not None:
            # It had to give back what it got, and the other goes on.
            arrivals.succeed(facts.key, facts.replaces)

    def _put(self, facts: WorkloadFacts, now_s: float) -> None:
        book = self._book
        held = book.held(facts.key)
        book.is_upkeep_due = True
        self._stories.touch(facts.key)
        self._places.losses.stir(facts.key)
        if held is not None and holds_as_before(held, facts):
            # Who holds what it held frees nothing, and nobody needs to look again.
            was_ready = held.facts.pods_ready
            held.facts = structs.replace(facts, admission=held.admission)
            if held.facts.pods_ready != was_ready and book.queues.settings.block_admission:
                book.kueue.wake()
        else:
            if held is not None and facts.admission is None and held.facts == facts:
                # Admitted in a round that broke: nobody was told, nor will be.
                book.kueue.drop_workload(facts.key, now_s)
            book.kueue.put_workload(facts, now_s)
        if facts.replaces:
            self._succeed(facts)
        if facts.admission is None or facts.evicted_s is not None:
            self._places.give_back(facts.key)
            if facts.admission is None:
                self._places.arrivals.dismiss(facts.key)
                book.untold[facts.key] = None
        elif facts.admitted and held is None:
            # Where pods of it are missing, a place of theirs may have to be kept longer than for those still to come.
            mark = book.sights[facts.key].mark("PodsReady")
            self._places.want(facts.key, 0.0 if mark.is_true else mark.since_s)

    def _tend(self, sight: WorkloadSight, now_s: float) -> None:
        facts = sight.facts
        if facts is None or self._book.is_deciding(sight.key):
            return
        if self._tending.tend(self._book.queues, sight, facts, now_s) and facts.admission is not None:
            self._places.want(sight.key)
