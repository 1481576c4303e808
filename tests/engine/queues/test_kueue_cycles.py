"""Cycles of the discipline: who is admitted, who yields, who is looked at again and when."""

from __future__ import annotations

from msgspec.structs import replace

from build.queues import (
    admitted,
    cluster_queue,
    cohort,
    flavor,
    limited,
    node,
    pod_set,
    queues,
    quotas,
    topology,
    workload,
)
from shoal.api.selectors import LabelSelector, Selector
from shoal.engine.queues.admission_checks import PROVISIONING, AdmissionCheckFacts
from shoal.engine.queues.decisions import Decisions
from shoal.engine.queues.facts import LocalQueueFacts, PreemptionRules, WorkloadFacts
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Fact
from shoal.engine.queues.topology_facts import TopologyRequest

LOWER = PreemptionRules(within="LowerPriority")
RECLAIM = PreemptionRules(within="LowerPriority", reclaim="Any")


def kueue(*facts: Fact | WorkloadFacts, settings: Settings | None = None) -> Kueue:
    """The world of these facts; workloads without an admission wait."""
    held = [each for each in facts if not isinstance(each, WorkloadFacts) or each.admission is not None]
    found = Kueue(queues(*held, settings=settings))
    for each in facts:
        if isinstance(each, WorkloadFacts) and each.admission is None:
            found.put_workload(each, 0.0)
    return found


def names(decisions: Decisions) -> list[str]:
    return [each.workload.removeprefix("default/") for each in decisions.admitted]


def preempted(decisions: Decisions) -> list[tuple[str, str]]:
    return [(each.workload.removeprefix("default/"), str(each.reason)) for each in decisions.preempted]


def state_of(found: Kueue, name: str) -> tuple[str, Wait]:
    return next((each.state, each.why) for each in found.states() if each.workload == f"default/{name}")


def test_a_cycle_admits_one_head_of_each_queue() -> None:
    found = kueue(
        cluster_queue("a", cpu=9),
        cluster_queue("b", cpu=9),
        workload("a1", "a", cpu=1),
        workload("a2", "a", cpu=1, created=1),
        workload("b1", "b", cpu=1),
    )
    assert [names(found.cycle(now)) for now in range(3)] == [["a1", "b1"], ["a2"], []]


def test_what_one_borrows_in_a_cycle_another_cannot() -> None:
    found = kueue(
        cluster_queue("a", cohort="all", cpu=1),
        cluster_queue("b", cohort="all", cpu=1),
        cluster_queue("c", cohort="all", cpu=1),
        workload("a1", "a", cpu=3),
        workload("b1", "b", cpu=3, created=1),
    )
    first = found.cycle(0)
    assert names(first) == ["a1"]
    assert [(each.workload, each.state) for each in first.waiting] == [("default/b1", "active")]
    assert names(found.cycle(1)) == []
    assert state_of(found, "b1") == ("inadmissible", Wait.QUOTA)


def test_whoever_borrows_less_comes_before_higher_priority() -> None:
    found = kueue(
        cluster_queue("a", cohort="all", cpu=2),
        cluster_queue("b", cohort="all", cpu=2),
        workload("borrows", "a", cpu=3, priority=9),
        workload("own", "b", cpu=2),
    )
    assert names(found.cycle(0)) == ["own"]


def test_a_strict_queue_waits_behind_its_head_and_another_goes_on() -> None:
    for strict, expected in ((True, []), (False, ["small"])):
        found = kueue(
            cluster_queue("a", strict=strict, cpu=2),
            workload("large", "a", cpu=3, priority=1),
            workload("small", "a", cpu=1),
        )
        done = found.run(0)
        assert [name for each in done for name in names(each)] == expected


def test_a_preemptor_waits_until_its_victims_are_gone() -> None:
    found = kueue(
        cluster_queue("a", rules=LOWER, cpu=2),
        admitted(workload("low", "a", cpu=2), "a"),
        workload("high", "a", cpu=2, priority=1),
    )
    assert preempted(found.cycle(0)) == [("low", "InClusterQueue")]
    assert state_of(found, "high") == ("active", Wait.VICTIMS)
    assert found.cycle(1).is_quiet
    found.put_workload(replace(workload("low", "a", cpu=2), evicted_s=1.0, evicted_why="Preempted"), 2)
    assert names(found.cycle(2)) == ["high"]
    assert found.cycle(3).is_quiet


def test_victims_are_told_once() -> None:
    found = kueue(
        cluster_queue("a", rules=LOWER, cpu=2),
        admitted(workload("low", "a", cpu=2), "a"),
        workload("high", "a", cpu=2, priority=1),
    )
    assert sum(len(each.preempted) for each in found.run(0)) == 1
    found.wake()
    assert found.run(1)[0].preempted == []


