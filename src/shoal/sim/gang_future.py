"""Follows the gangs in queues of KAI and Volcano through rounds: which start, and which have to stop for others.

A gang runs while as many of its pods have a node as it needs at least. What such work takes is not known, so it ends
never by itself. A pod that is evicted is created again and waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from shoal.api.decode import Document
from shoal.engine.cluster import Cluster
from shoal.engine.events import Event, GroupSeen, PodArrived, PodBound
from shoal.sim.kai_queues import kai_queues, kai_shards
from shoal.sim.kai_rounds import grouped
from shoal.sim.queue_future import Future, Stop
from shoal.sim.rounds import Record, Rounds
from shoal.sim.volcano_queues import volcano_groups


class QueuedGang(msgspec.Struct, frozen=True):
    """A gang with pods, in a queue."""

    key: str
    queue: str
    pods: frozenset[str]


def queued_gangs(documents: Sequence[Document], events: Iterable[Event]) -> list[QueuedGang]:
    """`events`: of the documents, also those of pods that a queue holds."""
    queues = {name: group.queue for name, group in volcano_groups(documents).items()}
    pods: dict[str, set[str]] = {}
    for event in grouped(kai_queues(documents), events, kai_shards(documents)):
        if isinstance(event, GroupSeen) and event.group.queue:
            queues[event.group.name] = event.group.queue
        elif isinstance(event, PodArrived | PodBound) and event.who.group:
            pods.setdefault(event.who.group, set()).add(event.key)
    return [QueuedGang(name, queue, frozenset(pods[name])) for name, queue in sorted(queues.items()) if name in pods]


class GangWatch:
    """Notes in a future what becomes of gangs."""

    def __init__(self, cluster: Cluster, gangs: Iterable[QueuedGang], future: Future) -> None:
        self._cluster = cluster
        self._future = future
        self._gangs = {gang.key: gang for gang in gangs}
        self._gang_of = {pod: gang.key for gang in self._gangs.values() for pod in gang.pods}
        self._running = {key for key in self._gangs if self._runs(key)}
        self._since_s = dict.fromkeys(self._running, -1.0)
        future.ran |= self._running
        future.starts |= dict.fromkeys(sorted(self._running), 0.0)

    def note(self, record: Record, after_s: float) -> None:
        """A round has ended."""
        causes = {
            gang: (evict.beneficiary, str(evict.code))
            for evict in record.evicted
            if (gang := self._gang_of.get(evict.pod)) is not None
        }
        for key in self._gangs:
            runs = self._runs(key)
            if runs and key not in self._running:
                self._begins(key, after_s)
            elif not runs and key in self._running:
                self._ends(key, after_s, *causes.get(key, ("", "")))

    def _begins(self, key: str, after_s: float) -> None:
        self._running.add(key)
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


def gang_future(rounds: Rounds, gangs: Iterable[QueuedGang]) -> Future:
    """What becomes of the gangs until nothing changes any more, all of it at once."""
    future = Future()
    watch = GangWatch(rounds.cluster, gangs, future)
    for record in rounds.each():
        watch.note(record, 0.0)
        if record.is_quiet:
            return future
    future.is_quiet, future.until_s = False, 0.0
    return future
