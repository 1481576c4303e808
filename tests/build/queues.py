"""Small worlds of queues: flavors, cluster queues, cohorts and workloads in one line each.

Amounts are what a person would write: `cpu=2.5` is two and a half cores, `memory="4Gi"` four gibibytes, `gpu=1` one
GPU; any other word is a resource of that name. A quota is such an amount, or `limited(10, borrow=5, lend=2)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from shoal.api.node_affinity import NodeSelector
from shoal.api.selectors import Selector
from shoal.api.taints import Taint, Toleration
from shoal.engine.queues.admission_checks import AdmissionCheckRule
from shoal.engine.queues.clusterqueue import AdmittedWorkload
from shoal.engine.queues.facts import (
    PODS,
    Amounts,
    ClusterQueueFacts,
    CohortFacts,
    FlavorFacts,
    FlavorQuotas,
    Fungibility,
    LocalQueueFacts,
    PodSet,
    PodSetAdmission,
    PreemptionRules,
    Quota,
    QuotaAssignment,
    ResourceGroup,
    Stop,
    WorkloadFacts,
)
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Fact, Queues
from shoal.engine.queues.topology_facts import QueueNode, TopologyLevels, TopologyRequest
from shoal.units.quantity import Quantity

Amount = int | float | str
DEFAULT = "default"
"""The flavor, where none is named."""
NAMES = {"gpu": "nvidia.com/gpu"}
"""What a word stands for, where it is not the resource's own name."""


class Limited(NamedTuple):
    nominal: Amount
    borrow: Amount | None = None
    lend: Amount | None = None


def limited(nominal: Amount, borrow: Amount | None = None, lend: Amount | None = None) -> Limited:
    """A quota with limits."""
    return Limited(nominal, borrow, lend)


def name_of(word: str) -> str:
    return NAMES.get(word, word)


def amount_of(word: str, amount: Amount) -> int:
    """In the engine's units: thousandths of a core, else base units."""
    quantity = Quantity.parse(str(amount))
    return quantity.milli_value() if word == "cpu" else quantity.value()


def amounts(given: Mapping[str, Amount]) -> Amounts:
    return {name_of(word): amount_of(word, amount) for word, amount in given.items()}


# Quotas


def quotas(flavor_name: str = DEFAULT, **resources: Amount | Limited) -> FlavorQuotas:
    """What there is of one flavor."""
    return FlavorQuotas(flavor_name, {name_of(word): _quota(word, given) for word, given in resources.items()})


def group(*flavors: FlavorQuotas) -> ResourceGroup:
    """Flavors in the order in which they are tried; it covers what the first names."""
    return ResourceGroup(tuple(flavors[0].quotas), flavors)


def _quota(word: str, given: Amount | Limited) -> Quota:
    limits = given if isinstance(given, Limited) else Limited(given)
    borrowing, lending = (None if limit is None else amount_of(word, limit) for limit in (limits.borrow, limits.lend))
    return Quota(amount_of(word, limits.nominal), borrowing, lending)


def _groups(
    given: tuple[ResourceGroup | FlavorQuotas, ...], resources: Mapping[str, Amount | Limited]
) -> tuple[ResourceGroup, ...]:
    """Groups as they are; flavors make one group; plain resources are quotas of the default flavor."""
    groups = [each for each in given if isinstance(each, ResourceGroup)]
    flavors = [each for each in given if isinstance(each, FlavorQuotas)]
    if resources:
        flavors.append(quotas(DEFAULT, **resources))
    return (*groups, group(*flavors)) if flavors else tuple(groups)


# Facts


def flavor(
    name: str = DEFAULT,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Taint] = (),
    tolerations: Iterable[Toleration] = (),
    topology: str = "",
) -> FlavorFacts:
    return FlavorFacts(name, dict(labels or {}), tuple(taints), tuple(tolerations), topology)


def cluster_queue(
    name: str,
    *groups: ResourceGroup | FlavorQuotas,
    cohort: str = "",
    rules: PreemptionRules | None = None,
    fungibility: Fungibility | None = None,
    strict: bool = False,
    weight: float = 1.0,
    by_usage: bool = False,
    stop: Stop = "None",
    checks: Iterable[str] = (),
    namespaces: Selector = Selector.EVERYTHING,
    **resources: Amount | Limited,
) -> ClusterQueueFacts:
    return ClusterQueueFacts(
        name,
        cohort=cohort,
        groups=_groups(groups, resources),
        strategy="StrictFIFO" if strict else "BestEffortFIFO",
        namespaces=namespaces,
        fungibility=fungibility or Fungibility(),
        preemption=rules or PreemptionRules(),
        checks=tuple(AdmissionCheckRule(check) for check in checks),
        stop=stop,
        weight=weight,
        by_usage=by_usage,
    )