def test_two_preemptors_do_not_count_the_same_victim() -> None:
    found = kueue(
        cluster_queue("a", cohort="all", rules=RECLAIM, cpu=2),
        cluster_queue("b", cohort="all", rules=RECLAIM, cpu=2),
        cluster_queue("c", cohort="all", cpu=0),
        admitted(workload("borrower", "c", cpu=4), "c"),
        workload("a1", "a", cpu=2),
        workload("b1", "b", cpu=2, created=1),
    )
    first = found.cycle(0)
    assert preempted(first) == [("borrower", "InCohortReclamation")]
    assert {each.workload: each.why for each in first.waiting} == {
        "default/a1": Wait.VICTIMS,
        "default/b1": Wait.VICTIMS,
    }
    found.drop_workload("default/borrower", 1)
    assert names(found.cycle(1)) == ["a1", "b1"]


def test_nobody_takes_the_room_of_a_queue_that_waits_for_its_own() -> None:
    """Without the right to reclaim, the head of `a` cannot get its quota back, but nobody else may borrow it either."""
    found = kueue(
        cluster_queue("a", cohort="all", rules=LOWER, cpu=4),
        cluster_queue("b", cohort="all", cpu=0),
        cluster_queue("c", cohort="all", cpu=0),
        admitted(workload("borrower", "b", cpu=3), "b"),
        workload("owner", "a", cpu=4, priority=5),
        workload("late", "c", cpu=1),
    )
    assert names(found.cycle(0)) == []


def test_a_smaller_size_is_taken_where_the_full_one_does_not_fit() -> None:
    found = kueue(cluster_queue("a", cpu=5), workload("w", "a", pod_set(count=8, least=2, cpu=1)))
    (decided,) = found.cycle(0).admitted
    assert [each.count for each in decided.admission.pod_sets] == [5]
    assert decided.admission.pod_sets[0].usage == {"cpu": 5000}


def test_preemption_at_full_size_comes_before_shrinking() -> None:
    found = kueue(
        cluster_queue("a", rules=LOWER, cpu=8),
        admitted(workload("low", "a", cpu=3), "a"),
        workload("w", "a", pod_set(count=8, least=2, cpu=1), priority=1),
    )
    assert preempted(found.cycle(0)) == [("low", "InClusterQueue")]


def test_a_namespace_without_right_is_parked_even_in_a_strict_queue() -> None:
    nobody = cluster_queue("a", strict=True, namespaces=Selector.NOTHING, cpu=5)
    found = kueue(nobody, workload("w", "a", cpu=1))
    (told,) = found.cycle(0).waiting
    assert (told.state, told.why) == ("inadmissible", Wait.INADMISSIBLE)
    assert "has no namespaceSelector" in told.message
    team = LabelSelector({"team": "x"}).selector()
    found = kueue(cluster_queue("a", namespaces=team, cpu=5), workload("w", "a", cpu=1))
    assert "doesn't match" in found.cycle(0).waiting[0].message


def test_what_stands_in_no_line_is_said() -> None:
    found = kueue(cluster_queue("a", cpu=5), workload("lost", "nowhere", cpu=1), LocalQueueFacts("default/lq", "gone"))
    found.put_workload(workload("astray", "lq", cpu=1), 0)
    found.put_workload(replace(workload("off", "a", cpu=1), active=False), 0)
    found.put_workload(replace(workload("gated", "a", cpu=1), closed_gates=("mine",)), 0)
    assert found.run(0)[-1].is_quiet
    messages = {each.workload: each.message for each in found.states()}
    assert messages["default/lost"] == "LocalQueue default/nowhere doesn't exist"
    assert messages["default/astray"] == "ClusterQueue gone doesn't exist"
    assert {each.state for each in found.states()} == {"none"}


def test_a_queue_that_opens_goes_on_with_its_line() -> None:
    found = kueue(cluster_queue("a", stop="Hold", cpu=5), workload("w", "a", cpu=1))
    assert found.cycle(0).is_quiet
    assert state_of(found, "w") == ("active", Wait.ON_HOLD)
    found.queues.put(cluster_queue("a", cpu=5))
    assert not found.is_idle
    assert names(found.cycle(1)) == ["w"]


def test_a_missing_flavor_and_a_circle_of_cohorts_close_their_queues_only() -> None:
    found = kueue(
        cluster_queue("a", cpu=5),
        cluster_queue("round", cohort="x", cpu=5),
        cohort("x", parent="y"),
        cohort("y", parent="x"),
        workload("fine", "a", cpu=1),
        workload("stuck", "round", cpu=1),
    )
    assert names(found.cycle(0)) == ["fine"]
    assert "its own ancestor" in next(each.message for each in found.states())


