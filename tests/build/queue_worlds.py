"""Random small worlds of queues: deep trees of cohorts, several flavors, limits everywhere, every policy.

A story is settings, facts and what happens one after the other. Amounts are tiny, so that quotas are met exactly, run
over and shared out evenly far more often than in life; and somebody holds something already, whether or not there is so
much, so that there is something to fight over from the start.

Rejected: a strategy per part, put together by `composite`. Most of its worlds are nearly empty, and one in a hundred
comes to a fight between queues.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

from hypothesis import strategies as st
from msgspec.structs import replace

from build.queue_stories import ONE, Arrive, Bounds, Change, Explanation, Finish, Gone, Happening, Round
from shoal.api.selectors import Selector
from shoal.engine.queues.facts import (
    PODS,
    ClusterQueueFacts,
    CohortFacts,
    FlavorFacts,
    FlavorQuotas,
    Fungibility,
    LocalQueueFacts,
    PodSet,
    PodSetAdmission,
    PreemptionRules,
    Quota,
    QuotaAssignment,
    ResourceGroup,
    WorkloadFacts,
)
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Fact

T = TypeVar("T")

FLAVORS = ("f0", "f1", "f2")
LIMITS = (None, None, None, 0, 1, 2, 3)
FAIR_STRATEGIES = (
    ("LessThanOrEqualToFinalShare", "LessThanInitialShare"),
    ("LessThanOrEqualToFinalShare",),
    ("LessThanInitialShare",),
)


ALL = Bounds()


def stories(bounds: Bounds = ALL) -> st.SearchStrategy[Explanation]:
    return st.randoms(use_true_random=False).map(lambda dice: Author(dice, bounds).story())


@dataclass
class Author:
    """Makes up one story."""

    dice: Random
    bounds: Bounds

    def story(self) -> Explanation:
        dice, bounds = self.dice, self.bounds
        cohorts = dice.randint(min(1, bounds.cohorts), bounds.cohorts)
        queues = dice.randint(min(2, bounds.queues), bounds.queues)
        given = [self.queue(index, cohorts) for index in range(queues)]
        facts: list[Fact] = [FlavorFacts(name) for name in FLAVORS]
        facts += [self.cohort(index) for index in range(cohorts)]
        facts += given
        facts += [LocalQueueFacts(f"ns/{each.name}", each.name) for each in given]
        many = dice.randint(0, bounds.holders)
        happenings: list[Happening] = [Arrive(self.holder(index, given)) for index in range(many)]
        for index in range(many, many + dice.randint(min(2, bounds.arrivals), bounds.arrivals)):
            happenings.append(Arrive(self.workload(index, queues)))
            happenings += self.meanwhile(cohorts, queues)
        return Explanation(self.settings(), facts, happenings)

    def meanwhile(self, cohorts: int, queues: int) -> list[Happening]:
        match self.dice.randint(0, 9 if self.bounds.changes else 7):
            case 0 | 1 | 2:
                return [Round(self.chance(2))]
            case 3:
                return [Finish(self.dice.randint(0, 9))]
            case 8:
                return [Change(self.queue(self.dice.randint(0, queues - 1), cohorts))]
            case 9:
                return [self.change(cohorts, queues)]
            case _:
                return []

    def change(self, cohorts: int, queues: int) -> Happening:
        index = self.dice.randint(0, max(0, cohorts - 1))
        kinds: list[Happening] = [
            Change(self.cohort(index)),
            Gone(CohortFacts, f"c{index}"),
            Gone(ClusterQueueFacts, f"q{queues - 1}"),
            Gone(FlavorFacts, "f1"),
            Change(FlavorFacts("f1")),
        ]
        return self.pick(*kinds)

    # Facts

    def quota(self, *, is_limited: bool) -> Quota:
        nominal = self.pick(0, 1, 2, 2, 3, 3, 4, 6)
        if not is_limited:
            return Quota(nominal)
        lending = self.pick(*LIMITS)
        return Quota(nominal, self.pick(*LIMITS), None if lending is None else min(lending, nominal))

    def cohort(self, index: int) -> CohortFacts:
        """Below one that was named before it, so that there are no circles."""
        parent = "" if index == 0 else f"c{self.dice.randint(0, index - 1)}"
        flavors = tuple(
            FlavorQuotas(name, {each: self.quota(is_limited=bool(parent)) for each in ("cpu", "gpu")})
            for name in FLAVORS
            if self.chance(3)
        )
        groups = (ResourceGroup(("cpu", "gpu"), flavors),) if flavors else ()
        return CohortFacts(f"c{index}", parent, groups, self.weight())

    def queue(self, index: int, cohorts: int) -> ClusterQueueFacts:
        is_alone = not cohorts or (index > 0 and self.chance(8))
        cohort = "" if is_alone else f"c{self.dice.randint(0, cohorts - 1)}"
        groups = tuple(
            ResourceGroup(
                resources,
                tuple(
                    FlavorQuotas(name, {each: self.quota(is_limited=bool(cohort)) for each in resources})
                    for name in flavors
                ),
            )
            for resources, flavors in self.pick(*self.bounds.shapes)
        )
        return ClusterQueueFacts(
            f"q{index}",
            cohort,
            groups,
            self.pick("BestEffortFIFO", "StrictFIFO") if self.bounds.strict else "BestEffortFIFO",
            Selector.EVERYTHING,
            self.fungibility(),
            self.rules(),
            weight=self.weight(),
        )

    def rules(self) -> PreemptionRules:
        bounds = self.bounds
        within: Any = self.pick("Never", "LowerPriority", "LowerPriority", "LowerOrNewerEqualPriority")
        reclaim: Any = self.pick("Never", "LowerPriority", "Any", "Any") if bounds.reclaim else "Never"
        may_borrow = bounds.while_borrowing and reclaim != "Never"
        borrow: Any = self.pick("Never", "LowerPriority") if may_borrow else "Never"
        threshold = self.pick(None, 0, 1) if borrow != "Never" else None
        return PreemptionRules(within if bounds.within else "Never", reclaim, borrow, threshold)

    def fungibility(self) -> Fungibility:
        steps: Any = ("MayStopSearch", "TryNextFlavor")
        borrow, preempt = self.pick(*steps), self.pick(*steps)
        both = borrow == preempt == "TryNextFlavor"
        preference: Any = self.pick("", "PreemptionOverBorrowing") if both else ""
        return Fungibility(borrow, preempt, preference)

    def weight(self) -> float:
        return self.pick(*self.bounds.weights)

    def settings(self) -> Settings:
        fair = self.chance(2) if self.bounds.fair is None else self.bounds.fair
        strategies = self.pick(*FAIR_STRATEGIES)
        return Settings(fair_sharing=fair, fair_strategies=strategies, reservations=self.bounds.reservations)

    # Workloads

    def workload(self, index: int, queues: int) -> WorkloadFacts:
        many = self.bounds.pod_sets if self.chance(4) and not self.bounds.units else 1
        return WorkloadFacts(
            f"ns/w{index}",
            queue=f"ns/q{self.dice.randint(0, queues - 1)}",
            priority=self.dice.randint(0, 2),
            created_s=float(self.dice.randint(0, 3)),
            uid=f"u{index}",
            pod_sets=tuple(self.pod_set(f"s{number}", may_shrink=not number) for number in range(many)),
            duration_s=self.pick(None, 3.0, 30.0) if self.bounds.reservations else None,
        )

    def pod_set(self, name: str, *, may_shrink: bool) -> PodSet:
        if self.bounds.units:
            return PodSet(name, 1, None, {"cpu": 1})
        count = self.pick(1, 1, 1, 2, 3)
        requests = {"cpu": self.pick(1, 1, 2, 2, 3, 4) if count == 1 else self.pick(1, 2)}
        if self.bounds.shapes != (ONE,) and self.chance(4):
            requests["gpu"] = self.dice.randint(0, 2)
        may_shrink = may_shrink and self.bounds.partial and count > 1
        least = self.dice.randint(1, count) if may_shrink and self.chance(2) else None
        return PodSet(name, count, least, requests)

    def holder(self, index: int, given: list[ClusterQueueFacts]) -> WorkloadFacts:
        """One that holds quota already."""
        facts = self.workload(index, len(given))
        queue = next(each for each in given if facts.queue == f"ns/{each.name}")
        sets = []
        for pod_set in facts.pod_sets:
            wanted = {name: amount * pod_set.count for name, amount in (*pod_set.requests.items(), (PODS, 1))}
            flavors = {
                name: flavor.name
                for group in queue.groups
                for flavor in [self.pick(*group.flavors)]
                for name in group.resources
                if name in wanted
            }
            usage = {name: wanted[name] for name in flavors}
            sets.append(PodSetAdmission(pod_set.name, pod_set.count, flavors, usage))
        since_s = -float(self.dice.randint(0, 2))
        admission = QuotaAssignment(queue.name, tuple(sets))
        return replace(facts, admission=admission, admitted=True, reserved_s=since_s, admitted_s=since_s)

    # Luck

    def pick(self, *choices: T) -> T:
        return choices[self.dice.randint(0, len(choices) - 1)]

    def chance(self, one_in: int) -> bool:
        return self.dice.randint(0, one_in - 1) == 0