def cohort(
    name: str,
    *groups: ResourceGroup | FlavorQuotas,
    parent: str = "",
    weight: float = 1.0,
    **resources: Amount | Limited,
) -> CohortFacts:
    return CohortFacts(name, parent, _groups(groups, resources), weight)


def topology(name: str, *levels: str) -> TopologyLevels:
    """Levels outermost first."""
    return TopologyLevels(name, levels)


def node(name: str, labels: Mapping[str, str] | None = None, pods: int = 110, **resources: Amount) -> QueueNode:
    """A ready node; its host name is among its labels."""
    return QueueNode(name, {"kubernetes.io/hostname": name, **(labels or {})}, {PODS: pods, **amounts(resources)})


def pod_set(
    name: str = "main",
    count: int = 1,
    *,
    least: int | None = None,
    topology: TopologyRequest | None = None,
    selector: Mapping[str, str] | None = None,
    affinity: NodeSelector | None = None,
    tolerations: Iterable[Toleration] = (),
    **resources: Amount,
) -> PodSet:
    """Pods of one template; the resources are those of one pod."""
    return PodSet(
        name,
        count,
        least,
        amounts(resources),
        selector=dict(selector or {}),
        affinity=affinity,
        tolerations=tuple(tolerations),
        topology=topology,
    )


def workload(
    name: str,
    queue: str = "",
    *pod_sets: PodSet,
    priority: int = 0,
    created: float = 0.0,
    count: int = 1,
    namespace: str = "default",
    **resources: Amount,
) -> WorkloadFacts:
    """A waiting workload. `queue` is the name of a local queue of its namespace; plain resources make one pod set."""
    plain = PodSet("main", count, requests=amounts(resources))
    sets = (*pod_sets, plain) if resources or not pod_sets else pod_sets
    return WorkloadFacts(
        f"{namespace}/{name}",
        queue=f"{namespace}/{queue}" if queue else "",
        priority=priority,
        created_s=created,
        uid=name,
        pod_sets=sets,
    )


def admitted(
    facts: WorkloadFacts, cluster_queue_name: str, flavor_name: str = DEFAULT, at: float = 0.0
) -> WorkloadFacts:
    """The same workload, holding what it asks for, all of it in one flavor."""
    sets = tuple(
        PodSetAdmission(
            each.name,
            each.count,
            dict.fromkeys(each.requests, flavor_name),
            {resource: amount * each.count for resource, amount in each.requests.items()},
        )
        for each in facts.pod_sets
    )
    return replace(
        facts, admission=QuotaAssignment(cluster_queue_name, sets), admitted=True, reserved_s=at, admitted_s=at
    )


# Worlds


def queues(*facts: Fact | WorkloadFacts, settings: Settings | None = None) -> Queues:
    """All of it together. Flavors that quotas name exist without being written down; every cluster queue has a local
    queue of its name in the namespace `default`. Workloads must be admitted ones."""
    world = Queues(settings)
    for fact in facts:
        if isinstance(fact, ClusterQueueFacts | CohortFacts):
            for name in (each.name for group_ in fact.groups for each in group_.flavors):
                if name not in world.flavors:
                    world.put(FlavorFacts(name))
        if isinstance(fact, ClusterQueueFacts):
            world.put(LocalQueueFacts(f"default/{fact.name}", fact.name))
    for fact in facts:
        if not isinstance(fact, WorkloadFacts):
            world.put(fact)
    world.put_namespace("default", {})
    world.refresh()
    for fact in facts:
        if isinstance(fact, WorkloadFacts):
            hold(world, fact)
    return world


def hold(world: Queues, facts: WorkloadFacts) -> AdmittedWorkload:
    """An admitted workload takes its place."""
    held = world.hold(facts, facts.created_s)
    assert held is not None, f"{facts.key} is admitted to no cluster queue that is there"
    return held


def hold_usage(
    world: Queues, cluster_queue_name: str, flavor_name: str = DEFAULT, *, priority: int = 0, **resources: Amount
) -> AdmittedWorkload:
    """Somebody, named after the place, uses so much."""
    name = f"usage-{cluster_queue_name}-{flavor_name}-{len(world.held)}"
    facts = workload(name, cluster_queue_name, PodSet(requests=amounts(resources)), priority=priority)
    return hold(world, admitted(facts, cluster_queue_name, flavor_name))
