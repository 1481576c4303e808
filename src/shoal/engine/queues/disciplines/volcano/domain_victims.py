"""Finds the bundles that may go for a job in a domain, the first ones first, and no more of them than are asked for.

Plugins judge candidates in order, and what they say of the first ones does not depend on those after them, once the
first tier names any. So the bundles of the first candidates are the first bundles, as long as no job has pods above its
minimum; these go before all others, wherever they are, and then all candidates are judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from shoal.engine.queues.disciplines.volcano.bundles import Bundle, bundles_of, within_guarantees
from shoal.engine.queues.disciplines.volcano.counted_room import Rows
from shoal.engine.queues.disciplines.volcano.jobs import JobState, PodOfJob
from shoal.engine.queues.disciplines.volcano.session import Session
from shoal.engine.queues.disciplines.volcano.victim_order import FirstOf, VictimOrder
from shoal.engine.queues.disciplines.volcano.victim_search import RunningPods

_GANG = ("gang",)
"""The bundles hold to the minima of jobs, in place of this plugin."""
_FEW_ROWS = 8
"""In domains of so many rows the victims are sorted for each job."""
_AT_FIRST = 32


class Wanted(msgspec.Struct, frozen=True):
    """A job, a pod in place of all that it lacks, and the queues whose pods may go for it."""

    job: JobState
    claimant: PodOfJob
    queues: Sequence[str]
    takes_whole: bool
    is_reclaim: bool


class RunningVictims(msgspec.Struct, frozen=True):
    """The pods that may be evicted in an action, by row and in order."""

    session: Session
    running: RunningPods
    order: VictimOrder


class DomainVictims:
    """The bundles of one domain for one job."""

    def __init__(self, victims: RunningVictims, wanted: Wanted, rows: Rows) -> None:
        self._session, self._running, self._order = victims.session, victims.running, victims.order
        self._wanted = wanted
        self._rows = np.intersect1d(rows, self._running.rows(wanted.queues))
        self._bundles: list[Bundle] = []
        self._looked_at = 0
        self._ordered = FirstOf(self._in_order() if self._has_any() else ())
        self._judges_all = wanted.takes_whole and self._order.have_surplus(wanted.queues)

    def first(self, count: int) -> list[Bundle]:
        """So many bundles, or all there are."""
        while len(self._bundles) < count and not self._ordered.is_all:
            self._look_at(2 * self._looked_at or _AT_FIRST)
        return self._bundles[:count]

    # -- inside ------------------------------------------------------------------------------------------------------

    def _look_at(self, count: int) -> None:
        session, wanted = self._session, self._wanted
        candidates = self._ordered.first(2**62 if self._judges_all else count)
        self._looked_at = len(candidates)
        if self._ordered.is_all:
            select = session.reclaimable if wanted.is_reclaim else session.preemptable
        else:
            select = session.surely_reclaimable if wanted.is_reclaim else session.surely_preemptable
        victims = session.within_budgets(select(wanted.claimant, candidates, without=_GANG))
        bundles = bundles_of(session, victims, takes_whole=wanted.takes_whole)
        if wanted.is_reclaim:
            # The plugins judge pod by pod; the rest of a job that goes as a whole was not among what they judged.
            bundles = within_guarantees(session, bundles, wanted.job.queue)
        # A trial has changed the order of the pods in those that are known.
        self._bundles += bundles[len(self._bundles) :]

    def _has_any(self) -> bool:
        """Whether the plugins let any of the candidates go, in the order of rows."""
        session, wanted = self._session, self._wanted
        candidates = FirstOf(self._by_row())
        surely = session.surely_reclaimable if wanted.is_reclaim else session.surely_preemptable
        select = session.reclaimable if wanted.is_reclaim else session.preemptable
        first = candidates.first(_AT_FIRST)
        if surely(wanted.claimant, first, without=_GANG):
            return True
        found = candidates.first(2**62)
        return bool(found) and bool(select(wanted.claimant, found, without=_GANG))

    def _by_row(self) -> Iterator[PodOfJob]:
        queues, jobs = self._wanted.queues, self._session.jobs
        for row in self._rows.tolist():
            for pod in self._running.on(row, queues):
                if self._may_yield(jobs[pod.job]):
                    yield pod

    def _may_yield(self, job: JobState) -> bool:
        return job is not self._wanted.job and (self._wanted.takes_whole or len(job.ready) > job.minimum)

    def _in_order(self) -> Iterator[PodOfJob]:
        session, wanted = self._session, self._wanted
        if len(self._rows) <= _FEW_ROWS:
            yield from session.in_victim_order(list(self._by_row()), wanted.job.queue)
            return
        is_there = np.zeros(session.cluster.rows, np.bool_)
        is_there[self._rows] = True
        inside, row_of = is_there.tolist(), self._running.row_of
        for job in self._order.of(wanted.queues, wanted.job.queue):
            if self._may_yield(job):
                yield from (pod for pod in self._order.pods_of(job) if inside[row_of(pod)])
