"""Computes what is missing, for each way to assign flavors to the workload's pods.

Only a guess of where to turn: what is missing by the sums. Whether it is enough is tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product

from shoal.engine.queues.facts import ResourceGroup, Usage
from shoal.engine.queues.flavors.eligibility import why_barred
from shoal.engine.queues.remedies.trials import Trials
from shoal.engine.queues.workloads import Total, totals_of

_MOST_WAYS = 8
"""Pod sets and resource groups multiply; more would not be read."""

Short = Usage
"""(flavor, resource) -> how much more would have to be available."""


def shortages(trials: Trials) -> list[Short]:
    """In the order in which the flavors are tried, without those to which nothing is short."""
    found: list[Short] = []
    for usage in islice(_ways(trials), _MOST_WAYS):
        missing = {fr: amount - trials.queue.available(fr) for fr, amount in usage.items()}
        short = {fr: amount for fr, amount in missing.items() if amount > 0}
        if short and short not in found:
            found.append(short)
    return found


def _ways(trials: Trials) -> Iterator[Usage]:
    """What would be charged, for each choice of flavors."""
    queue = trials.queue
    totals = totals_of(trials.waiting.facts)
    places = [
        (total, group) for total in totals for group in queue.facts.groups if set(group.resources) & set(total.requests)
    ]
    for flavors in product(*(_flavors(trials, total, group) for total, group in places)):
        usage: Usage = {}
        for (total, group), flavor in zip(places, flavors, strict=True):
            for resource in group.resources:
                if resource in total.requests:
                    fr = (flavor, resource)
                    usage[fr] = usage.get(fr, 0) + total.requests[resource]
        yield usage


def _flavors(trials: Trials, total: Total, group: ResourceGroup) -> list[str]:
    return [
        flavor.name
        for flavor in group.flavors
        if not why_barred(trials.queues, trials.queue, flavor.name, total.pod_set)
    ]
