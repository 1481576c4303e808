"""Finds remedies that allow another flavor: the pods' own conditions that exclude it.

The nodes are asked about pods as they are, not as they would be, so such a remedy is proven by quota alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import structs

from shoal.api.taints import Toleration, untolerated
from shoal.engine.queues.facts import Amounts, FlavorFacts, PodSet
from shoal.engine.queues.flavors.eligibility import why_barred
from shoal.engine.queues.remedies.hypothetical_facts import HypotheticalFacts
from shoal.engine.queues.remedies.minimum_search import MinimumSearch, smallest
from shoal.engine.queues.remedies.owner_changes import with_pod_set
from shoal.engine.queues.remedies.quota import nominal
from shoal.engine.queues.remedies.remedy import FieldChange, Remedy, RemedyKind
from shoal.engine.queues.remedies.trials import Trials
from shoal.engine.queues.workloads import totals_of

Edit = Callable[[PodSet], PodSet]


def other_flavors(trials: Trials) -> Iterator[Remedy | None]:
    """Each flavor of the queue that some pod set may not have."""
    for flavor in _barred(trials):
        yield smallest(trials, RemedyKind.FLAVOR, _edits(trials, flavor))


def other_flavors_with_quota(trials: Trials) -> Iterator[Remedy | None]:
    """The same where the flavor lacks quota as well: both at once."""
    for flavor in _barred(trials):
        edits = _edits(trials, flavor)
        if edits:
            yield smallest(trials, RemedyKind.QUOTA, [*edits, *_quota(trials, flavor)])


def _barred(trials: Trials) -> Iterator[FlavorFacts]:
    queues, queue = trials.queues, trials.queue
    sets = trials.waiting.facts.pod_sets
    for name in dict.fromkeys(flavor.name for group in queue.facts.groups for flavor in group.flavors):
        flavor = queues.flavors.get(name)
        if flavor is not None and any(why_barred(queues, queue, name, each) for each in sets):
            yield flavor


def _edits(trials: Trials, flavor: FlavorFacts) -> list[MinimumSearch]:
    return [dial for each in trials.waiting.facts.pod_sets for dial in _dials(trials, each, flavor)]


def _quota(trials: Trials, flavor: FlavorFacts) -> Iterator[MinimumSearch]:
    """What is short if all pods take this flavor."""
    asked: Amounts = {}
    for total in totals_of(trials.waiting.facts):
        for resource, amount in total.requests.items():
            asked[resource] = asked.get(resource, 0) + amount
    for group in trials.queue.facts.groups:
        if any(each.name == flavor.name for each in group.flavors):
            for resource in group.resources:
                fr = (flavor.name, resource)
                short = asked.get(resource, 0) - trials.queue.available(fr)
                if short > 0 and resource in asked:
                    yield nominal(trials.queue, fr, short)


def _dials(trials: Trials, pod_set: PodSet, flavor: FlavorFacts) -> Iterator[MinimumSearch]:
    """One for each condition that excludes the flavor."""
    for key, value in pod_set.selector.items():
        if flavor.labels.get(key, value) != value:
            yield _dial(trials, pod_set, flavor, ("nodeSelector", f"{key}={value}", None), _drop_selector(key))
    affinity = structs.replace(pod_set, selector={}, tolerations=(Toleration(operator="Exists"),))
    if pod_set.affinity is not None and why_barred(trials.queues, trials.queue, flavor.name, affinity):
        yield _dial(trials, pod_set, flavor, ("nodeAffinity", None, None), _drop_affinity)
    tolerations = pod_set.tolerations + flavor.tolerations
    while (taint := untolerated(flavor.taints, tolerations)) is not None:
        toleration = Toleration(taint.key, "Equal", taint.value, taint.effect)
        yield _dial(trials, pod_set, flavor, ("tolerations", None, str(taint)), _tolerate(toleration))
        tolerations = (*tolerations, toleration)


def _dial(
    trials: Trials, pod_set: PodSet, flavor: FlavorFacts, reported: tuple[str, str | None, str | None], edit: Edit
) -> MinimumSearch:
    field, before, after = reported
    change = FieldChange(
        "Workload", trials.waiting.facts.key, field, before, after, flavor=flavor.name, part=pod_set.name
    )

    def apply(scene: HypotheticalFacts, _amount: int) -> None:
        now = next(each for each in scene.facts.pod_sets if each.name == pod_set.name)
        scene.facts = with_pod_set(scene.facts, edit(now))
        scene.is_placed = False

    return MinimumSearch(1, apply, lambda _amount: change)


def _drop_selector(key: str) -> Edit:
    return lambda pod_set: structs.replace(
        pod_set, selector={name: value for name, value in pod_set.selector.items() if name != key}
    )


def _drop_affinity(pod_set: PodSet) -> PodSet:
    return structs.replace(pod_set, affinity=None)


def _tolerate(toleration: Toleration) -> Edit:
    return lambda pod_set: structs.replace(pod_set, tolerations=(*pod_set.tolerations, toleration))
