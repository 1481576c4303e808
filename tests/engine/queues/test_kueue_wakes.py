"""What wakes those who were turned away, and what lets a tree rest."""

from __future__ import annotations

from msgspec.structs import replace

from build.queues import admitted, cluster_queue, flavor, node, pod_set, queues, quotas, topology, workload
from shoal.api.selectors import LabelSelector
from shoal.engine.queues.admission_checks import PROVISIONING, AdmissionCheckFacts
from shoal.engine.queues.facts import (
    ClusterQueueFacts,
    LocalQueueFacts,
    PodSetAdmission,
    PreemptionRules,
    QuotaAssignment,
    WorkloadFacts,
)
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Fact
from shoal.engine.queues.topology_facts import TopologyRequest

LOWER = PreemptionRules(within="LowerPriority")


def kueue(*facts: Fact | WorkloadFacts, settings: Settings | None = None) -> Kueue:
    held = [each for each in facts if not isinstance(each, WorkloadFacts) or each.admission is not None]
    found = Kueue(queues(*held, settings=settings))
    for each in facts:
        if isinstance(each, WorkloadFacts) and each.admission is None:
            found.put_workload(each, 0.0)
    return found


def started(found: Kueue, now: float = 0.0, most: int = 1000) -> list[str]:
    done = found.run(now, most)
    assert len(done) < most, "the queues never come to rest"
    return [each.workload.removeprefix("default/") for cycle in done for each in cycle.admitted]


def rests(found: Kueue) -> bool:
    return found.is_idle


def waits(found: Kueue, name: str) -> Wait | None:
    return next((each.why for each in found.states() if each.workload == f"default/{name}"), None)


def test_behind_a_strict_head_that_is_deleted_or_switched_off_the_next_comes() -> None:
    large = workload("large", "a", cpu=3, priority=1)
    for is_deleted in (True, False):
        found = kueue(cluster_queue("a", strict=True, cpu=2), large, workload("small", "a", cpu=1))
        assert started(found) == []
        if is_deleted:
            found.drop_workload("default/large", 1)
        else:
            found.put_workload(replace(large, active=False), 1)
        assert started(found, 1) == ["small"]


def test_room_that_a_preemptor_kept_is_free_when_it_is_deleted() -> None:
    found = kueue(
        cluster_queue("a", cohort="x", rules=LOWER, cpu=4),
        cluster_queue("b", cohort="x", cpu=0),
        admitted(workload("low", "a", cpu=2), "a"),
        workload("high", "a", cpu=4, priority=1),
        workload("small", "b", cpu=2),
    )
    assert started(found) == []
    found.drop_workload("default/high", 1)
    assert started(found, 1) == ["small"]


def gap() -> Kueue:
    """Eight GPUs, six in use for another hundred seconds; a gang is promised all eight, and long work is held back."""
    settings = Settings(reservations=True)
    found = kueue(
        cluster_queue("a", cohort="x", gpu=8),
        cluster_queue("b", cohort="x", gpu=0),
        cluster_queue("far", gpu=0),
        replace(admitted(workload("runs", "a", gpu=6), "a"), duration_s=100.0),
        workload("gang", "a", gpu=8, priority=5),
        workload("long", "b", gpu=1),
        settings=settings,
    )
    assert started(found) == []
    assert waits(found, "long") is Wait.RESERVED
    return found


def test_whoever_a_promise_held_back_looks_again_when_it_is_gone() -> None:
    found = gap()
    found.drop_workload("default/gang", 1)
    assert started(found, 1) == ["long"]


def test_a_promise_ends_with_its_queue() -> None:
    stopped: list[Fact] = [
        cluster_queue("a", cohort="x", stop="Hold", gpu=8),
        LocalQueueFacts("default/a", "a", stop="Hold"),
        LocalQueueFacts("default/a", "far"),
    ]
    for fact in stopped:
        found = gap()
        found.queues.put(fact)
        assert started(found, 1) == ["long"]


def test_who_has_quota_and_waits_for_checks_has_not_begun() -> None:
    reserved = replace(admitted(workload("runs", "a", gpu=6), "a"), duration_s=100.0, admitted=False, admitted_s=0.0)
    found = kueue(
        cluster_queue("a", gpu=8),
        reserved,
        workload("gang", "a", gpu=8, priority=5),
        settings=Settings(reservations=True),
    )
    started(found, 1000)
    assert found.reservations is not None
    nominated = found.reservations.of("default/gang")
    assert nominated is not None
    assert nominated.start_s == 1100


