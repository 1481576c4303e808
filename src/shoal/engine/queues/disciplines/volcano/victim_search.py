"""Frees one node for one pod: victims are evicted in order until the pod fits there.

Evictions stay only on the node that is used; a node that does not suffice is left as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from shoal.engine.charges import Charge
from shoal.engine.queues.disciplines.volcano.after_departures import AfterDepartures
from shoal.engine.queues.disciplines.volcano.counted_room import Rows, counted_need
from shoal.engine.queues.disciplines.volcano.jobs import PodOfJob
from shoal.engine.queues.disciplines.volcano.session import Session


class RunningPods:
    """The pods that may be evicted, by queue and row."""

    def __init__(self, session: Session, evicted: Sequence[tuple[PodOfJob, str]]) -> None:
        """`evicted`: the pods that were evicted since, which grows, and shrinks at its end when a trial is undone."""
        self._session = session
        self._evicted = evicted
        self._taken: list[tuple[PodOfJob, str, int]] = []
        """What was taken off the sums for pods that were evicted, with the row."""
        self._by_queue: dict[str, dict[int, list[PodOfJob]]] = {}
        self._row_of: dict[str, int] = {}
        self._with_surplus: set[str] = set()
        self._rows: dict[tuple[str, ...], Rows] = {}
        self._evictable: Rows | None = None
        cluster, queues = session.cluster, session.forest.queues
        for job in session.jobs.values():
            if job.queue not in queues:
                continue
            on_rows = self._by_queue.setdefault(job.queue, {})
            if len(job.ready) > job.minimum:
                self._with_surplus.add(job.queue)
            for pod in job.ready.values():
                if pod.is_preemptible:
                    row = self._row_of[pod.key] = cluster.pods[pod.key].row
                    on_rows.setdefault(row, []).append(pod)

    @property
    def is_empty(self) -> bool:
        return not self._row_of

    def row_of(self, pod: PodOfJob) -> int:
        """Where it runs, or ran until it was evicted."""
        return self._row_of[pod.key]

    def rows(self, queues: Iterable[str]) -> Rows:
        """The rows with pods of these queues, in the order of ranks."""
        names = tuple(queues)
        found = self._rows.get(names)
        if found is None:
            rows = np.array(sorted({row for queue in names for row in self._by_queue.get(queue, ())}), np.int64)
            found = rows[np.argsort(self._session.cluster.rank.take(rows), kind="stable")]
            self._rows[names] = found
        return found

    def hopeful(self, rows: Rows, charge: Charge) -> Rows:
        """Of these rows those on which the request may fit, by the count, if all pods that may be evicted had left."""
        cluster = self._session.cluster
        if self._evictable is None or self._evictable.shape != cluster.free.shape:
            self._evictable = np.zeros_like(cluster.free)
            for on_rows in self._by_queue.values():
                for row, pods in on_rows.items():
                    for pod in pods:
                        self._evictable[row] += pod.charge.taken
        self._follow(self._evictable)
        need = counted_need(charge, cluster.width)
        may_fit = (cluster.free[rows] + self._evictable[rows] >= need).all(axis=1)
        if cluster.devices.odd:
            may_fit |= np.isin(rows, list(cluster.devices.odd))
        return rows[may_fit]

    def _follow(self, evictable: Rows) -> None:
        """Bring the sums up to date with the evictions."""
        taken, evicted = self._taken, self._evicted
        while taken and (len(taken) > len(evicted) or evicted[len(taken) - 1][0] is not taken[-1][0]):
            pod, _, row = taken.pop()
            evictable[row] += pod.charge.taken
        for pod, beneficiary in evicted[len(taken) :]:
            row = self._row_of.get(pod.key, -1)
            if row >= 0:
                evictable[row] -= pod.charge.taken
            taken.append((pod, beneficiary, row))

    def have_surplus(self, queues: Iterable[str]) -> bool:
        """Whether any job of the queues had more pods than its minimum."""
        return not self._with_surplus.isdisjoint(queues)

    def on(self, row: int, queues: Iterable[str]) -> list[PodOfJob]:
        """The pods of these queues on the row that are not evicted yet."""
        jobs = self._session.jobs
        return [
            pod
            for queue in queues
            for pod in self._by_queue.get(queue, {}).get(row, ())
            if pod.key in jobs[pod.job].ready
        ]


Holds = Callable[[PodOfJob], bool]
"""Whether the queue has quota for the pod."""


def always(_pod: PodOfJob) -> bool:
    return True


def free_row(
    view: AfterDepartures, claimant: PodOfJob, row: int, victims: Sequence[PodOfJob], *, holds: Holds = always
) -> bool:
    """Evict victims, the first ones first, until the node and the queue hold the claimant, and promise it its place."""
    mark = view.mark()
    left = iter(victims)
    while True:
        found = view.fits(claimant, row) if holds(claimant) else None
        if found is not None:
            view.promise(claimant, *found)
            return True
        victim = next(left, None)
        if victim is None:
            view.rollback(mark)
            return False
        view.evict(victim, claimant.job)


def least_victims(
    view: AfterDepartures, claimant: PodOfJob, row: int, victims: Sequence[PodOfJob], *, holds: Holds = always
) -> list[PodOfJob]:
    """Those of the victims that must go: all are taken off in a trial, then spared again, the most important first."""
    mark = view.mark()
    for victim in victims:
        view.evict(victim, claimant.job)
    needed: list[PodOfJob] = []
    fits = holds(claimant) and view.fits(claimant, row) is not None
    view.rollback(mark)
    if not fits:
        return []
    # The last to be evicted is the most important: it is spared first.
    kept: list[PodOfJob] = list(victims)
    for victim in reversed(victims):
        trial = [each for each in kept if each is not victim]
        for each in trial:
            view.evict(each, claimant.job)
        if holds(claimant) and view.fits(claimant, row) is not None:
            kept = trial
        else:
            needed.append(victim)
        view.rollback(mark)
    needed.reverse()
    return needed
