"""Searches victims for a workload by the configured discipline, without changing the state.

The answer is all or nothing: victims are named only if their leaving makes room.

Classical preemption takes candidates in order until the workload fits, then drops those that are not needed. A
candidate is passed over once its queue, or a cohort between it and the common one, is back within its quota: no queue
loses its own quota.

Rejected: the cheapest set of victims. Who yields must be plain from the order, and stay the same when an unrelated
workload changes its size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet

from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.facts import FlavorResource, Usage, WorkloadFacts
from shoal.engine.queues.flavors.modes import Mode, Oracle, PreemptionPossibility
from shoal.engine.queues.quota_tree import lowest_that_fits
from shoal.engine.queues.state import Queues
from shoal.engine.queues.victims.candidates import attempts, classical_sources, could_suffice, is_above_nominal
from shoal.engine.queues.victims.fair import fair_victims
from shoal.engine.queues.victims.order import OWN, Asked, in_order
from shoal.engine.queues.victims.preemption_cost import PreemptionCost
from shoal.engine.queues.victims.preemption_request import PreemptionRequest, Victim
from shoal.engine.queues.victims.trial import Trial

__all__ = ["PreemptionOracle", "Victim", "PreemptionRequest", "find_victims", "oracle"]


def find_victims(queues: Queues, want: PreemptionRequest) -> list[Victim]:
    """The victims with their reasons; empty if no eviction would help."""
    trial = Trial(queues, want)
    try:
        return fair_victims(trial, queues.settings) if queues.settings.fair_sharing else classical_victims(trial)
    finally:
        trial.undo()


class PreemptionOracle:
    """The oracle of one nomination: whether there are victims for one amount of one flavor and resource, and how far
    the workload would borrow then. Results are kept, since the search that follows mostly needs the same."""

    def __init__(
        self,
        queues: Queues,
        stamp_s: float,
        *,
        local_usage: Callable[[str], float] | None = None,
        preemption_cost: PreemptionCost | None = None,
        fresh: AbstractSet[str] = frozenset(),
    ) -> None:
        self._queues = queues
        self._stamp_s = stamp_s
        self._local_usage = local_usage
        self._preemption_cost = preemption_cost
        self._fresh = fresh
        self._found: dict[tuple[FlavorResource, int], list[Victim]] = {}

    def ask(self, queue: ClusterQueue, facts: WorkloadFacts, fr: FlavorResource, amount: int) -> PreemptionPossibility:
        """The oracle."""
        victims = self.victims(queue, facts, {fr: amount}, frozenset((fr,)))
        if not victims:
            return PreemptionPossibility(Mode.NO_CANDIDATES, lowest_that_fits(queue, fr, amount)[0])
        for victim in victims:
            victim.held.queue.remove_all(victim.held.usage)
        borrow = lowest_that_fits(queue, fr, amount)[0]
        for victim in victims:
            victim.held.queue.add_all(victim.held.usage)
        is_own = any(victim.held.queue is queue for victim in victims)
        return PreemptionPossibility(Mode.PREEMPT if is_own else Mode.RECLAIM, borrow)

    def victims(
        self,
        queue: ClusterQueue,
        facts: WorkloadFacts,
        usage: Usage,
        needs: frozenset[FlavorResource],
        fits: Callable[[], bool] | None = None,
    ) -> list[Victim]:
        """Who yields for all of a usage."""
        is_single = len(usage) == 1 and needs == usage.keys() and fits is None
        question = next(iter(usage.items())) if is_single else None
        if question is not None and question in self._found:
            return self._found[question]
        found = find_victims(
            self._queues,
            PreemptionRequest(
                queue, facts, usage, needs, self._stamp_s, fits, self._local_usage, self._preemption_cost, self._fresh
            ),
        )
        if question is not None:
            self._found[question] = found
        return found


def oracle(queues: Queues, stamp_s: float, local_usage: Callable[[str], float] | None = None) -> Oracle:
    """A search that is used by itself."""
    return PreemptionOracle(queues, stamp_s, local_usage=local_usage).ask


def classical_victims(trial: Trial) -> list[Victim]:
    want = trial.want
    sources = classical_sources(want)
    if not sources:
        return []
    for borrowing in attempts(want, sources):
        asked = [source for source in sources if not (borrowing and source.in_quota_only)]
        if could_suffice(want, asked, borrowing=borrowing):
            found = _attempt(trial, in_order(asked, want), borrowing=borrowing)
            if found:
                return found
    return []


def _attempt(trial: Trial, candidates: Iterable[Asked], *, borrowing: bool) -> list[Victim]:
    needs = trial.want.needs
    for held, source in candidates:
        is_asked = source.group == OWN or is_above_nominal(held.queue, source.common, needs)
        if is_asked and trial.may_take(held):
            trial.take(held, source.reason)
            if trial.fits(borrowing=borrowing):
                return trial.spare(borrowing=borrowing)
    trial.undo()
    return []