def test_searches_out_of_step_come_to_rest() -> None:
    settings = Settings(wait_for_pods_ready=True, block_admission=True)
    found = kueue(
        cluster_queue("a", quotas("f1", cpu=4), quotas("f2", cpu=4), cohort="x"),
        cluster_queue("b", quotas("f1", cpu=4), quotas("f2", cpu=4), cohort="x"),
        replace(admitted(workload("h", "a", cpu=1), "a", "f1"), pods_ready=False),
        workload("w1", "a", cpu=1),
        settings=settings,
    )
    found.cycle(0)
    found.put_workload(workload("w2", "b", cpu=1), 1)
    assert started(found, 1, most=20) == []
    assert found.is_idle


def test_a_search_that_went_on_in_the_middle_looks_at_the_first_flavors_too() -> None:
    """`w1` loses f1 to room that `w0` only keeps, and finds nothing in f2; by then `w0` keeps nothing any more."""
    holds = QuotaAssignment("b", (PodSetAdmission("main", 1, {"cpu": "f1"}, {"cpu": 2000}),))
    found = kueue(
        cluster_queue("a", quotas("f1", cpu=0), quotas("f2", cpu=0), cohort="x", strict=True),
        cluster_queue("b", quotas("f1", cpu=4), cohort="x", rules=PreemptionRules(reclaim="LowerPriority")),
        replace(admitted(workload("h", "b", cpu=2, priority=9), "b", "f1"), admission=holds),
        workload("w0", "b", cpu=4),
        workload("w1", "a", cpu=2),
    )
    assert started(found) == ["w1"]


def test_quota_of_a_queue_that_is_gone_is_held_again_when_it_comes_back() -> None:
    old = admitted(workload("old", "a", cpu=2), "a")
    found = kueue(cluster_queue("a", cpu=2), old)
    found.queues.drop(ClusterQueueFacts, "a")
    found.put_workload(workload("new", "a", cpu=2), 1)
    assert started(found, 1) == []
    found.queues.put(cluster_queue("a", cpu=2))
    assert started(found, 2) == []
    assert "default/old" in found.queues.held
    found.drop_workload("default/old", 3)
    assert started(found, 3) == ["new"]


def test_a_holder_may_be_told_before_its_queue() -> None:
    found = Kueue(queues())
    found.put_workload(admitted(workload("old", "a", cpu=2), "a"), 0)
    found.queues.put(flavor())
    found.queues.put(cluster_queue("a", cpu=2))
    found.queues.put(LocalQueueFacts("default/a", "a"))
    found.put_workload(workload("new", "a", cpu=2), 1)
    assert started(found, 1) == []


def test_the_end_of_a_least_run_time_is_news() -> None:
    found = kueue(
        cluster_queue("a", rules=LOWER, cpu=2),
        admitted(workload("low", "a", cpu=2), "a"),
        workload("high", "a", cpu=2, priority=1),
        settings=Settings(min_runtime_s=100),
    )
    assert found.cycle(10).preempted == []
    assert found.next_s() == 100
    assert [each.workload for each in found.cycle(100).preempted] == ["default/low"]


def test_a_namespace_that_gets_the_right_label_is_let_in() -> None:
    team = LabelSelector({"team": "x"}).selector()
    found = kueue(cluster_queue("a", namespaces=team, cpu=5), workload("w", "a", cpu=1))
    assert started(found) == []
    found.queues.put_namespace("default", {"team": "x"})
    assert started(found, 1) == ["w"]


def test_what_is_known_already_is_no_news() -> None:
    facts = cluster_queue("a", cpu=1), node("n1", cpu=4), LocalQueueFacts("default/a", "a")
    running, waiting = admitted(workload("runs", "a", cpu=1), "a"), workload("waits", "a", cpu=1)
    found = kueue(*facts, running, waiting)
    assert started(found) == []
    for fact in (*facts, LocalQueueFacts("default/a", "a", used=3.0)):
        found.queues.put(fact)
    found.put_workload(found.queues.held["default/runs"].facts, 1)
    found.put_workload(waiting, 1)
    assert found.is_idle or found.cycle(1).waiting == []


def test_a_second_pass_without_room_waits_for_nodes() -> None:
    found = kueue(
        flavor("tas", {"pool": "x"}, topology="hosts"),
        topology("hosts", "kubernetes.io/hostname"),
        cluster_queue("a", quotas("tas", cpu=9), checks=["nodes"]),
        AdmissionCheckFacts("nodes", PROVISIONING),
        workload("w", "a", pod_set(topology=TopologyRequest(required="kubernetes.io/hostname"), cpu=4)),
    )
    found.run(0)
    found.put_workload(replace(found.queues.held["default/w"].facts, checks={"nodes": "Ready"}), 1)
    assert not rests(found)
    assert started(found, 1) == []
    assert rests(found)
    found.queues.put(node("n1", {"pool": "x"}, cpu=4))
    assert started(found, 2) == ["w"]
