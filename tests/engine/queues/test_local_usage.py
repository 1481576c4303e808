"""Admission fair sharing's memory, and the arithmetic of pods that do not get ready."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from build.queues import admitted, cluster_queue, queues, workload
from shoal.engine.queues.eviction_rules import next_deadline_s, to_stop
from shoal.engine.queues.facts import LocalQueueFacts, PodSetAdmission, QuotaAssignment
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.readiness import backoff_s, is_worn_out, stamp_of
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.usage import INFINITE, LocalUsage

SETTINGS = Settings(usage_half_life_s=100.0, usage_sampling_s=0.0)


def cores(count: int) -> QuotaAssignment:
    return QuotaAssignment("a", (PodSetAdmission("main", 1, {"cpu": "default"}, {"cpu": count * 1000}),))


def test_use_grows_towards_what_runs_and_is_forgotten_by_half_in_a_half_life() -> None:
    usage = LocalUsage(SETTINGS)
    usage.admitted("q", cores(8), 0, is_new=False)
    assert usage.of("q", 100) == pytest.approx(4)
    assert usage.of("q", 200) == pytest.approx(6)
    usage.released("q", cores(8), 200)
    assert usage.of("q", 300) == pytest.approx(3)


def test_weights_divide_use_and_weight_zero_comes_last() -> None:
    usage = LocalUsage(SETTINGS)
    for queue, weight in (("q", 2.0), ("none", 0.0)):
        usage.weigh(LocalQueueFacts(queue, "a", weight=weight, used=10.0), 0)
    assert usage.of("q", 0) == 5.0
    assert usage.of("none", 0) == INFINITE


def test_a_new_admission_counts_at_once_as_if_it_had_run_for_one_sample() -> None:
    usage = LocalUsage(Settings(usage_half_life_s=100.0, usage_sampling_s=100.0))
    usage.admitted("q", cores(8), 0, is_new=True)
    assert usage.of("q", 0) == pytest.approx(4)


@given(st.lists(st.floats(0.1, 50), min_size=1, max_size=8))
def test_how_often_somebody_looks_changes_nothing(steps: list[float]) -> None:
    watched, left_alone = LocalUsage(SETTINGS), LocalUsage(SETTINGS)
    now = 0.0
    for usage in (watched, left_alone):
        usage.admitted("q", cores(3), 0, is_new=False)
    for step in steps:
        now += step
        watched.of("q", now)
    assert watched.of("q", now) == pytest.approx(left_alone.of("q", now))


def test_with_no_half_life_nothing_is_remembered() -> None:
    usage = LocalUsage(Settings(usage_half_life_s=0.0))
    usage.weigh(LocalQueueFacts("q", "a", used=10.0), 0)
    usage.admitted("q", cores(8), 0, is_new=True)
    assert usage.of("q", 0) == 10.0
    assert usage.of("q", 1) == 0.0


def test_turns_alternate_between_local_queues_that_use_alike() -> None:
    found = Kueue(
        queues(
            cluster_queue("a", by_usage=True, cpu=4),
            LocalQueueFacts("default/one", "a"),
            LocalQueueFacts("default/two", "a"),
            settings=Settings(usage_half_life_s=3600.0),
        )
    )
    for index in range(3):
        found.put_workload(workload(f"one-{index}", "one", cpu=1, priority=9, created=index), 0)
        found.put_workload(workload(f"two-{index}", "two", cpu=1, created=index), 0)
    order = [each.workload for done in found.run(0) for each in done.admitted]
    assert order == ["default/one-0", "default/two-0", "default/one-1", "default/two-1"]


def test_backoff_doubles_up_to_the_most() -> None:
    settings = Settings(backoff_base_s=60, backoff_most_s=200, backoff_limit=4)
    assert [backoff_s(settings, count) for count in range(5)] == [0, 60, 120, 200, 200]
    assert [is_worn_out(settings, count) for count in (4, 5)] == [False, True]
    assert backoff_s(settings, 10_000) == 200


def test_preemption_keeps_a_turn_and_a_timeout_does_not() -> None:
    facts = replace(workload("w", "a", created=1, cpu=1), evicted_s=9.0)
    settings = Settings()
    assert stamp_of(settings, replace(facts, evicted_why="Preempted")) == 1
    assert stamp_of(settings, replace(facts, evicted_why="PodsReadyTimeout")) == 9
    assert stamp_of(Settings(requeue_by="Creation"), replace(facts, evicted_why="PodsReadyTimeout")) == 1
    assert stamp_of(settings, replace(facts, evicted_why="AdmissionCheck")) == 9


def test_whoever_must_stop_is_named_with_the_reason() -> None:
    settings = Settings(wait_for_pods_ready=True, ready_timeout_s=100, backoff_base_s=10, backoff_limit=1)
    slow = replace(admitted(workload("slow", "a", cpu=1), "a", at=50), pods_ready=False)
    world = queues(
        cluster_queue("a", cpu=9),
        cluster_queue("drained", stop="HoldAndDrain", cpu=9),
        cluster_queue("held", stop="Hold", cpu=9),
        slow,
        replace(slow, key="default/worn", requeues=1),
        replace(admitted(workload("off", "a", cpu=1), "a"), active=False),
        replace(admitted(workload("refused", "a", cpu=1), "a"), checks={"x": "Rejected"}),
        replace(admitted(workload("again", "a", cpu=1), "a"), checks={"x": "Retry"}),
        admitted(workload("drains", "drained", cpu=1), "drained"),
        admitted(workload("stays", "held", cpu=1), "held"),
        settings=settings,
    )
    assert next_deadline_s(world) == 150
    assert {each.workload: each.reason for each in to_stop(world, 149)} == {
        "default/off": "Deactivated",
        "default/refused": "Deactivated",
        "default/again": "AdmissionCheck",
        "default/drains": "ClusterQueueStopped",
    }
    late = {each.workload: each for each in to_stop(world, 150)}
    assert (late["default/slow"].reason, late["default/slow"].requeue_at_s) == ("PodsReadyTimeout", 160)
    assert late["default/worn"].deactivate
