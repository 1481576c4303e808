"""Workloads of several pod sets: what earlier ones leave to later ones, and which share their flavors."""

from __future__ import annotations

from build.flavors import Oracle, choose, flavors_of, only_flavor, pods
from build.queues import cluster_queue, flavor, group, hold_usage, limited, name_of, pod_set, queues, quotas, topology
from shoal.engine.queues.facts import PodSet, PodSetAdmission, QuotaAssignment
from shoal.engine.queues.flavors.modes import Mode, PreemptionPossibility
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Queues
from shoal.engine.queues.topology_facts import TopologyRequest

GPU = name_of("gpu")
TOGETHER = TopologyRequest(group="crew")
ONE_RACK = TopologyRequest(required="rack", group="crew")


def two_flavors(one: int = 4, two: int = 10, **more: int) -> Queues:
    return queues(cluster_queue("q", quotas("one", cpu=one, **more), quotas("two", cpu=two, **more)))


# One after the other


def test_a_pod_set_sees_what_earlier_ones_were_given() -> None:
    found = choose(two_flavors(), "q", pod_set("a", cpu=3), pod_set("b", cpu=3), pod_set("c", cpu=1))
    assert flavors_of(found) == {"a": {"cpu": "one"}, "b": {"cpu": "two"}, "c": {"cpu": "one"}}
    assert found.usage == {("one", "cpu"): 4000, ("two", "cpu"): 3000}


def test_together_they_may_be_more_than_the_queue_could_ever_give() -> None:
    found = choose(two_flavors(one=4, two=0), "q", pod_set("a", cpu=3), pod_set("b", cpu=2))
    assert (found.mode, found.why) == (Mode.NO_FIT, Wait.EXCEEDS_MAX_QUOTA)
    assert "previously considered podsets requests (3) + current podset request (2) > maximum capacity (4)" in (
        found.message
    )


def test_after_a_pod_set_without_flavor_nobody_is_asked() -> None:
    oracle = Oracle()
    found = choose(two_flavors(), "q", pod_set("a", cpu=1), pod_set("b", cpu=99), pod_set("c", cpu=1), oracle=oracle)
    assert flavors_of(found) == {"a": {"cpu": "one"}, "b": {}}
    assert found.mode is Mode.NO_FIT
    assert oracle.asked == []


def test_the_oracle_is_asked_for_all_pod_sets_so_far() -> None:
    world = queues(cluster_queue("q", cpu=4))
    hold_usage(world, "q", cpu=3)
    oracle = Oracle()
    found = choose(world, "q", pod_set("a", cpu=1), pod_set("b", cpu=2), oracle=oracle)
    assert oracle.asked == [("default", "cpu", 3000)]
    assert [each.mode for each in found.pod_sets] == [Mode.FIT, Mode.PREEMPT]
    assert found.mode is Mode.PREEMPT
    assert found.to_preempt == {("default", "cpu")}


def test_a_workload_borrows_as_much_as_the_worst_of_its_pod_sets() -> None:
    world = queues(cluster_queue("q", cohort="all", cpu=4), cluster_queue("n", cohort="all", cpu=4))
    assert choose(world, "q", pod_set("a", cpu=4)).borrow == 0
    assert choose(world, "q", pod_set("a", cpu=4), pod_set("b", cpu=1)).borrow == 1


def test_resource_groups_are_searched_each_by_itself() -> None:
    world = queues(
        flavor("mi", {"maker": "a"}),
        cluster_queue(
            "q", group(quotas("slow", cpu=2), quotas("fast", cpu=8)), group(quotas("mi", gpu=1), quotas("h", gpu=8))
        ),
    )
    assert flavors_of(choose(world, "q", pods(cpu=4, gpu=2))) == {"main": {"cpu": "fast", GPU: "h"}}
    assert flavors_of(choose(world, "q", pods(cpu=4, gpu=9))) == {"main": {}}


# What counts


