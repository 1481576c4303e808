"""Rounds on one cluster until nothing changes any more: the engine decides, and every decision is carried out without
failures.

What is placed runs at once. What is evicted, and what was ending before, is gone before the next round, or stays as it
is with `keep_terminating`: then the nominations that wait for them are visible. What is moved ends too and comes back
nominated for its new place. An evicted pod comes back only if asked for, because its controller decides whether to make
it anew.

Guarantees: the same facts and seed give the same rounds; a round that changes nothing is the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from shoal.engine.cluster import Cluster
from shoal.engine.cycle import STEPS, cycle
from shoal.engine.cycle_state import Step
from shoal.engine.events import Event, PodArrived, PodBound, PodGone
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.plan import Evict, Move, Nominate, Place, Plan
from shoal.engine.pods import PodAllocation
from shoal.engine.preemption.policy import VictimPolicy

MOST_ROUNDS = 1000
ROUND_S = 1.0
"""Virtual time between two rounds."""


@dataclass(slots=True)
class Record:
    """What one round decided, and who ended after it."""

    placed: list[Place] = field(default_factory=list)
    nominated: list[Nominate] = field(default_factory=list)
    evicted: list[Evict] = field(default_factory=list)
    moved: list[Move] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    is_quiet: bool = False
    """Nothing was placed, nominated anew, evicted or moved, and nothing ended."""


class Rounds:
    """One cluster's life, round by round."""

    def __init__(
        self,
        intake: Intake,
        placement: Placement,
        *,
        seed: int = 0,
        now_s: float = 0.0,
        steps: Sequence[Step] | None = None,
        keep_terminating: bool = False,
        recreate: bool = False,
    ) -> None:
        self.cluster: Cluster = intake.cluster
        self.placement = placement
        self.seed = seed
        self.now_s = now_s
        self.victim_policy = VictimPolicy()
        """By which the steps preempt, for those who explain why they do not."""
        self._intake = intake
        self._steps = STEPS if steps is None else steps
        self._keep_terminating = keep_terminating
        self._recreate = recreate

    def each(self, most: int = MOST_ROUNDS) -> Iterator[Record]:
        """Rounds up to the first quiet one, which comes last, or up to a number."""
        for _ in range(most):
            record = self.round()
            yield record
            if record.is_quiet:
                return

    def run(self, most: int = MOST_ROUNDS) -> list[Record]:
        """All of them at once."""
        return list(self.each(most))

    def round(self) -> Record:
        """One decision, obeyed."""
        nominated = {pod: self.cluster.pods[pod].row for pod in self.cluster.nominated}
        plan = cycle(self.cluster, self.placement, now_s=self.now_s, seed=self.seed, steps=self._steps)
        record = Record(
            plan.placed,
            plan.nominated,
            plan.evicted,
            plan.moved,
        )
        self._obey(plan, record)
        news = any(nominated.get(each.pod) != self._row_of(each) for each in record.nominated)
        record.is_quiet = not (record.placed or record.evicted or record.moved or record.ended or news)
        self.now_s += ROUND_S
        return record

    def apply(self, event: Event) -> None:
        """Take note of a change between two rounds."""
        self._intake.apply(event)

    def _row_of(self, nomination: Nominate) -> int | None:
        return self.cluster.row_of.get(nomination.node)

    def _obey(self, plan: Plan, record: Record) -> None:
        for each in plan.placed:
            self._bind(each)
        if self._keep_terminating:
            return
        moved = {move.pod: move for move in plan.moved}
        evicted = {each.pod for each in plan.evicted}
        for pod in list(self.cluster.terminating):
            allocation = self.cluster.pods[pod]
            self._intake.apply(PodGone(pod))
            record.ended.append(pod)
            move = moved.get(pod)
            if move is not None:
                self._come_back(pod, allocation, move.target)
            elif self._recreate and pod in evicted:
                self._come_back(pod, allocation, "")

    def _bind(self, place: Place) -> None:
        allocation = self.cluster.pods[place.pod]
        who = msgspec.structs.replace(allocation.who, since_s=self.now_s)
        self._intake.apply(
            PodBound(
                place.pod,
                allocation.ask,
                place.node,
                place.grant,
                allocation.priority,
                allocation.daemon_set,
                who,
            )
        )

    def _come_back(self, pod: str, allocation: PodAllocation, nominated: str) -> None:
        who = msgspec.structs.replace(allocation.who, since_s=0.0, saved_s=None)
        self._intake.apply(PodArrived(pod, allocation.ask, allocation.priority, allocation.daemon_set, who, nominated))
