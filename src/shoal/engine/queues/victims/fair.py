"""Selects victims under fair sharing: workloads of queues above their share make way for those of queues below it.

Shares are compared where the ways to both queues part, and count the incoming workload. A queue reclaims its own quota
from borrowers without any comparison.

Rejected: taking from one queue until it is even. After every victim the highest share is looked for again, so that
several borrowers come down together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.facts import Usage
from shoal.engine.queues.quota_tree import Cohort
from shoal.engine.queues.reasons import Yield
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.victims.candidates import could_suffice
from shoal.engine.queues.victims.order import PRIORITY, Source, exceeds, in_order, own_source, willing
from shoal.engine.queues.victims.preemption_request import PreemptionRequest, Victim
from shoal.engine.queues.victims.target_queue_ordering import Shares, TargetQueue, TargetQueueOrdering, Weight
from shoal.engine.queues.victims.trial import Trial

Strategy = Callable[[Weight, Weight, Weight], bool]
"""(the asking side's share with the workload, the other's as it is, the other's without the candidate)"""


def _final_share(mine: Weight, _before: Weight, after: Weight) -> bool:
    return mine <= after


def _initial_share(mine: Weight, before: Weight, _after: Weight) -> bool:
    return mine < before


STRATEGIES: dict[str, Strategy] = {
    "LessThanOrEqualToFinalShare": _final_share,
    "LessThanInitialShare": _initial_share,
}


def fair_victims(trial: Trial, settings: Settings) -> list[Victim]:
    want = trial.want
    sources = fair_sources(want)
    if not sources or not could_suffice(want, sources, borrowing=True):
        return []
    strategies = [STRATEGIES[name] for name in settings.fair_strategies] or list(STRATEGIES.values())
    candidates = [TargetQueue(rank, held) for rank, (held, _) in enumerate(in_order(sources, want))]
    with _charged(want):
        search = _FairSearch(trial)
        found = search.by(strategies[0], candidates)
        if not found and len(strategies) > 1:
            found = search.once_per_queue()
    return trial.spare(borrowing=True) if found else []


def fair_sources(want: PreemptionRequest) -> list[Source]:
    """Own workloads as `withinClusterQueue` allows; others', wherever in the tree, from queues that borrow."""
    found = own_source(want)
    policy = want.queue.facts.preemption.reclaim
    root = want.queue.root
    if policy != "Never" and isinstance(root, Cohort):
        for queue in _borrowers(root, want):
            holders = willing(queue, policy, want)
            if holders:
                found.append(Source(holders, PRIORITY, Yield.FAIR_SHARING))
    return found


def _borrowers(cohort: Cohort, want: PreemptionRequest) -> Iterator[ClusterQueue]:
    for child in cohort.children:
        if isinstance(child, Cohort):
            yield from _borrowers(child, want)
        elif isinstance(child, ClusterQueue) and child is not want.queue and exceeds(child, want.needs):
            yield child


class _FairSearch:
    """Goes through the queues in turn, with the incoming workload charged."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._want = trial.want
        self._shares = Shares()
        self._is_entitled = not exceeds(trial.want.queue, trial.want.needs)
        """Whether it stays within its own quota, of what is short, with the workload."""
        self._refused: list[TargetQueue] = []

    def by(self, strategy: Strategy, candidates: list[TargetQueue]) -> bool:
        contest = TargetQueueOrdering(self._want.queue, candidates, self._shares)
        for queue in contest.queues():
            if queue is self._want.queue:
                found = self._take(contest.pop(queue), Yield.IN_CLUSTER_QUEUE)
            elif self._is_entitled:
                found = self._take(contest.pop(queue), Yield.RECLAIM)
            else:
                found = self._take_by(strategy, contest, queue)
            if found:
                return True
        return False

    def once_per_queue(self) -> bool:
        """Those that were refused, once more: a queue with a larger share than the preemptor's queue will have gives
        one workload.
        """
        contest = TargetQueueOrdering(self._want.queue, self._refused, self._shares)
        for queue in contest.queues():
            mine, theirs = contest.sides(queue)
            if self._shares.of(mine) < self._shares.of(theirs) and self._take(contest.pop(queue), Yield.FAIR_SHARING):
                return True
            contest.drop(queue)
        return False

    def _take_by(self, strategy: Strategy, contest: TargetQueueOrdering, queue: ClusterQueue) -> bool:
        """The first of the queue that the strategy lets go; another queue may be higher after that."""
        side, other = contest.sides(queue)
        mine, before = self._shares.of(side), self._shares.of(other)
        refused: Usage | None = None
        while contest.has(queue):
            turn = contest.pop(queue)
            # Who uses the same as the one before gets the same answer.
            if turn.held.usage != refused and strategy(mine, before, self._shares.without(turn.held, other)):
                return self._take(turn, Yield.FAIR_SHARING)
            refused = turn.held.usage
            self._refused.append(turn)
        return False

    def _take(self, turn: TargetQueue, reason: Yield) -> bool:
        """Whether there is capacity now."""
        if not self._trial.may_take(turn.held):
            return False
        self._trial.take(turn.held, reason)
        self._shares.forget(turn.held.queue)
        if self._trial.is_short:
            return False
        queue, usage = self._want.queue, self._want.usage
        queue.remove_all(usage)
        try:
            return self._trial.fits(borrowing=True)
        finally:
            queue.add_all(usage)


@contextmanager
def _charged(want: PreemptionRequest) -> Iterator[None]:
    """Shares count the incoming workload; afterwards the sums are as if it had never been there."""
    nodes = [want.queue, *want.queue.path_up()]
    unknown = [(node, fr) for node in nodes for fr in want.usage if fr not in node.usage]
    want.queue.add_all(want.usage)
    try:
        yield
    finally:
        want.queue.remove_all(want.usage)
        for node, fr in unknown:
            node.usage.pop(fr, None)
