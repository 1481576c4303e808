"""Adds resources that a workload requests to the ones that its ClusterQueue counts, with the quota that it needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import structs

from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.facts import ClusterQueueFacts, FlavorQuotas, Quota, ResourceGroup, WorkloadFacts
from shoal.engine.queues.flavors.capacity import shown
from shoal.engine.queues.workloads import totals_of
from shoal.views.remedies import Remedy
from shoal.views.remedy_commands import covering_command


def covering(
    queue: ClusterQueue, workload: WorkloadFacts, resources: Sequence[str], *, is_living: bool
) -> tuple[Remedy, ClusterQueueFacts] | None:
    """The change, and the queue with it; it has to be tried. None for a queue without resources."""
    if not queue.facts.groups:
        return None
    asked: Counter[str] = Counter()
    for total in totals_of(workload):
        asked.update({name: amount for name, amount in total.requests.items() if name in resources})
    group, *others = queue.facts.groups
    quotas = {name: Quota(asked[name]) for name in resources}
    flavors = tuple(FlavorQuotas(each.name, {**each.quotas, **quotas}) for each in group.flavors)
    wider = ResourceGroup((*group.resources, *resources), flavors)
    amounts = {name: shown(name, asked[name]) for name in resources}
    names = " and ".join(f"{name} with nominalQuota {amount}" for name, amount in amounts.items())
    words = f"Add {names} to coveredResources and to each flavor of the first resource group of ClusterQueue"
    commands = (covering_command(queue.name, len(flavors), amounts),) if is_living else ()
    facts = structs.replace(queue.facts, groups=(wider, *others))
    return Remedy(f"{words} {queue.name}.", commands), facts
