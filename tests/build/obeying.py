"""A world that obeys: what the queues decide comes true, and what happens to it they are told.

It keeps its own books of who holds what, from decisions alone, so that the queues' sums can be held against them.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from build.plain_quota import PlainQuota
from build.queue_stories import Arrive, Change, Explanation, Finish, Gone, Happening, Round
from shoal.engine.queues.decisions import Decisions
from shoal.engine.queues.facts import ClusterQueueFacts, LocalQueueFacts, WorkloadFacts
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Fact, Queues


def queues_of(facts: Iterable[Fact], settings: Settings) -> Queues:
    queues = Queues(settings)
    for fact in facts:
        queues.put(fact)
    queues.put_namespace("ns", {})
    queues.refresh()
    return queues


class Obeying:
    """One run of a story."""

    def __init__(self, story: Explanation, discipline: type[Kueue] = Kueue) -> None:
        self.settings = story.settings
        self.kueue = discipline(queues_of(story.facts, story.settings))
        self.facts: dict[tuple[type, str], Fact] = {}
        for fact in story.facts:
            self.facts[type(fact), name_of(fact)] = fact
        self.waiting: dict[str, WorkloadFacts] = {}
        self.holding: dict[str, WorkloadFacts] = {}
        self.terminating: dict[str, str] = {}
        """Victim -> who it was told to stop for."""
        self.now_s = 0.0

    @property
    def quota(self) -> PlainQuota:
        """As the facts and the books have it."""
        return self._quota(self.holding.keys())

    @property
    def lasting(self) -> PlainQuota:
        """The same without those that were told to stop."""
        return self._quota(self.holding.keys() - self.terminating.keys())

    def _quota(self, keys: Iterable[str]) -> PlainQuota:
        there = [self.holding[key].admission for key in keys]
        return PlainQuota(self.facts.values(), [each for each in there if each is not None])

    def queue_of(self, workload: WorkloadFacts) -> ClusterQueueFacts | None:
        local = self.facts.get((LocalQueueFacts, workload.queue))
        found = self.facts.get((ClusterQueueFacts, local.cluster_queue)) if isinstance(local, LocalQueueFacts) else None
        return found if isinstance(found, ClusterQueueFacts) else None

    # What happens

    def tell(self, happening: Happening) -> None:
        match happening:
            case Arrive(facts):
                there = self.waiting if facts.admission is None else self.holding
                there[facts.key] = facts
                self.kueue.put_workload(facts, self.now_s)
            case Finish(turn):
                keys = sorted([*self.holding, *self.waiting])
                if keys:
                    self.finish(keys[turn % len(keys)])
            case Change(fact):
                self.facts[type(fact), name_of(fact)] = fact
                self.kueue.queues.put(fact)
            case Gone(kind, name):
                self.drop(kind, name)
            case Round(is_over):
                self.cycle()
                if is_over:
                    self.let_go()

    def finish(self, key: str) -> None:
        self.holding.pop(key, None)
        self.waiting.pop(key, None)
        self.terminating.pop(key, None)
        self.kueue.drop_workload(key, self.now_s, finished=True)

    def drop(self, kind: type[Fact], name: str) -> None:
        """Who holds something of a queue that is gone has to go as well."""
        if self.facts.pop((kind, name), None) is None:
            return
        self.kueue.queues.drop(kind, name)
        if kind is ClusterQueueFacts:
            for key, facts in list(self.holding.items()):
                if facts.admission is not None and facts.admission.cluster_queue == name:
                    self.finish(key)

    def cycle(self) -> Decisions:
        self.now_s += 1.0
        decisions = self.kueue.cycle(self.now_s)
        for each in decisions.preempted:
            assert each.workload not in self.terminating, "nobody is told twice"
            self.terminating[each.workload] = each.beneficiary
        for admitted in decisions.admitted:
            facts = self.waiting.pop(admitted.workload)
            self.holding[facts.key] = replace(
                facts,
                admission=admitted.admission,
                admitted=True,
                reserved_s=self.now_s,
                admitted_s=self.now_s,
                evicted_s=None,
                evicted_why="",
            )
        return decisions

    def let_go(self) -> list[str]:
        """Whoever was told to stop has stopped, and stands in line again."""
        gone = list(self.terminating)
        self.terminating.clear()
        for key in gone:
            facts = self.waiting[key] = replace(
                self.holding.pop(key),
                admission=None,
                admitted=False,
                reserved_s=0.0,
                evicted_s=self.now_s,
                evicted_why="Preempted",
            )
            self.kueue.put_workload(facts, self.now_s)
        return gone

    def only(self, keys: Iterable[str]) -> None:
        """Of those that wait all others give up, and victims leave for good."""
        for key in [*self.terminating, *sorted(self.waiting.keys() - set(keys))]:
            self.finish(key)

    def rest(self, most: int = 60) -> list[Decisions]:
        """Cycles, with everybody obeying at once, until nothing is left to be decided."""
        done = []
        for _ in range(most):
            done.append(self.cycle())
            if not self.let_go() and self.kueue.is_idle:
                return done
        raise AssertionError("it never came to rest")


def played(story: Explanation) -> Obeying:
    """A world in which everything has happened."""
    world = Obeying(story)
    for happening in story.happenings:
        world.tell(happening)
    return world


def name_of(fact: Fact) -> str:
    return fact.key if isinstance(fact, LocalQueueFacts) else fact.name
