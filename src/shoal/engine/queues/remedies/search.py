"""Searches the changes that would admit a workload now: each is tried, and they are sorted by cost.

Each remedy is the smallest of its kind: applied to the facts, a cycle that looks at the workload first admits it (or
tells others to stop for it), and one unit less does not do. The engine has no clock; a number of trials bounds the
search, and the caller may end it at any time. What was not brought to its end by then is left out, but for workloads
that would have to end: those are reported with a note that fewer may suffice.
"""

from __future__ import annotations

from collections.abc import Iterator

from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.facts import QuotaAssignment, WorkloadFacts
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.proof import Prover
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.remedies.ended_workloads import ended
from shoal.engine.queues.remedies.flavor import other_flavors, other_flavors_with_quota
from shoal.engine.queues.remedies.hypothetical_facts import HypotheticalFacts
from shoal.engine.queues.remedies.obstacles import why_all_wait, why_not_queued, why_refused, why_stopped
from shoal.engine.queues.remedies.owner_changes import fewer_pods, higher_priority
from shoal.engine.queues.remedies.quota import more_borrowing, more_lending, more_quota
from shoal.engine.queues.remedies.released_quota import given_back, reclaimed
from shoal.engine.queues.remedies.remedy import Effect, FieldChange, Remedy, RemedyKind
from shoal.engine.queues.remedies.shortage import shortages
from shoal.engine.queues.remedies.trials import SearchLimit, SpentError, Trials
from shoal.engine.queues.workloads import PendingWorkload

_ENOUGH = 1 << 50
"""More of a resource than any workload requests."""


def remedies(
    kueue: Kueue,
    workload: str,
    *,
    prover: Prover | None = None,
    now_s: float = 0.0,
    budget: SearchLimit | None = None,
) -> list[Remedy]:
    """What would help a workload that waits, the cheapest first; empty for one that does not wait, and where nothing
    was found. The facts are afterwards what they were, and the budget tells whether it was enough."""
    kueue.queues.refresh()
    found = _queued(kueue, workload)
    if found is None:
        aside = next((each for each in kueue.states() if each.workload == workload), None)
        return [] if aside is None else [why_not_queued(kueue.queues, aside)]
    waiting, queue = found
    reported = why_stopped(kueue.queues, queue) or why_refused(kueue.queues, queue, waiting.facts)
    if reported is not None:
        return [reported]
    heeded = None if kueue.queues.settings.placement == "quotaOnly" else prover
    tries = Trials(kueue, waiting, queue, heeded, now_s, budget or SearchLimit())
    return sorted(_found(tries), key=lambda remedy: remedy.cost)


def admission_with_quota(kueue: Kueue, workload: str, now_s: float = 0.0) -> QuotaAssignment | None:
    """What a waiting workload would be admitted with if its queue had quota enough; None where quota is not all that
    it lacks. Places on nodes are not looked at."""
    kueue.queues.refresh()
    found = _queued(kueue, workload)
    if found is None or why_stopped(kueue.queues, found[1]) or why_refused(kueue.queues, found[1], found[0].facts):
        return None
    waiting, queue = found

    def enough(scene: HypotheticalFacts) -> None:
        for fr, amount in list(queue.nominal.items()):
            scene.set_nominal(queue, fr, amount + _ENOUGH)

    try:
        effect, entry = Trials(kueue, waiting, queue, None, now_s, SearchLimit()).look(enough)
    except SpentError:
        return None
    if effect is None or entry.assignment is None:
        return None
    return entry.assignment.admission(queue.name)


def is_admitted_as(
    kueue: Kueue, workload: str, facts: WorkloadFacts, *, prover: Prover | None = None, now_s: float = 0.0
) -> bool:
    """Whether a waiting workload would be admitted if it were as these facts say, with places for its pods."""
    kueue.queues.refresh()
    found = _queued(kueue, workload)
    if found is None:
        return False

    def changed(scene: HypotheticalFacts) -> None:
        scene.facts = facts

    try:
        return Trials(kueue, *found, prover, now_s, SearchLimit()).effect(changed) is Effect.ADMITTED
    except SpentError:
        return False


def _queued(kueue: Kueue, workload: str) -> tuple[PendingWorkload, ClusterQueue] | None:
    for name, queue in kueue.queues.cluster_queues.items():
        pending = kueue.pending_of(name)
        waiting = pending.get(workload) if pending is not None else None
        if waiting is not None:
            return waiting, queue
    return None


def _turn(trials: Trials, effect: Effect) -> Remedy:
    """Of a workload that a cycle would admit if it looked at it: a StrictFIFO queue looks at its first one only."""
    first = trials.blocker()
    if not first:
        return Remedy(RemedyKind.TURN, effect)
    change = FieldChange("ClusterQueue", trials.queue.name, "queueingStrategy", "StrictFIFO", holders=(first,))
    return Remedy(RemedyKind.TURN, Effect.UNTRIED, (change,))


def _found(trials: Trials) -> list[Remedy]:
    """As far as the trials go; each remedy once."""
    found: dict[tuple[RemedyKind, tuple[FieldChange, ...]], Remedy] = {}
    try:
        effect, entry = trials.look()
        if effect is not None:
            return [_turn(trials, effect)]
        if entry.why is Wait.PODS_READY:
            return [why_all_wait(trials.queues)]
        if entry.why is Wait.RESERVED:
            return [Remedy(RemedyKind.TURN, Effect.UNTRIED, message=entry.message)]
        for remedy in _tried(trials, entry.why):
            if remedy is not None:
                found.setdefault((remedy.kind, remedy.changes), remedy)
        for remedy in () if found else other_flavors_with_quota(trials):
            if remedy is not None:
                found[remedy.kind, remedy.changes] = remedy
    except SpentError:
        pass
    return list(found.values())


def _tried(trials: Trials, why: Wait) -> Iterator[Remedy | None]:
    short = shortages(trials)
    if short:
        yield reclaimed(trials)
    is_freed = False
    for each in short:
        for found in given_back(trials, each):
            is_freed = is_freed or found is not None
            yield found
        yield more_borrowing(trials, each)
        yield from more_lending(trials, each)
        yield from more_quota(trials, each)
    yield from other_flavors(trials)
    yield from fewer_pods(trials)
    if why is Wait.TOPOLOGY or not is_freed:
        # Quota that is given back makes no room on nodes; a workload that ends does.
        yield ended(trials)
    yield higher_priority(trials)