def test_backoff_ends_by_itself() -> None:
    found = kueue(cluster_queue("a", cpu=5))
    found.put_workload(replace(workload("w", "a", cpu=1), requeue_at_s=60.0), 0)
    assert found.cycle(59).is_quiet
    assert found.next_s() == 60.0
    assert names(found.cycle(60)) == ["w"]


def test_a_departure_wakes_its_tree_and_no_other() -> None:
    found = kueue(
        cluster_queue("a", cpu=1),
        cluster_queue("b", cpu=1),
        admitted(workload("a-runs", "a", cpu=1), "a"),
        admitted(workload("b-runs", "b", cpu=1), "b"),
        workload("a-waits", "a", cpu=1),
        workload("b-waits", "b", cpu=1),
    )
    found.run(0)
    assert found.is_idle
    found.drop_workload("default/a-runs", 1)
    done = found.cycle(1)
    assert names(done) == ["a-waits"]
    assert done.waiting == []


def test_checks_leave_a_workload_reserved_and_not_admitted() -> None:
    found = kueue(
        cluster_queue("a", checks=["budget"], cpu=5), AdmissionCheckFacts("budget"), workload("w", "a", cpu=1)
    )
    (decided,) = found.cycle(0).admitted
    assert decided.checks_pending
    assert not found.queues.held["default/w"].facts.admitted


def test_domains_are_chosen_once_the_nodes_are_made() -> None:
    found = kueue(
        flavor("tas", {"pool": "x"}, topology="racks"),
        topology("racks", "rack", "kubernetes.io/hostname"),
        cluster_queue("a", quotas("tas", cpu=9), checks=["nodes"]),
        AdmissionCheckFacts("nodes", PROVISIONING),
        workload("w", "a", pod_set(count=2, topology=TopologyRequest(required="rack"), cpu=1)),
    )
    (decided,) = found.cycle(0).admitted
    assert decided.admission.pod_sets[0].delayed == "Pending"
    found.queues.put(node("n1", {"pool": "x", "rack": "r"}, cpu=4))
    reserved = found.queues.held["default/w"].facts
    found.put_workload(replace(reserved, checks={"nodes": "Ready"}), 1)
    (again,) = found.cycle(1).admitted
    assert again.again
    assert again.admission.pod_sets[0].topology is not None
    assert again.admission.pod_sets[0].topology.domains == ((("n1",), 2),)


def test_while_pods_are_not_ready_nobody_else_is_admitted_if_that_is_wished() -> None:
    settings = Settings(wait_for_pods_ready=True, block_admission=True)
    running = replace(admitted(workload("starts", "a", cpu=1), "a"), pods_ready=False)
    found = kueue(cluster_queue("a", cpu=5), running, workload("w", "a", cpu=1), settings=settings)
    assert found.cycle(0).waiting[0].why is Wait.PODS_READY


def test_a_backlog_of_equal_workloads_is_looked_at_once() -> None:
    backlog = [workload(f"w{index}", "a", cpu=3) for index in range(50)]
    found = kueue(cluster_queue("a", cpu=2), *backlog)
    assert sum(len(each.waiting) for each in found.run(0)) == 1
    assert {each.state for each in found.states()} == {"inadmissible"}


def test_quota_above_what_can_ever_be_lent_is_called_hopeless() -> None:
    found = kueue(cluster_queue("a", cohort="all", cpu=limited(2, borrow=1)), workload("w", "a", cpu=4))
    assert found.cycle(0).waiting[0].why is Wait.EXCEEDS_MAX_QUOTA


def test_whoever_lost_to_room_that_another_only_kept_looks_again() -> None:
    """At first `a1` keeps its own quota although nobody may yield to it; then it is parked, and keeps nothing."""
    found = kueue(
        cluster_queue("a", cohort="all", rules=PreemptionRules(reclaim="LowerPriority"), cpu=10),
        cluster_queue("b", cohort="all", cpu=10),
        cluster_queue("c", cohort="all", cpu=0),
        admitted(workload("runs", "b", cpu=15, priority=100), "b"),
        workload("a1", "a", cpu=8),
        workload("c1", "c", cpu=3),
    )
    assert [names(found.cycle(now)) for now in range(2)] == [[], ["c1"]]


def test_a_strict_head_keeps_its_room_as_long_as_it_waits() -> None:
    found = kueue(
        cluster_queue("a", cohort="all", strict=True, rules=PreemptionRules(reclaim="LowerPriority"), cpu=10),
        cluster_queue("b", cohort="all", cpu=10),
        cluster_queue("c", cohort="all", cpu=0),
        admitted(workload("runs", "b", cpu=15, priority=100), "b"),
        workload("a1", "a", cpu=8),
    )
    found.run(0)
    found.put_workload(workload("c1", "c", cpu=3), 1)
    assert [name for each in found.run(1) for name in names(each)] == []