def test_pods_count_only_where_the_queue_counts_them() -> None:
    assert choose(queues(cluster_queue("q", cpu=4)), "q", pods(3, cpu=1)).usage == {("default", "cpu"): 3000}
    world = queues(cluster_queue("q", cpu=4, pods=2))
    assert choose(world, "q", pods(3, cpu=1)).why is Wait.EXCEEDS_MAX_QUOTA
    assert choose(world, "q", pods(2, cpu=1)).usage == {("default", "cpu"): 2000, ("default", "pods"): 2}


def test_pods_that_are_no_longer_needed_do_not_count() -> None:
    world = queues(cluster_queue("q", cpu=10, pods=3))
    found = choose(world, "q", pods(5, cpu=1), reclaimable={"main": 2})
    assert found.admission("q") == QuotaAssignment(
        "q", (PodSetAdmission("main", 3, {"cpu": "default", "pods": "default"}, {"cpu": 3000, "pods": 3}),)
    )


def test_a_resource_the_queue_does_not_know_is_refused_unless_none_of_it_is_wanted() -> None:
    world = queues(cluster_queue("q", cpu=4))
    found = choose(world, "q", pods(cpu=1, gpu=1))
    assert (found.mode, found.why) == (Mode.NO_FIT, Wait.NO_FLAVOR)
    assert found.message.endswith(f"resource {GPU} unavailable in ClusterQueue")
    assert flavors_of(choose(world, "q", pods(cpu=1, gpu=0))) == {"main": {"cpu": "default"}}
    assert choose(world, "q", pods(gpu=0)).mode is Mode.FIT


def test_a_resource_the_queue_does_not_know_may_be_overlooked() -> None:
    world = queues(cluster_queue("q", cpu=4), settings=Settings(ignore_undeclared=True))
    found = choose(world, "q", pods(cpu=1, gpu=1))
    assert (found.mode, found.usage) == (Mode.FIT, {("default", "cpu"): 1000})
    assert found.admission("q").pod_sets[0].usage == {"cpu": 1000}


def test_none_of_a_known_resource_takes_a_flavor_all_the_same() -> None:
    assert flavors_of(choose(two_flavors(gpu=0), "q", pods(cpu=1, gpu=0))) == {"main": {"cpu": "one", GPU: "one"}}


def test_pods_that_ask_for_nothing_fit_and_a_workload_without_pods_does_not() -> None:
    world = queues(cluster_queue("q", cpu=4))
    assert choose(world, "q").mode is Mode.NO_FIT
    found = choose(world, "q", PodSet())
    assert (found.mode, found.usage, flavors_of(found)) == (Mode.FIT, {}, {"main": {}})


def test_sums_beyond_64_bits_are_too_much_and_not_too_little() -> None:
    world = queues(cluster_queue("q", cpu=4))
    found = choose(world, "q", pod_set("a", count=2**31, cpu=2**52), pod_set("b", count=2**31, cpu=2**52))
    assert found.why is Wait.EXCEEDS_MAX_QUOTA


# Groups


def test_a_group_takes_one_flavor_that_has_room_for_all_of_it() -> None:
    leader, workers = (
        pod_set("leader", cpu=1, topology=TOGETHER),
        pod_set("workers", 4, cpu=1, gpu=1, topology=TOGETHER),
    )
    world = two_flavors(one=4, two=5, gpu=4)
    assert flavors_of(choose(world, "q", leader, workers)) == {
        "leader": {"cpu": "two"},
        "workers": {"cpu": "two", GPU: "two"},
    }
    assert choose(two_flavors(one=4, two=4, gpu=4), "q", leader, workers).mode is Mode.NO_FIT


def test_a_group_that_finds_no_flavor_leaves_none_to_any_of_its_pod_sets() -> None:
    found = choose(
        two_flavors(one=4, two=4, gpu=4),
        "q",
        pod_set("leader", cpu=1, topology=TOGETHER),
        pod_set("workers", 4, cpu=1, gpu=1, topology=TOGETHER),
    )
    assert flavors_of(found) == {"leader": {}, "workers": {}}
    assert [each.code for each in found.pod_sets] == [Wait.EXCEEDS_MAX_QUOTA] * 2


