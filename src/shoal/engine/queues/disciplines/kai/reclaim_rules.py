"""Decides between queues: whether a job may reclaim at all, from which work, and whether the outcome is fair.

Entry: the claimant's queue stays within its fair share with the step, in all resources, and within its quota if the
work is never preempted. Each step of the victims: its queue, at the level below the lowest common ancestor, holds more
than its allocatable share of some resource, or more than its quota while the claimant's stays within its own. End: at
every level the claimant's queue is not saturated above its share unless it stays below the sibling that yielded.
"""

from __future__ import annotations

from fractions import Fraction

from shoal.engine.queues.disciplines.kai.fair_cycle import FairshareCycle
from shoal.engine.queues.disciplines.kai.fair_jobs import FairJob
from shoal.engine.queues.disciplines.kai.fair_queues import (
    EACH,
    NOTHING,
    Amounts3,
    QueueNode,
    exceeds_any,
    is_within,
    meeting_point,
    plus,
)
from shoal.engine.queues.disciplines.kai.victim_line import VictimStep


def may_reclaim(job: FairJob) -> bool:
    """Whether the queue of a job may take from others for its next step."""
    leaf = job.leaf
    after = plus(leaf.allocated, job.step_amounts)
    if not job.is_preemptible and not leaf.is_within_quota(plus(leaf.non_preemptible, job.step_amounts)):
        return False
    return is_within(after, leaf.fair_share)


def branches_that_may_yield(cycle: FairshareCycle, claimant: FairJob) -> set[QueueNode]:
    """The queues beside the claimant's path below which work may be stopped for it at all, whatever is stopped besides.

    At each level the claimant's queue is as little saturated as it can be: all that may yield below it has."""
    step = claimant.step_amounts
    found: set[QueueNode] = set()
    inside: Amounts3 = NOTHING
    for ours in claimant.leaf.path:
        beside = [
            theirs
            for theirs in (cycle.tree.tops if ours.parent is None else ours.parent.children)
            if theirs is not ours and _may_yield(ours, theirs, step, NOTHING)
        ]
        for theirs in beside:
            if all(not step[at] or _is_below(cycle, ours, theirs, step, inside, at) for at in EACH):
                found.add(theirs)
        for theirs in found.intersection(beside):
            inside = plus(inside, theirs.allocated)
    return found


def _is_below(
    cycle: FairshareCycle, ours: QueueNode, theirs: QueueNode, step: Amounts3, inside: Amounts3, at: int
) -> bool:
    after = ours.allocated[at] + step[at] - inside[at]
    if after <= ours.fair_share[at] or not theirs.fair_share[at]:
        return True
    multiplier = Fraction(max(1.0, cycle.settings.reclaim_multiplier))
    return bool(ours.fair_share[at]) and (
        after * theirs.fair_share[at] * multiplier < theirs.allocated[at] * ours.fair_share[at]
    )


def is_fair(cycle: FairshareCycle, job: FairJob, step: Amounts3, victims: list[tuple[VictimStep, Amounts3]]) -> bool:
    """Whether the claimant may take exactly this from these, in this order."""
    if not job.is_preemptible and any(
        exceeds_any(plus(node.non_preemptible, step), node.facts.quota) for node in job.leaf.path
    ):
        return False
    taken: dict[QueueNode, Amounts3] = {}
    for victim, amounts in victims:
        ours, theirs = meeting_point(job.leaf, victim.job.leaf)
        if not _may_yield(ours, theirs, step, taken.get(theirs, NOTHING)):
            return False
        for node in victim.job.leaf.path:
            taken[node] = plus(taken.get(node, NOTHING), amounts)
    involved = [at for at in EACH if step[at] or any(amounts[at] for _, amounts in victims)]
    return all(_stays_below(cycle, node, step, taken, involved) for node in job.leaf.path)


def _may_yield(ours: QueueNode, theirs: QueueNode, step: Amounts3, taken: Amounts3) -> bool:
    left = [theirs.allocated[at] - taken[at] for at in EACH]
    if exceeds_any(left, theirs.allocatable):
        return True
    return ours.is_within_quota(plus(ours.allocated, step)) and exceeds_any(left, theirs.facts.quota)


def _stays_below(
    cycle: FairshareCycle, ours: QueueNode, step: Amounts3, taken: dict[QueueNode, Amounts3], involved: list[int]
) -> bool:
    """Whether the claimant's queue is not above its share while being at least as saturated as a sibling it took from.

    A sibling without a share is no measure."""
    multiplier = Fraction(max(1.0, cycle.settings.reclaim_multiplier))
    siblings = cycle.tree.tops if ours.parent is None else ours.parent.children
    own = taken.get(ours, NOTHING)
    for at in involved:
        after = ours.allocated[at] + step[at] - own[at]
        if after <= ours.fair_share[at]:
            continue
        for sibling in siblings:
            if sibling is ours or sibling not in taken or not sibling.fair_share[at]:
                continue
            left = sibling.allocated[at] - taken[sibling][at]
            # Compared as products: a share of nothing is more saturated than anything.
            if not ours.fair_share[at] or (after * sibling.fair_share[at] * multiplier >= left * ours.fair_share[at]):
                return False
    return True