def test_a_check_that_somebody_has_noted_holds_back_even_where_the_queue_does_not_ask_for_it() -> None:
    noted = replace(workload("w", "a", cpu=1), checks={"foreign": "Pending"})
    (decided,) = kueue(cluster_queue("a", cpu=5), noted).cycle(0).admitted
    assert decided.checks_pending


def test_nothing_is_available_even_where_more_is_used_than_there_is() -> None:
    found = kueue(
        cluster_queue("a", cpu=10, gpu=1),
        admitted(workload("too-much", "a", cpu=1, gpu=2), "a"),
        workload("w", "a", cpu=1, gpu=0),
    )
    assert names(found.cycle(0)) == ["w"]


def test_with_admission_blocked_one_comes_at_a_time() -> None:
    settings = Settings(wait_for_pods_ready=True, block_admission=True)
    found = kueue(
        cluster_queue("a", cpu=5),
        cluster_queue("b", cpu=5),
        workload("a1", "a", cpu=1),
        workload("b1", "b", cpu=1, created=1),
        settings=settings,
    )
    assert [name for each in found.run(0) for name in names(each)] == ["a1"]
    found.put_workload(replace(found.queues.held["default/a1"].facts, pods_ready=True), 1)
    assert [name for each in found.run(1) for name in names(each)] == ["b1"]


def test_equal_workloads_of_all_local_queues_are_parked_together() -> None:
    found = kueue(
        cluster_queue("a", by_usage=True, cpu=1),
        LocalQueueFacts("default/one", "a"),
        LocalQueueFacts("default/two", "a"),
        workload("one-1", "one", cpu=2),
        workload("two-1", "two", cpu=2),
        settings=Settings(usage_half_life_s=60.0),
    )
    assert len(found.cycle(0).waiting) == 1
    assert {each.state for each in found.states()} == {"inadmissible"}


def test_of_two_that_need_new_domains_the_more_important_comes_first() -> None:
    facts = (
        flavor("tas", {"pool": "x"}, topology="hosts"),
        topology("hosts", "kubernetes.io/hostname"),
        cluster_queue("a", quotas("tas", cpu=9), checks=["nodes"]),
        AdmissionCheckFacts("nodes", PROVISIONING),
    )
    requirement = pod_set(topology=TopologyRequest(required="kubernetes.io/hostname"), cpu=4)
    found = kueue(*facts, workload("low", "a", requirement), workload("high", "a", requirement, priority=1, created=1))
    assert sorted(name for each in found.run(0) for name in names(each)) == ["high", "low"]
    found.queues.put(node("n1", {"pool": "x"}, cpu=4))
    for name in ("low", "high"):
        reserved = found.queues.held[f"default/{name}"].facts
        found.put_workload(replace(reserved, checks={"nodes": "Ready"}), 1)
    assert names(found.cycle(1)) == ["high"]
    assert "default/low" in found.queues.held


def test_a_head_that_lost_its_domain_takes_another_or_preempts_at_once() -> None:
    """Both heads are nominated to the same host; the second then makes room on the other one within the cycle."""
    facts = (
        flavor("tas", {"pool": "x"}, topology="hosts"),
        topology("hosts", "kubernetes.io/hostname"),
        cluster_queue("a", quotas("tas", cpu=8)),
        cluster_queue("b", quotas("tas", cpu=16), rules=LOWER),
        node("n1", {"pool": "x"}, cpu=8),
        node("n2", {"pool": "x"}, cpu=8),
    )
    requirement = pod_set(topology=TopologyRequest(required="kubernetes.io/hostname"), cpu=8)
    found = kueue(*facts, workload("blow", "b", requirement, priority=1))
    assert names(found.cycle(0)) == ["blow"]
    found.put_workload(workload("a1", "a", requirement, priority=10), 1)
    found.put_workload(workload("b1", "b", requirement, priority=5), 1)
    done = found.cycle(1)
    assert (names(done), preempted(done)) == (["a1"], [("blow", "InClusterQueue")])


def test_absurd_amounts_are_turned_away_like_any_that_are_too_much() -> None:
    found = kueue(
        flavor("tas", {"pool": "x"}, topology="hosts"),
        topology("hosts", "kubernetes.io/hostname"),
        cluster_queue("a", quotas("tas", cpu=10**24)),
        node("n1", {"pool": "x"}, cpu=8),
        workload("w", "a", pod_set(topology=TopologyRequest(required="kubernetes.io/hostname"), cpu=10**22)),
    )
    assert found.cycle(0).waiting[0].why is Wait.TOPOLOGY
