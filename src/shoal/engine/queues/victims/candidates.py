"""Lists candidates for classical preemption, with the reason for each.

Walking up from the queue, every cohort adds those below it that were not reached before. As soon as the quota of a
subtree would hold the workload, borrowers beyond it use quota that it may claim: the workload then has *hierarchical
advantage*, and the reclaim policy alone decides. Before that, borrowing in addition to others' borrowing needs
`borrowWithinCohort`, and other candidates are preempted only if the workload ends up within its own quota.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shoal.engine.queues.clusterqueue import AdmittedWorkload, ClusterQueue
from shoal.engine.queues.facts import FlavorResource, PreemptionRules, Usage
from shoal.engine.queues.quota_tree import Cohort, CohortNode
from shoal.engine.queues.reasons import Yield
from shoal.engine.queues.victims.order import ADVANTAGE, OWN, PRIORITY, Source, exceeds, own_source, willing
from shoal.engine.queues.victims.preemption_request import PreemptionRequest


def classical_sources(want: PreemptionRequest) -> list[Source]:
    own = own_source(want)
    if want.queue.facts.preemption.reclaim == "Never" or want.queue.parent is None:
        return own
    return own + _others(want, may_end_in_quota=_may_end_in_quota(want, own))


def attempts(want: PreemptionRequest, sources: Iterable[Source]) -> tuple[bool, ...]:
    """Whether to try with borrowing, and without, in this order.

    Without the right to borrow on others' borrowing, what is reclaimed must end up within the own quota, so that comes
    first; a queue that has used up its quota cannot get there.
    """
    groups = {source.group for source in sources}
    is_forbidden = want.queue.facts.preemption.borrow == "Never"
    if groups <= {OWN} or (is_forbidden and not _is_under_quota(want)):
        return (True,)
    if is_forbidden and ADVANTAGE not in groups:
        return False, True
    return True, False


def is_above_nominal(queue: ClusterQueue, common: Cohort | None, needs: frozenset[FlavorResource]) -> bool:
    """Whether a queue, and every cohort below the common one, still is above its quota."""
    node: CohortNode | None = queue
    while node is not None and node is not common:
        if not exceeds(node, needs):
            return False
        node = node.parent
    return True


def could_suffice(want: PreemptionRequest, sources: Iterable[Source], *, borrowing: bool) -> bool:
    """Whether capacity is conceivable if all of them went: an eviction frees at most the usage of its victim."""
    queue = want.queue
    for fr, amount in want.usage.items():
        freed = own = 0
        for source in sources:
            used = sum([held.usage.get(fr, 0) for held in source.holders])
            freed += used
            if source.group == OWN:
                own += used
        if amount > max(0, queue.available(fr) + freed):
            return False
        if not borrowing and queue.borrows_with(fr, amount - own):
            return False
    return True


def _others(want: PreemptionRequest, *, may_end_in_quota: bool) -> list[Source]:
    found: list[Source] = []
    rules, needs = want.queue.facts.preemption, want.needs
    below: CohortNode = want.queue
    has_advantage, left = _holds(below, want.usage)
    for cohort in want.queue.path_up():
        if has_advantage or may_end_in_quota or rules.borrow != "Never":
            for queue in _borrowers(cohort, needs, below):
                holders = willing(queue, rules.reclaim, want)
                if has_advantage:
                    found.append(Source(holders, ADVANTAGE, Yield.RECLAIM, cohort))
                else:
                    found += _by_priority(want, holders, cohort, may_end_in_quota=may_end_in_quota)
        holds, left = _holds(cohort, left)
        has_advantage = has_advantage or holds
        below = cohort
    return [source for source in found if source.holders]


def _by_priority(
    want: PreemptionRequest, holders: list[AdmittedWorkload], common: Cohort, *, may_end_in_quota: bool
) -> Iterator[Source]:
    rules, priority = want.queue.facts.preemption, want.facts.priority
    others = holders
    if rules.borrow != "Never":
        below = [held for held in holders if _is_below(rules, priority, held.facts.priority)]
        others = [held for held in holders if not _is_below(rules, priority, held.facts.priority)]
        yield Source(below, PRIORITY, Yield.RECLAIM_WHILE_BORROWING, common)
    if may_end_in_quota:
        yield Source(others, PRIORITY, Yield.RECLAIM, common, in_quota_only=True)


def _is_below(rules: PreemptionRules, priority: int, other: int) -> bool:
    """Whether it yields even to who borrows."""
    return other < priority and (rules.borrow_threshold is None or other <= rules.borrow_threshold)


def _borrowers(
    cohort: Cohort, needs: frozenset[FlavorResource], but: CohortNode | None = None
) -> Iterator[ClusterQueue]:
    """The queues below that borrow what is short, in cohorts that do; one child is left out."""
    for child in cohort.children:
        if child is but or not exceeds(child, needs):
            continue
        if isinstance(child, ClusterQueue):
            yield child
        elif isinstance(child, Cohort):
            yield from _borrowers(child, needs)


def _holds(node: CohortNode, wanted: Usage) -> tuple[bool, Usage]:
    """Whether the node's quota holds what is wanted on top of its use, and what of it is the parent's affair."""
    holds = not any(node.borrows_with(fr, amount) for fr, amount in wanted.items())
    return holds, {fr: max(0, amount - node.local_capacity(fr)) for fr, amount in wanted.items()}


def _may_end_in_quota(want: PreemptionRequest, own: list[Source]) -> bool:
    """Whether the workload can end up within the own quota: if not, who yields only then need not be looked at."""
    queue = want.queue
    if queue.facts.preemption.borrow == "Never" and not _is_under_quota(want):
        return False
    holders = own[0].holders if own else []
    return not any(
        queue.borrows_with(fr, amount - sum([held.usage.get(fr, 0) for held in holders]))
        for fr, amount in want.usage.items()
    )


def _is_under_quota(want: PreemptionRequest) -> bool:
    queue = want.queue
    return all(queue.usage.get(fr, 0) < queue.nominal.get(fr, 0) for fr in want.needs)
