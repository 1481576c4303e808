"""Lists the pods that may be evicted in the order in which they go, and keeps the order up to date with the session.

An order is walked from its beginning, and most claimants need few victims: nothing is sorted for each of them. Jobs
whose pods changed since are put into their new place.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from shoal.engine.queues.disciplines.volcano.hooks import Key
from shoal.engine.queues.disciplines.volcano.jobs import JobState, PodOfJob
from shoal.engine.queues.disciplines.volcano.session import Session

Accepts = Callable[[PodOfJob], bool]


class VictimOrder:
    """Of the pods that run when it is made: the last pod of the last job of the last queue goes first."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._pods: dict[str, list[PodOfJob]] = {}
        """Job -> its pods that may be evicted, the last one first once they are in order."""
        self._is_ordered: set[str] = set()
        self._keys: dict[str, Key] = {}
        """Job -> its key in the line of its queue, where it has such pods now."""
        self._lines: dict[str, list[Key]] = {}
        """Queue -> the keys of its jobs, the last one to go first. A key ends with the name of its job."""
        self._with_surplus: dict[str, set[str]] = {}
        """Queue -> its jobs with more pods than their minimum."""
        session.changed_jobs.clear()
        for job in session.jobs.values():
            pods = (
                [pod for pod in job.ready.values() if pod.is_preemptible] if job.queue in session.forest.queues else ()
            )
            if pods:
                self._pods[job.name] = list(pods)
                key = self._keys[job.name] = session.victim_key(job)
                self._lines.setdefault(job.queue, []).append(key)
                self._note_surplus(job)
        for line in self._lines.values():
            line.sort()

    def have_surplus(self, queues: Iterable[str]) -> bool:
        """Whether any job of these queues has more pods than its minimum now."""
        self._follow()
        return any(self._with_surplus.get(queue) for queue in queues)

    def of(self, queues: Iterable[str], claimant_queue: str) -> Iterator[JobState]:
        """The jobs of these queues, those that are evicted first come first. In a tree of queues the nearest relatives
        of the claimant's queue come first."""
        self._follow()
        session = self._session
        ordered = sorted((name for name in queues if self._lines.get(name)), key=session.queue_key, reverse=True)
        if any(plugin.compares_relatives for plugin in session.having("QueueOrder")):
            ordered.sort(key=lambda name: session.forest.distance(claimant_queue, name))
        for queue in ordered:
            for key in reversed(self._lines[queue]):
                yield session.jobs[key[-1]]

    def pods_of(self, job: JobState) -> Iterator[PodOfJob]:
        """Its pods that may be evicted and run still, the first one to go first."""
        pods = self._pods[job.name]
        if len(pods) > 1 and job.name not in self._is_ordered:
            pods.sort(key=self._session.task_key, reverse=True)
            self._is_ordered.add(job.name)
        return (pod for pod in pods if pod.key in job.ready)

    def _follow(self) -> None:
        """Bring the lines up to date with what changed."""
        session = self._session
        changed = session.changed_jobs
        for name in changed:
            if name not in self._pods:
                continue
            job = session.jobs[name]
            line, before = self._lines.setdefault(job.queue, []), self._keys.pop(name, None)
            if before is not None:
                del line[bisect_left(line, before)]
            if any(pod.key in job.ready for pod in self._pods[name]):
                key = self._keys[name] = session.victim_key(job)
                insort(line, key)
            self._note_surplus(job)
        changed.clear()

    def _note_surplus(self, job: JobState) -> None:
        having = self._with_surplus.setdefault(job.queue, set())
        if len(job.ready) > job.minimum:
            having.add(job.name)
        else:
            having.discard(job.name)


class FirstOf:
    """As many of a sequence as are needed, from its beginning."""

    def __init__(self, pods: Iterable[PodOfJob]) -> None:
        self._rest = iter(pods)
        self._known: list[PodOfJob] = []
        self.is_all = False
        """Whether all are known."""

    def first(self, count: int) -> list[PodOfJob]:
        """So many, or all there are."""
        missing = count - len(self._known)
        if missing > 0 and not self.is_all:
            more = list(islice(self._rest, missing))
            self._known += more
            self.is_all = len(more) < missing
        return self._known[:count]
