"""Finds remedies in which other cluster queues release quota: how much, and which one; or by which rule it is taken
from them.

Amounts come first: which workloads of a queue end is the decision of its users. The workloads that would yield first,
as many as hold the amount, are named with it; the trials take the amount from the same ones.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs

from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.facts import FlavorResource, Reclaim
from shoal.engine.queues.remedies.hypothetical_facts import HypotheticalFacts, softness
from shoal.engine.queues.remedies.minimum_search import MinimumSearch, smallest
from shoal.engine.queues.remedies.remedy import Effect, FieldChange, Remedy, RemedyKind
from shoal.engine.queues.remedies.shortage import Short
from shoal.engine.queues.remedies.trials import Trials

_MOST_GIVERS = 6


def reclaimed(trials: Trials) -> Remedy | None:
    """The mildest rule by which the queue takes back what others borrow from it."""
    queue = trials.queue
    rules = queue.facts.preemption
    if queue.parent is None:
        return None
    milder: tuple[Reclaim, ...] = ("LowerPriority", "Any")
    for reclaim in milder[milder.index(rules.reclaim) + 1 :] if rules.reclaim in milder else milder:

        def apply(scene: HypotheticalFacts, reclaim: Reclaim = reclaim) -> None:
            scene.set_preemption(queue, structs.replace(rules, reclaim=reclaim))

        if trials.effect(apply) is Effect.PREEMPTS:
            change = FieldChange("ClusterQueue", queue.name, "preemption.reclaimWithinCohort", rules.reclaim, reclaim)
            return Remedy(RemedyKind.RECLAIM, Effect.PREEMPTS, (change,))
    return None


def given_back(trials: Trials, short: Short) -> Iterator[Remedy | None]:
    """By one queue; by several where none alone has enough."""
    givers = _givers(trials, short)[:_MOST_GIVERS]
    is_found = False
    for queue in givers:
        found = smallest(trials, RemedyKind.FREED, _dials(queue, short), only_admission=True)
        is_found = is_found or found is not None
        yield found
    if not is_found and len(givers) > 1:
        # Who borrows least is turned down first, so that few have to give.
        dials = [dial for queue in reversed(givers) for dial in _dials(queue, short)]
        yield smallest(trials, RemedyKind.FREED, dials, only_admission=True)


def _givers(trials: Trials, short: Short) -> list[ClusterQueue]:
    """Who borrows most comes first, then who uses most."""
    found = [
        queue for queue in trials.queues.leaves_of(trials.queue.root) if any(queue.usage.get(fr, 0) > 0 for fr in short)
    ]
    return sorted(found, key=lambda queue: (-_borrowed(queue, short), -_used(queue, short), queue.name))


def _dials(queue: ClusterQueue, short: Short) -> list[MinimumSearch]:
    return [_dial(queue, fr) for fr in short if queue.usage.get(fr, 0) > 0]


def _dial(queue: ClusterQueue, fr: FlavorResource) -> MinimumSearch:
    flavor, resource = fr
    used = queue.usage[fr]
    borrowed = _borrowed(queue, [fr])

    def apply(scene: HypotheticalFacts, amount: int) -> None:
        scene.give_back(queue, fr, amount)

    def reported(amount: int) -> FieldChange:
        field, before = ("borrowed", borrowed) if amount <= borrowed else ("used", used)
        holders = _holders(queue, fr, amount)
        return FieldChange(
            "ClusterQueue", queue.name, field, before, before - amount, resource, flavor, holders=holders
        )

    return MinimumSearch(used, apply, reported)


def _holders(queue: ClusterQueue, fr: FlavorResource, amount: int) -> tuple[str, ...]:
    """In the order in which they yield, until they hold the amount together."""
    found: list[str] = []
    for held in sorted(queue.held.values(), key=softness):
        if amount > 0 and held.usage.get(fr, 0) > 0:
            found.append(held.key)
            amount -= held.usage[fr]
    return tuple(found)


def _borrowed(queue: ClusterQueue, short: Short | list[FlavorResource]) -> int:
    return sum(max(0, queue.usage.get(fr, 0) - queue.subtree.get(fr, 0)) for fr in short)


def _used(queue: ClusterQueue, short: Short) -> int:
    return sum(queue.usage.get(fr, 0) for fr in short)
