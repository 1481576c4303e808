"""What would help where places are missing and not quota: who would have to end, and what nodes cannot tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from build.asking import runs
from build.helped import KEY, portrait, told, world
from build.queues import (
    cluster_queue,
    flavor,
    node,
    pod_set,
    queues,
    quotas,
    topology,
    workload,
)
from shoal.engine.queues.facts import QuotaAssignment, WorkloadFacts
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.proof import Claim, Proven
from shoal.engine.queues.remedies import Effect, RemedyKind, SearchLimit, remedies
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Fact
from shoal.engine.queues.topology_facts import TopologyRequest

HOST = "kubernetes.io/hostname"


def test_without_a_domain_free_the_workload_in_it_would_have_to_end() -> None:
    wants = TopologyRequest(required="rack")
    facts: list[Fact] = [
        topology("dc", "rack", HOST),
        flavor("tas", topology="dc"),
        *(node(f"x{index}", {"rack": f"r{index}"}, gpu=4) for index in (1, 2)),
        cluster_queue("a", quotas("tas", gpu=20)),
    ]
    kueue = Kueue(queues(*facts))
    for name, priority in (("one", 1), ("two", 0)):
        kueue.put_workload(workload(name, "a", pod_set(gpu=3, topology=wants), priority=priority), 0.0)
        kueue.cycle(0.0)
    kueue.put_workload(workload("incoming", "a", pod_set(gpu=2, topology=wants)), 0.0)
    kueue.cycle(0.0)
    before = portrait(kueue)
    found = remedies(kueue, KEY)
    assert [(each.kind, [change.name for change in each.changes]) for each in found] == [
        (RemedyKind.ENDED, ["default/two"])
    ]
    assert portrait(kueue) == before


class Nodes:
    """Places for so many pods at a time; every holder has as many as its name says."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.asked = 0

    def admit(self, facts: WorkloadFacts, admission: QuotaAssignment, claims: Sequence[Claim] = ()) -> Proven:
        raise AssertionError("asking must not take places")

    def would_fit(
        self, facts: WorkloadFacts, admission: QuotaAssignment, gone: Iterable[str], claims: Sequence[Claim] = ()
    ) -> bool:
        self.asked += 1
        freed = sum(int(key.rpartition("-")[2]) for key in gone)
        return sum(each.count for each in admission.pod_sets) <= self.room + freed


def test_where_places_are_missing_those_who_have_to_end_are_as_few_as_will_do() -> None:
    here = world(
        cluster_queue("a", gpu=20),
        cluster_queue("b", gpu=20),
        runs("w-1", "a", gpu=1),
        runs("w-2", "b", gpu=2),
        runs("w-4", "b", gpu=4, priority=5),
        workload("incoming", "a", pod_set(count=5, gpu=1)),
    )
    found = remedies(here.kueue(), KEY, prover=Nodes(2))
    assert [(each.kind, [str(change.name) for change in each.changes]) for each in found] == [
        (RemedyKind.FEWER_PODS, [KEY]),
        (RemedyKind.ENDED, ["default/w-1", "default/w-2"]),
    ]
    assert told(found)[0] == [(KEY, "minCount", 5, 2)]


def test_quota_given_back_makes_no_room_on_nodes_but_a_workload_that_ends_does() -> None:
    here = world(cluster_queue("a", gpu=4), runs("w-4", "a", gpu=4), workload("incoming", "a", pod_set(count=3, gpu=1)))
    found = remedies(here.kueue(), KEY, prover=Nodes(0))
    assert [(each.kind, [str(change.name) for change in each.changes]) for each in found] == [
        (RemedyKind.ENDED, ["default/w-4"])
    ]


def test_where_quota_alone_decides_nodes_are_not_asked() -> None:
    setting = Settings(placement="quotaOnly")
    here = world(cluster_queue("a", gpu=1), workload("incoming", "a", gpu=2), settings=setting)
    nodes = Nodes(0)
    assert told(remedies(here.kueue(), KEY, prover=nodes)) == [[("a", "nominalQuota", 1, 2)]]
    assert nodes.asked == 0


def test_pods_that_would_be_others_are_not_said_to_have_places() -> None:
    here = world(
        flavor("h100", {"model": "h100"}),
        cluster_queue("a", quotas("h100", gpu=8)),
        workload("incoming", "a", pod_set(gpu=4, selector={"model": "a100"})),
    )
    (found,) = remedies(here.kueue(), KEY, prover=Nodes(0))
    assert (found.kind, found.effect) == (RemedyKind.FLAVOR, Effect.ADMITTED_BY_QUOTA)


def test_a_search_that_is_cut_tells_whose_end_is_enough_and_that_fewer_may_do() -> None:
    holders = [runs(f"w{index}-1", "a", gpu=1) for index in range(8)]
    here = world(cluster_queue("a", gpu=20), *holders, workload("incoming", "a", pod_set(count=4, gpu=1)))

    def asked(trials: int) -> tuple[list[bool], int, bool]:
        """What is told of those who have to end: whether they are the fewest; how many; whether the search was cut."""
        budget = SearchLimit(trials)
        found = remedies(here.kueue(), KEY, prover=Nodes(0), budget=budget)
        ended = [each for each in found if each.kind is RemedyKind.ENDED]
        return [each.is_least for each in ended], sum(len(each.changes) for each in ended), budget.is_short

    assert asked(200) == ([True], 4, False)
    seen = [asked(trials) for trials in range(30)]
    assert seen[0] == ([], 0, True)
    assert all(is_short for least, _, is_short in seen if least == [False])
    counts = [count for least, count, _ in seen if least == [False]]
    assert counts[0] == 8, "all of them are tried first"
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == 4