def test_a_flavor_must_suit_every_pod_set_of_a_group() -> None:
    world = queues(
        flavor("one", {"type": "one"}),
        flavor("two", {"type": "two"}),
        cluster_queue("q", quotas("one", cpu=9), quotas("two", cpu=9)),
    )
    picky = pod_set("b", cpu=1, topology=TOGETHER, selector={"type": "two"})
    found = choose(world, "q", pod_set("a", cpu=1, topology=TOGETHER), picky)
    assert flavors_of(found) == {"a": {"cpu": "two"}, "b": {"cpu": "two"}}


def test_pod_sets_keep_their_order_though_groups_are_settled_as_a_whole() -> None:
    found = choose(
        two_flavors(one=4, two=9),
        "q",
        pod_set("a", cpu=2, topology=TOGETHER),
        pod_set("b", cpu=3),
        pod_set("c", cpu=2, topology=TOGETHER),
    )
    assert list(flavors_of(found).items()) == [("a", {"cpu": "one"}), ("b", {"cpu": "two"}), ("c", {"cpu": "one"})]


# Pods that ask for nothing that counts, and topology


def rack_queue(*names: str) -> Queues:
    return queues(
        topology("racks", "rack"),
        *(flavor(name, {"type": name}, topology="racks") for name in names),
        cluster_queue("q", *(quotas(name, gpu=4) for name in names)),
    )


def test_a_leader_that_asks_for_nothing_goes_where_its_workers_go() -> None:
    workers = pod_set("workers", 3, gpu=1, topology=ONE_RACK)
    found = choose(rack_queue("small", "big"), "q", pod_set("leader", topology=ONE_RACK), workers)
    assert flavors_of(found) == {"leader": {GPU: "small"}, "workers": {GPU: "small"}}
    assert found.usage == {("small", GPU): 3}
    assert found.admission("q").pod_sets[0] == PodSetAdmission("leader", 1, {GPU: "small"}, {})


def test_such_a_leader_is_no_reason_to_wait_where_there_is_no_topology() -> None:
    world = queues(cluster_queue("q", gpu=4))
    hold_usage(world, "q", gpu=4)
    leader, workers = pod_set("leader", topology=TOGETHER), pod_set("workers", 3, gpu=1, topology=TOGETHER)
    found = choose(world, "q", leader, workers)
    assert [each.mode for each in found.pod_sets] == [Mode.FIT, Mode.PREEMPT]
    assert found.mode is Mode.PREEMPT


def test_alone_it_takes_the_only_flavor_and_of_several_none() -> None:
    asks = pod_set(topology=TopologyRequest(required="rack"))
    assert only_flavor(choose(rack_queue("small"), "q", asks)) == "small"
    assert only_flavor(choose(rack_queue("small", "big"), "q", asks)) is None


# What the round does with an answer


def test_a_pod_set_that_topology_turns_away_is_lowered() -> None:
    world = queues(cluster_queue("q", cpu=4, gpu=4))
    found = choose(world, "q", pods(cpu=1, gpu=1))
    found.pod_sets[0].lower(Mode.PREEMPT, "no rack has room", Wait.TOPOLOGY)
    assert (found.mode, found.why) == (Mode.PREEMPT, Wait.TOPOLOGY)
    assert found.to_preempt == {("default", "cpu"), ("default", GPU)}
    assert found.message == "couldn't assign flavors to pod set main: no rack has room"
    found.pod_sets[0].lower(Mode.NO_FIT, "no rack is large enough", Wait.TOPOLOGY)
    assert found.mode is Mode.NO_FIT


def test_lowering_never_raises() -> None:
    world = queues(cluster_queue("q", cohort="all", cpu=limited(4)))
    hold_usage(world, "q", cpu=4)
    found = choose(world, "q", pods(cpu=1), oracle=Oracle({"default": PreemptionPossibility(Mode.NO_CANDIDATES, 0)}))
    found.pod_sets[0].lower(Mode.PREEMPT, "no rack has room", Wait.TOPOLOGY)
    assert found.pod_sets[0].flavors["cpu"].mode is Mode.NO_CANDIDATES
