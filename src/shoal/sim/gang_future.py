"""Follows the gangs in queues of KAI and Volcano through rounds: which start, and which have to stop for others.

A gang runs while as many of its pods have a node as it needs at least. It ends when its expected duration, or the limit
on its run time, is up; a gang of which one pod has neither runs on. A gang that was stopped starts over. A pod that is
evicted is created again and waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from shoal.api.decode import Document
from shoal.api.pod import Pod
from shoal.engine.cluster import Cluster
from shoal.engine.events import Event, GroupSeen, PodArrived, PodBound, PodGone
from shoal.engine.from_api.queues.expected import expected_s
from shoal.sim.kai_queues import kai_queues, kai_shards
from shoal.sim.kai_rounds import grouped
from shoal.sim.queue_future import MOST_MOMENTS, Future, Stop
from shoal.sim.rounds import MOST_ROUNDS, Record, Rounds
from shoal.sim.volcano_queues import volcano_groups
from shoal.units.errors import UserError, Where


class QueuedGang(msgspec.Struct, frozen=True):
    """A gang with pods, in a queue."""

    key: str
    queue: str
    pods: frozenset[str]
    lasts_s: float | None = None
    """How long it runs; None if that is not known."""


def queued_gangs(documents: Sequence[Document], events: Iterable[Event], pods_made: Iterable[Pod]) -> list[QueuedGang]:
    """`events`: of the documents, also those of pods that a queue holds. `pods_made`: those of other objects."""
    lengths = {pod.metadata.key: _length_s(pod) for pod in pods_made}
    lengths |= {each.value.metadata.key: _length_s(each.value) for each in documents if isinstance(each.value, Pod)}
    queues = {name: group.queue for name, group in volcano_groups(documents).items()}
    pods: dict[str, set[str]] = {}
    for event in grouped(kai_queues(documents), events, kai_shards(documents)):
        if isinstance(event, GroupSeen) and event.group.queue:
            queues[event.group.name] = event.group.queue
        elif isinstance(event, PodArrived | PodBound) and event.who.group:
            pods.setdefault(event.who.group, set()).add(event.key)
    return [
        QueuedGang(name, queue, frozenset(pods[name]), _longest([lengths.get(pod) for pod in pods[name]]))
        for name, queue in sorted(queues.items())
        if name in pods
    ]


def _length_s(pod: Pod) -> float | None:
    try:
        length_s = expected_s(pod.metadata.annotations, Where())
    except UserError:
        length_s = None
    limit_s = pod.spec.active_deadline_seconds
    return min((float(each) for each in (length_s, limit_s) if each is not None), default=None)


def _longest(lengths: Sequence[float | None]) -> float | None:
    known = [length for length in lengths if length is not None]
    return max(known) if len(known) == len(lengths) else None


class GangWatch:
    """Notes in a future what becomes of gangs."""

    def __init__(self, cluster: Cluster, gangs: Iterable[QueuedGang], future: Future, begin_s: float = 0.0) -> None:
        """`begin_s`: the moment of which the manifests tell."""
        self._cluster = cluster
        self._future = future
        self._begin_s = begin_s
        self._gangs = {gang.key: gang for gang in gangs}
        self._gang_of = {pod: gang.key for gang in self._gangs.values() for pod in gang.pods}
        self._running = {key for key in self._gangs if self._runs(key)}
        self._since_s = dict.fromkeys(self._running, -1.0)
        self._started_s = {key: self._start_s(self._gangs[key]) for key in self._running}
        future.ran |= self._running
        future.starts |= dict.fromkeys(sorted(self._running), 0.0)

    def note(self, record: Record, after_s: float) -> None:
        """A round has ended."""
        causes = {
            gang: (evict.beneficiary, str(evict.code))
            for evict in record.evicted
            if (gang := self._gang_of.get(evict.pod)) is not None
        }
        for key in list(self._gangs):
            runs = self._runs(key)
            if runs and key not in self._running:
                self._begins(key, after_s)
            elif not runs and key in self._running:
                self._ends(key, after_s, *causes.get(key, ("", "")))

    def ends(self) -> Iterator[tuple[float, QueuedGang]]:
        """The moments at which gangs that run now end by themselves."""
        for key in sorted(self._running):
            gang = self._gangs[key]
            if gang.lasts_s is not None:
                yield max(self._begin_s, self._started_s[key] + gang.lasts_s), gang

    def finished(self, gang: QueuedGang) -> None:
        """It has ended by itself, and its pods have left the facts."""
        del self._gangs[gang.key]
        self._running.discard(gang.key)

    def _start_s(self, gang: QueuedGang) -> float:
        """Pods of which no start is known start now."""
        pods = self._cluster.pods
        started = [pods[pod].who.since_s for pod in gang.pods if pod in pods and pods[pod].who.since_s]
        return max(started, default=self._begin_s)

    def _begins(self, key: str, after_s: float) -> None:
        self._running.add(key)
        self._started_s[key] = self._begin_s + after_s
        self._since_s[key] = after_s
        self._future.starts.setdefault(key, after_s)
        for stop in self._future.stops.get(key, [])[-1:]:
            stop.back_s = after_s

    def _ends(self, key: str, after_s: float, beneficiary: str, reason: str) -> None:
        """What ends in the moment in which it began has never run."""
        self._running.discard(key)
        stops = self._future.stops.get(key)
        if self._since_s.pop(key) != after_s:
            self._future.stops.setdefault(key, []).append(Stop(after_s, beneficiary, reason))
        elif stops:
            stops[-1].back_s = None
        else:
            del self._future.starts[key]

    def _runs(self, key: str) -> bool:
        cluster = self._cluster
        gang = cluster.gangs.find(key)
        if gang is None:
            return False
        pods = cluster.pods
        count = sum(pod in pods and pods[pod].is_bound and pod not in cluster.terminating for pod in gang.running)
        return count >= max(gang.facts.minimum if gang.facts is not None else 1, 1)


def gang_future(rounds: Rounds, gangs: Iterable[QueuedGang], due_s: Callable[[], float | None] | None = None) -> Future:
    """What becomes of the gangs until nothing more is known to happen. `due_s`: when the passing of time alone may
    change a decision."""
    future, begin_s = Future(), rounds.now_s
    watch = GangWatch(rounds.cluster, gangs, future, begin_s)
    now_s = begin_s
    for _ in range(MOST_MOMENTS):
        if not _settles(rounds, watch, now_s, now_s - begin_s):
            break
        ends = list(watch.ends())
        moment_s = due_s() if due_s is not None else None
        moments = [end_s for end_s, _ in ends] + ([moment_s] if moment_s is not None and moment_s > now_s else [])
        if not moments:
            return future
        now_s = max(now_s, min(moments))
        for end_s, gang in ends:
            if end_s <= now_s:
                for pod in sorted(gang.pods):
                    rounds.apply(PodGone(pod))
                watch.finished(gang)
    future.is_quiet, future.until_s = False, now_s - begin_s
    return future


def _settles(rounds: Rounds, watch: GangWatch, now_s: float, after_s: float) -> bool:
    """Rounds without time passing, until one changes nothing; whether there was such a one."""
    for _ in range(MOST_ROUNDS):
        rounds.now_s = now_s
        record = rounds.round()
        watch.note(record, after_s)
        if record.is_quiet:
            return True
    return False
