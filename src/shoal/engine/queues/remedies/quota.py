"""Finds remedies that raise quota, of the cluster queue or of a cohort above it, or relax limits on borrowing and
lending.
"""

from __future__ import annotations

from collections.abc import Iterator

from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.facts import FlavorResource
from shoal.engine.queues.quota_tree import Cohort, CohortNode
from shoal.engine.queues.remedies.hypothetical_facts import HypotheticalFacts
from shoal.engine.queues.remedies.minimum_search import MinimumSearch, smallest
from shoal.engine.queues.remedies.remedy import FieldChange, Remedy, RemedyKind
from shoal.engine.queues.remedies.shortage import Short
from shoal.engine.queues.remedies.trials import Trials

MOST_LENDERS = 6
"""Who keeps most to himself is asked first."""


def more_quota(trials: Trials, short: Short) -> Iterator[Remedy | None]:
    """Each node from the queue up to the root."""
    for node in (trials.queue, *trials.queue.path_up()):
        yield smallest(trials, RemedyKind.QUOTA, [nominal(node, fr, amount) for fr, amount in short.items()])


def more_borrowing(trials: Trials, short: Short) -> Remedy | None:
    """All limits between the queue and the root; those that do not bind stay as they are."""
    dials = [
        _borrowing(node, fr, amount)
        for fr, amount in short.items()
        for node in (trials.queue, *trials.queue.path_up())
        if node.parent is not None and fr in node.borrowing
    ]
    return smallest(trials, RemedyKind.BORROWING, dials)


def more_lending(trials: Trials, short: Short) -> Iterator[Remedy | None]:
    """One that keeps quota to itself; all of them where one alone does not help."""
    keepers = _keepers(trials, short)[:MOST_LENDERS]
    is_found = False
    for node in keepers:
        found = smallest(trials, RemedyKind.LENDING, _lending(node, short))
        is_found = is_found or found is not None
        yield found
    if not is_found and len(keepers) > 1:
        # Who keeps least is turned down first, so that few have to lend.
        yield smallest(
            trials, RemedyKind.LENDING, [dial for node in reversed(keepers) for dial in _lending(node, short)]
        )


def nominal(node: CohortNode, fr: FlavorResource, most: int) -> MinimumSearch:
    """The node's own quota."""
    before = node.nominal.get(fr)

    def apply(scene: HypotheticalFacts, amount: int) -> None:
        scene.set_nominal(node, fr, (before or 0) + amount)

    return MinimumSearch(most, apply, lambda amount: _change(node, fr, "nominalQuota", before, (before or 0) + amount))


def _borrowing(node: CohortNode, fr: FlavorResource, most: int) -> MinimumSearch:
    before = node.borrowing[fr]

    def apply(scene: HypotheticalFacts, amount: int) -> None:
        scene.set_borrowing(node, fr, before + amount)

    return MinimumSearch(most, apply, lambda amount: _change(node, fr, "borrowingLimit", before, before + amount))


def _lending(node: CohortNode, short: Short) -> list[MinimumSearch]:
    return [_lends(node, fr) for fr in short if node.kept.get(fr, 0) > 0]


def _lends(node: CohortNode, fr: FlavorResource) -> MinimumSearch:
    before = node.subtree[fr] - node.kept[fr]

    def apply(scene: HypotheticalFacts, amount: int) -> None:
        scene.set_lending(node, fr, before + amount)

    most = sum(each.kept.get(fr, 0) for each in _below(node))
    return MinimumSearch(most, apply, lambda amount: _change(node, fr, "lendingLimit", before, before + amount))


def _keepers(trials: Trials, short: Short) -> list[CohortNode]:
    """Nodes of the tree that keep something of what is short, beside the way up, which may use what it keeps."""
    way_up = {trials.queue, *trials.queue.path_up()}
    found = [
        node
        for node in _below(trials.queue.root)
        if node not in way_up and any(node.kept.get(fr, 0) > 0 for fr in short)
    ]
    return sorted(found, key=lambda node: (-sum(node.local_capacity(fr) for fr in short), node.name))


def _below(node: CohortNode) -> Iterator[CohortNode]:
    yield node
    if isinstance(node, Cohort):
        for child in node.children:
            yield from _below(child)


def _change(node: CohortNode, fr: FlavorResource, field: str, before: int | None, after: int) -> FieldChange:
    flavor, resource = fr
    kind = "ClusterQueue" if isinstance(node, ClusterQueue) else "Cohort"
    return FieldChange(kind, node.name, field, before, after, resource, flavor)
