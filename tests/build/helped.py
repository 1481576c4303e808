"""A remedy carried out on the facts themselves, by hand: what somebody who reads it would do to the manifests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from msgspec.structs import replace

from build.queues import queues
from shoal.api.taints import Toleration
from shoal.engine.queues.facts import (
    ClusterQueueFacts,
    CohortFacts,
    FlavorQuotas,
    FlavorResource,
    PodSet,
    Quota,
    QuotaAssignment,
    ResourceGroup,
    WorkloadFacts,
)
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.quota_tree import CohortNode
from shoal.engine.queues.remedies import Effect, FieldChange, Remedy, RemedyKind, remedies
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Fact, Queues

KEY = "default/incoming"
"""The workload that waits."""
FIELDS = {"nominalQuota": "nominal", "borrowingLimit": "borrowing", "lendingLimit": "lending"}


@dataclass
class Help:
    """A world in which one workload, `incoming`, waits."""

    facts: list[Fact]
    holders: list[WorkloadFacts]
    incoming: WorkloadFacts
    settings: Settings = field(default_factory=Settings)

    def kueue(self) -> Kueue:
        found = Kueue(queues(*self.facts, *self.holders, settings=self.settings))
        found.put_workload(self.incoming, 0.0)
        return found

    def effect(self) -> Effect | None:
        """What a cycle does that looks at nobody else."""
        decisions = self.kueue().cycle(0.0)
        if any(each.workload == self.incoming.key for each in decisions.admitted):
            return Effect.ADMITTED
        told = any(each.beneficiary == self.incoming.key for each in decisions.preempted)
        evicted = [each for each in decisions.waiting if str(each.why) == "WaitingForPreemptedWorkloads"]
        return Effect.PREEMPTS if told or evicted else None

    def after(self, changes: Iterable[FieldChange]) -> Help:
        """The world with these changes made."""
        world = Help(list(self.facts), list(self.holders), self.incoming, self.settings)
        for change in changes:
            world.make(change)
        return world

    def make(self, change: FieldChange) -> None:
        if change.field in FIELDS:
            self.facts = [with_quota(fact, change) for fact in self.facts]
        elif change.field == "preemption.reclaimWithinCohort":
            self.facts = [_reclaiming(fact, change) for fact in self.facts]
        elif change.field in {"borrowed", "used"}:
            assert isinstance(change.before, int)
            assert isinstance(change.after, int)
            self._give_back(change.name, (change.flavor, change.resource), change.before - change.after)
        elif change.field == "active":
            self.holders = [facts for facts in self.holders if facts.key != change.name]
        elif change.field == "priority":
            assert isinstance(change.after, int)
            self.incoming = replace(self.incoming, priority=change.after)
        else:
            sets = [edited(each, change) if each.name == change.part else each for each in self.incoming.pod_sets]
            self.incoming = replace(self.incoming, pod_sets=tuple(sets))

    def _give_back(self, queue: str, fr: FlavorResource, amount: int) -> None:
        order = sorted(self.holders, key=lambda facts: (facts.priority, -facts.created_s, facts.key))
        for facts in order:
            admission = facts.admission
            if admission is None or admission.cluster_queue != queue:
                continue
            less, given = smaller(admission, fr, amount)
            amount -= given
            self.holders[self.holders.index(facts)] = replace(facts, admission=less)


def one_less(remedy: Remedy) -> Iterable[list[FieldChange]]:
    """The remedy with each of its changes a bit smaller, one at a time."""
    for index, change in enumerate(remedy.changes):
        rest = [*remedy.changes[:index], *remedy.changes[index + 1 :]]
        if not isinstance(change.after, int):
            yield rest
            continue
        before = change.before if isinstance(change.before, int) else 0
        after = change.after + (1 if before > change.after else -1)
        yield rest if after == before else [*rest, replace(change, after=after)]


def with_quota(fact: Fact, change: FieldChange) -> Fact:
    if not isinstance(fact, ClusterQueueFacts | CohortFacts) or type(fact).__name__ != f"{change.object}Facts":
        return fact
    if fact.name != change.name:
        return fact
    groups = tuple(_group(each, change) for each in fact.groups)
    known = {(flavor.name, name) for group in groups for flavor in group.flavors for name in flavor.quotas}
    if (change.flavor, change.resource) not in known:
        quota = FlavorQuotas(change.flavor, {change.resource: _quota(Quota(0), change)})
        groups = (*groups, ResourceGroup((change.resource,), (quota,)))
    return replace(fact, groups=groups)


def _reclaiming(fact: Fact, change: FieldChange) -> Fact:
    if not isinstance(fact, ClusterQueueFacts) or fact.name != change.name:
        return fact
    return replace(fact, preemption=replace(fact.preemption, reclaim=change.after))


def edited(pod_set: PodSet, change: FieldChange) -> PodSet:
    match change.field:
        case "minCount":
            assert isinstance(change.after, int)
            return replace(pod_set, min_count=change.after)
        case "count":
            assert isinstance(change.after, int)
            return replace(pod_set, count=change.after)
        case "nodeSelector":
            kept = {key: value for key, value in pod_set.selector.items() if f"{key}={value}" != change.before}
            return replace(pod_set, selector=kept)
        case "nodeAffinity":
            return replace(pod_set, affinity=None)
        case _:
            key, _, rest = str(change.after).partition("=")
            value, _, _ = rest.partition(":")
            return replace(pod_set, tolerations=(*pod_set.tolerations, Toleration(key, "Equal", value)))


def smaller(admission: QuotaAssignment, fr: FlavorResource, amount: int) -> tuple[QuotaAssignment, int]:
    flavor, resource = fr
    sets, given = [], 0
    for each in admission.pod_sets:
        part = min(amount - given, each.usage.get(resource, 0)) if each.flavors.get(resource) == flavor else 0
        usage = {**each.usage, resource: each.usage[resource] - part} if part else each.usage
        sets.append(replace(each, usage=usage))
        given += part
    return replace(admission, pod_sets=tuple(sets)), given


def _group(group: ResourceGroup, change: FieldChange) -> ResourceGroup:
    return replace(group, flavors=tuple(_flavor(each, change) for each in group.flavors))


def _flavor(flavor: FlavorQuotas, change: FieldChange) -> FlavorQuotas:
    quota = flavor.quotas.get(change.resource)
    if flavor.name != change.flavor or quota is None:
        return flavor
    return replace(flavor, quotas={**flavor.quotas, change.resource: _quota(quota, change)})


def _quota(quota: Quota, change: FieldChange) -> Quota:
    return replace(quota, **{FIELDS[change.field]: change.after})


def world(*facts: Fact | WorkloadFacts, settings: Settings | None = None) -> Help:
    """The workload without an admission waits."""
    workloads = [each for each in facts if isinstance(each, WorkloadFacts)]
    (incoming,) = (each for each in workloads if each.admission is None)
    holders = [each for each in workloads if each.admission is not None]
    others = [each for each in facts if not isinstance(each, WorkloadFacts)]
    return Help(others, holders, incoming, settings or Settings())


def asked(given_: Help, kind: RemedyKind | None = None) -> list[Remedy]:
    found = remedies(given_.kueue(), given_.incoming.key)
    return [each for each in found if kind in {None, each.kind}]


def told(found: Iterable[Remedy]) -> list[list[tuple[str, str, object, object]]]:
    return [[(each.name, each.field, each.before, each.after) for each in remedy.changes] for remedy in found]


def portrait(kueue: Kueue) -> object:
    """Everything that the queues know, orders of dicts and the dicts themselves included."""
    world_ = kueue.queues
    nodes: list[CohortNode] = [*world_.cohorts.values(), *world_.cluster_queues.values()]
    return (
        [_node(each) for each in nodes],
        [(key, id(held), repr(held.facts), held.evicted, held.usage) for key, held in world_.held.items()],
        [[*queue.held.items()] for queue in world_.cluster_queues.values()],
        _counters(world_),
        [_domains(world_, name) for name in world_.flavors],
        [repr(each) for each in kueue.states()],
        repr(kueue._active_trees.active_queues()),
        kueue.is_idle,
        repr(kueue.usage._accounts),
        kueue.reservations and repr(list(kueue.reservations.by_root.items())),
    )


def _node(each: CohortNode) -> object:
    sums = (each.nominal, each.borrowing, each.kept, each.subtree, each.usage, each._lending)
    return [(id(one), list(one.items())) for one in sums], each.parent


def _domains(world_: Queues, name: str) -> object:
    forest = world_.forest(name)
    return None if forest is None else {resource: column.tolist() for resource, column in forest.free.items()}


def _counters(world_: Queues) -> object:
    return world_.generation, world_.nodes_generation, [each.generation for each in world_.cluster_queues.values()]
