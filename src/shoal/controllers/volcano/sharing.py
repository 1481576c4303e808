"""Who of the groups that were let in may take room, and who has to give some back: by what their queues deserve.

The discipline is the one quota tree (`engine/queues`) over queues read as in `shares.py`. Whoever is given quota was
tried on the nodes and takes its places at once; where nodes are too fragmented for it, it looks for a place like any
pod, and holds its quota meanwhile. Who has to yield was proven to help, and goes whole.

Rejected: ordering groups by the share of their queues, and ending whoever is in the way. Without a quota that is taken
and given back in one book, those that were ended are the first to come again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from shoal.controllers.brain.parts import Holder
from shoal.controllers.volcano.amounts import add
from shoal.controllers.volcano.queue_tree import QueueTree
from shoal.controllers.volcano.quota_first import QuotaFirst
from shoal.controllers.volcano.shares import Shares
from shoal.controllers.volcano.units import Unit, by_right
from shoal.engine.events import Event, NodeFacts, NodeGone, NodeSeen, PodArrived, PodGone
from shoal.engine.plan import Evict, Place
from shoal.engine.queues.facts import Admission, LocalQueueFacts, WorkloadFacts
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.proof import Proof
from shoal.engine.queues.state import Fact, Queues
from shoal.engine.queues.topology_facts import QueueNode

_MOST_CYCLES = 32
AGAIN_S = 30.0
"""After this an end that did not come is asked for again."""
_GPU = "nvidia.com/gpu"


class Shared(msgspec.Struct):
    """What a round came to."""

    placed: list[Place] = []
    released: list[str] = []
    """Pods that may look for a place."""
    evicted: list[Evict] = []
    taken_back: list[str] = []
    """Groups that have to yield and have no node yet."""
    stuck: set[str] = set()
    """Queues that somebody waits in."""


class _Known(msgspec.Struct, frozen=True):
    unit: Unit
    evicted_s: float | None = None
    yields: bool = True


class Sharing:
    def __init__(self, brain: Holder, event_of: Callable[[str], PodArrived | None]) -> None:
        """`event_of` a pod that is kept."""
        self._brain = brain
        self._event_of = event_of
        self._nodes: dict[str, NodeFacts] = {}
        self._tree: QueueTree | None = None
        self._shares: Shares | None = None
        self._is_stale = True
        """Nodes changed since shares were made."""
        self._kueue: Kueue | None = None
        self._prover: QuotaFirst | None = None
        self._units: dict[str, Unit] = {}
        self._known: dict[str, _Known] = {}
        """What the discipline was told of each."""
        self._told: dict[tuple[type[Fact], str], Fact] = {}
        self._evicting: dict[str, tuple[float, str]] = {}
        """Unit that has to yield -> since when, and for which group."""

    def hear(self, event: Event) -> bool:
        """Whether there is more or less to be shared."""
        if isinstance(event, NodeSeen):
            before = self._nodes.get(event.node.name)
            self._nodes[event.node.name] = event.node
            is_news = before is None or (before.allocatable, before.gpus) != (event.node.allocatable, event.node.gpus)
        elif isinstance(event, NodeGone):
            is_news = self._nodes.pop(event.name, None) is not None
        else:
            return False
        self._is_stale = self._is_stale or is_news
        return is_news

    def shares(self, tree: QueueTree) -> Shares | None:
        """None where nobody said how queues share."""
        if tree is not self._tree or self._is_stale:
            self._tree, self._is_stale = tree, False
            self._shares = Shares(tree, capacity_of(self._nodes.values()))
            if self._shares.are_wanted:
                self._take_in(self._shares)
            else:
                self._kueue = None
        return self._shares if self._kueue is not None else None

    def knows(self, queue: str) -> bool:
        return self._kueue is not None and queue in self._kueue.queues.cluster_queues

    def round(self, shares: Shares, units: Iterable[Unit], now_s: float, found: Shared) -> None:
        """What it comes to is noted in `found` as it is decided: should it break, that much stands."""
        kueue = self._kueue
        if kueue is None:
            return
        self._brain.placement.renew()
        mine, others = self._put(kueue, shares, {unit.key: unit for unit in units}, now_s)
        if mine:
            # Who borrows is looked at once nobody waits for what is his own.
            for unit in others:
                self._drop(kueue, unit.key, now_s)
            self._offer(kueue, shares, mine, now_s)
            self._cycles(kueue, now_s, found)
        self._offer(kueue, shares, others, now_s)
        self._cycles(kueue, now_s, found)
        for key, (since_s, whose) in list(self._evicting.items()):
            if now_s >= since_s + AGAIN_S:
                self._end(key, whose, now_s, found)

    def has_to_yield(self, pod: str) -> bool:
        """Whether it was told to, and is there yet."""
        return any(pod in self._units[key].there for key in self._evicting if key in self._units)

    def next_s(self) -> float | None:
        return min((since_s + AGAIN_S for since_s, _ in self._evicting.values()), default=None)

    def begin_anew(self, torn_s: float) -> None:
        """Since `torn_s` something broke: what was proven for nobody is given back, and the book of quota made anew.
        Who was told to yield since then may not have heard it, and is told again."""
        for place in self._prover.take() if self._prover is not None else ():
            self._brain.intake.apply(PodGone(place.pod))
        for key, (since_s, whose) in self._evicting.items():
            if since_s >= torn_s:
                self._evicting[key] = torn_s - AGAIN_S, whose
        self._tree = self._shares = self._kueue = self._prover = None

    # Inside

    def _cycles(self, kueue: Kueue, now_s: float, found: Shared) -> None:
        for _ in range(_MOST_CYCLES):
            if kueue.is_idle:
                break
            decisions = kueue.cycle(now_s, self._prover if self._nodes else None)
            placed = self._prover.take() if self._prover is not None else []
            found.placed += placed
            there = {place.pod for place in placed}
            for admitted in decisions.admitted:
                found.released += [pod for pod in self._units[admitted.workload].waiting if pod not in there]
            for preempted in decisions.preempted:
                beneficiary = self._units.get(preempted.beneficiary)
                self._end(preempted.workload, beneficiary.group if beneficiary is not None else "", now_s, found)
            for waiting in decisions.waiting:
                if (unit := self._units.get(waiting.workload)) is not None:
                    found.stuck.add(unit.queue)

    def _offer(self, kueue: Kueue, shares: Shares, units: Iterable[Unit], now_s: float) -> None:
        for unit in units:
            self._tell(kueue, shares, _Known(unit), now_s)

    def _put(
        self, kueue: Kueue, shares: Shares, units: Mapping[str, Unit], now_s: float
    ) -> tuple[list[Unit], list[Unit]]:
        """What is there is known; returned is who waits for what its queue owns, and who waits for more."""
        for key in self._units.keys() - units.keys():
            self._drop(kueue, key, now_s)
            self._evicting.pop(key, None)
        self._units = dict(units)
        for unit in units.values():
            if not unit.there:
                self._evicting.pop(unit.key, None)
                continue
            since_s = self._evicting[unit.key][0] if unit.key in self._evicting else None
            self._tell(kueue, shares, _Known(unit, since_s, self._yields(shares, unit)), now_s)
        return by_right(shares, units.values())

    def _tell(self, kueue: Kueue, shares: Shares, now: _Known, now_s: float) -> None:
        key = now.unit.key
        if self._known.get(key) != now:
            self._known[key] = now
            kueue.put_workload(now.unit.facts(shares, now.evicted_s, yields=now.yields), now_s)

    def _drop(self, kueue: Kueue, key: str, now_s: float) -> None:
        self._known.pop(key, None)
        kueue.drop_workload(key, now_s)

    def _yields(self, shares: Shares, unit: Unit) -> bool:
        pods = self._brain.cluster.pods
        return shares.may_be_taken_from(unit.queue) and all(pods[pod].who.yields for pod in unit.there if pod in pods)

    def _end(self, key: str, whose: str, now_s: float, found: Shared) -> None:
        """The unit; with a group's minimum goes all that it has beyond."""
        unit, pods = self._units[key], self._brain.cluster.pods
        going = [one for one in self._units.values() if one.there and (one is unit or (key == unit.group == one.group))]
        for one in going:
            self._evicting[one.key] = now_s, whose
            here = [pod for pod in one.there if pod in pods]
            found.evicted += [Evict(pod, whose) for pod in here if not pods[pod].leaving]
        if not any(pod in pods for one in going for pod in one.there):
            found.taken_back.append(unit.group)

    def _take_in(self, shares: Shares) -> None:
        kueue = self._kueue
        if kueue is None or kueue.queues.settings != shares.settings:
            kueue = self._kueue = Kueue(Queues(shares.settings))
            brain = self._brain
            proof = Proof(kueue.queues, brain.intake, brain.placement, self._pods_of, self._running_of)
            self._prover = QuotaFirst(proof)
            self._known, self._told = {}, {}
        found: list[Fact] = [*(QueueNode(name) for name in self._nodes), *shares.facts()]
        named = {(type(fact), fact.key if isinstance(fact, LocalQueueFacts) else fact.name): fact for fact in found}
        for kind, name in self._told.keys() - named.keys():
            kueue.queues.drop(kind, name)
        for at, fact in named.items():
            if self._told.get(at) != fact:
                kueue.queues.put(fact)
        self._told = named
        # What work is counted as follows from what is shared.
        self._known.clear()

    def _pods_of(self, facts: WorkloadFacts, _: Admission) -> list[PodArrived]:
        unit = self._units.get(facts.key)
        events = (self._event_of(pod) for pod in unit.waiting) if unit is not None else ()
        return [event for event in events if event is not None]

    def _running_of(self, workload: str) -> Sequence[str]:
        unit = self._units.get(workload)
        return unit.there if unit is not None else ()


def capacity_of(nodes: Iterable[NodeFacts]) -> dict[str, int]:
    total: dict[str, int] = {}
    for node in nodes:
        add(total, {**node.allocatable, **({_GPU: node.gpus} if node.gpus else {})})
    return total
