"""Represents the jobs in KAI's queues with their next steps, and with what they yield. Every job is a gang: KAI groups
single pods too.

A step is what a job lacks to its minimum, all subgroups together; after that one pod. A job yields the same way
backwards: single pods above its minimum, the least important and newest first, then all the rest together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from shoal.engine.cluster import Cluster
from shoal.engine.gang_members import Gang
from shoal.engine.groups import GroupFacts
from shoal.engine.preemption.eviction_units import parts_have_what_they_need
from shoal.engine.preemption.preemptor import Preemptor, gang_preemptor
from shoal.engine.queues.disciplines.kai.fair_queues import NOTHING, Amounts3, QueueNode, QueueTree
from shoal.engine.queues.disciplines.kai.node_pools import NodePool
from shoal.engine.queues.disciplines.kai.pod_amounts import PodAmounts
from shoal.engine.queues.disciplines.lost_work import lost_work

BELOW_MINIMUM, AT_MINIMUM, ABOVE_MINIMUM = range(3)

_NEVER = float("inf")
"""Of work whose age is not known and that has not started: it is ordered by the turn in which it arrived."""

JobOrderKey = tuple[int, int, float, int, float, str]


@dataclass(slots=True, eq=False)
class FairJob:
    """A gang. What is worked out of its pods is kept until `changed` is called."""

    leaf: QueueNode
    cluster: Cluster
    amounts: PodAmounts
    gang: Gang
    facts: GroupFacts
    priority: int
    is_preemptible: bool
    created_s: float
    turn: float
    _step: list[str] | None = None
    _step_amounts: Amounts3 = NOTHING
    _claim: Preemptor | None = None
    _phase: int = -1
    settled: frozenset[str] = frozenset()
    """Pods that were moved in this cycle: they stay where they are now."""

    @property
    def name(self) -> str:
        return self.gang.name

    @property
    def step(self) -> list[str]:
        """The pods that it needs next; empty if it waits for none, or if too few of them exist."""
        if self._step is None:
            self._step = self._next_pods()
            self._step_amounts = self.sum_of_waiting(self._step)
        return self._step

    @property
    def step_amounts(self) -> Amounts3:
        """What the next step takes of its queue."""
        self.step  # noqa: B018 - works it out
        return self._step_amounts

    @property
    def is_simple(self) -> bool:
        """Whether its pods are placed one by one, wherever each of them fits."""
        facts = self.facts
        return facts.requirement.is_empty and not facts.parts and not facts.roles

    @property
    def claim(self) -> Preemptor | None:
        """The next step as the engine places it; None if there is none."""
        if self._claim is None and self.step:
            self._claim = gang_preemptor(self.cluster, self.gang)
        return self._claim

    @property
    def preempts(self) -> bool:
        """Whether others of its queue may have to yield to it."""
        pending = self.cluster.pending
        return self.facts.preempts and all(pending[pod].who.preempts for pod in self.gang.waiting)

    @property
    def phase(self) -> int:
        if self._phase < 0:
            self._phase = self._phase_now()
        return self._phase

    @property
    def active(self) -> list[str]:
        """Pods that hold a place and keep it, the most important first."""
        pods, terminating = self.cluster.pods, self.cluster.terminating
        running = [pod for pod in self.gang.running if pod not in terminating]
        return sorted(running, key=lambda pod: (pods[pod].who.order, len(pod), pod)) if len(running) > 1 else running

    def started_s(self, now_s: float) -> float:
        """When it started last; pods of which no start is known are starting now."""
        pods = self.cluster.pods
        return min((since_s for pod in self.active if (since_s := pods[pod].who.since_s)), default=now_s)

    def changed(self) -> None:
        """Pods of it took or left their places."""
        self._step = self._claim = None
        self._phase = -1

    def sum_of_waiting(self, pods: Iterable[str]) -> Amounts3:
        pending, of = self.cluster.pending, self.amounts.of
        return sum_of(of(pending[pod].charge) for pod in pods)

    def yields(self, gone: AbstractSet[str] = frozenset()) -> list[str]:
        """The pods that it gives up next, once some are gone: one above its minimum, or all."""
        active = [pod for pod in self.active if pod not in gone and pod not in self.settled]
        if self.facts.is_evicted_whole or len(active) < 2 or self.settled:
            return active
        spare = next((pod for pod in reversed(active) if self._runs_without({*gone, pod})), None)
        return active if spare is None else [spare]

    def order(self, loses: int = 0) -> JobOrderKey:
        """Its place in the line of its queue, the lowest first. `loses`: the work that is lost if it gets no place."""
        return -self.priority, self.phase, self.created_s, -loses, self.turn, self.name

    def victim_order(self, pods: Iterable[str], now_s: float, *, spares: bool) -> JobOrderKey:
        """The reverse, for those that yield: of jobs that are equal by KAI's rules the one that loses least goes first.
        `pods`: what it gives up next; `spares`: that is a pod above its minimum."""
        phase = ABOVE_MINIMUM if spares else AT_MINIMUM
        loses = lost_work((self.cluster.pods[pod] for pod in pods), now_s)
        return self.priority, -phase, -self.created_s, loses, -self.turn, _reversed(self.name)

    def _next_pods(self) -> list[str]:
        cluster, gang = self.cluster, self.gang
        if not gang.waiting or gang.fault:
            return []
        if not self.is_simple:
            claim = self._claim = gang_preemptor(cluster, gang)
            return claim.pods if claim is not None else []
        pending = cluster.pending
        missing = self.facts.minimum - self._active_count()
        if missing > len(gang.waiting):
            return []
        waiting = list(gang.waiting)
        if len(waiting) > 1:
            waiting.sort(key=lambda pod: pending[pod].order_in_gang)
        return waiting[: max(missing, 1)]

    def _active_count(self) -> int:
        running, terminating = self.gang.running, self.cluster.terminating
        return sum(pod not in terminating for pod in running) if terminating else len(running)

    def _phase_now(self) -> int:
        facts, count = self.facts, self._active_count()
        if count < facts.minimum or (facts.parts and not self._has_parts()):
            return BELOW_MINIMUM
        if not facts.parts:
            return ABOVE_MINIMUM if count > facts.minimum else AT_MINIMUM
        return ABOVE_MINIMUM if any(self._runs_without({pod}) for pod in self.active) else AT_MINIMUM

    def _runs_without(self, gone: AbstractSet[str]) -> bool:
        """Whether it has what it needs when these pods are gone."""
        return self._active_count() - len(gone) >= self.facts.minimum and self._has_parts(gone)

    def _has_parts(self, gone: AbstractSet[str] = frozenset()) -> bool:
        """Whether all parts that are needed have what they need."""
        if not self.facts.parts:
            return True
        pods = self.cluster.pods
        left = Counter(pods[pod].who.part for pod in self.active if pod not in gone)
        return parts_have_what_they_need(self.facts, left)


def sum_of(amounts: Iterable[Amounts3]) -> Amounts3:
    gpu = cpu = memory = 0
    for each in amounts:
        gpu += each[0]
        cpu += each[1]
        memory += each[2]
    return gpu, cpu, memory


def _reversed(name: str) -> str:
    """Sorts names the other way round."""
    return "".join(chr(0x10FFFF - ord(letter)) for letter in name)


def jobs_of(cluster: Cluster, tree: QueueTree, amounts: PodAmounts, pool: NodePool | None = None) -> Iterator[FairJob]:
    """The jobs of a cluster, or of a node pool, in queues that may have some. Others are not looked at."""
    leaves: dict[str, QueueNode | None] = {}
    pods, pending = cluster.pods, cluster.pending
    for gang in cluster.gangs:
        facts = gang.facts
        if facts is None or not facts.queue or not (gang.running or gang.waiting):
            continue
        if pool is not None and facts.node_pool != pool.value:
            continue
        if facts.queue not in leaves:
            leaves[facts.queue] = tree.leaf(facts.queue)
        leaf = leaves[facts.queue]
        if leaf is None:
            continue
        priority, is_preemptible = facts.priority, facts.is_preemptible
        if priority is None or is_preemptible:
            members = [pods[pod] for pod in gang.running] + [pending[pod] for pod in gang.waiting]
            priority = max(each.priority for each in members) if priority is None else priority
            is_preemptible = is_preemptible and all(each.who.is_preemptible for each in members)
        turn = float("-inf") if gang.turn is None else float(gang.turn)
        created_s = facts.created_s or min((pods[pod].who.since_s for pod in gang.running), default=_NEVER)
        yield FairJob(leaf, cluster, amounts, gang, facts, priority, is_preemptible, created_s, turn)
