"""Plugins of Volcano one by one, and how their tiers decide together."""

from __future__ import annotations

from typing import Any

import pytest

from build.volcano_worlds import World, plugin, queue

HOUR = 3600.0


def world(*plugins: Any, cores: int = 4, **more: Any) -> World:
    return World([queue("q")], {"n1": {"cpu": cores}}, (plugins,), **more)


def ready(*names: str) -> tuple[Any, ...]:
    return (plugin("gang", "JobStarving", "JobPipelined", "JobReady"), *(plugin(name, "Preemptable") for name in names))


def test_without_a_plugin_that_lets_pods_be_preempted_no_pod_is() -> None:
    made = world(*ready()).job("low", "q", "n1:4", priority=1)
    assert made.job("high", "q", ":4", priority=3).run("preempt").evicted == set()


def test_all_plugins_of_a_tier_agree_on_a_victim() -> None:
    made = world(*ready("priority", "gang")).job("low", "q", "n1:4", priority=1)
    assert made.job("high", "q", ":4", priority=3).run("preempt").evicted == set()


def test_the_first_tier_that_names_victims_decides() -> None:
    tiers = (ready("priority"), (plugin("gang", "Preemptable"),))
    made = World([queue("q")], plugins=tiers).job("low", "q", "n1:4", priority=1)
    assert made.job("high", "q", ":4", priority=3).run("preempt").evicted == {"low-0"}


def test_a_tier_that_names_none_leaves_it_to_the_next() -> None:
    tiers = ((*ready(), plugin("gang", "Preemptable")), (plugin("priority", "Preemptable"),))
    made = World([queue("q")], plugins=tiers).job("low", "q", "n1:4", priority=1)
    assert made.job("high", "q", ":4", priority=3).run("preempt").evicted == {"low-0"}


def test_drf_preempts_jobs_whose_share_stays_at_least_the_claimants() -> None:
    made = world(*ready("drf")).job("large", "q", *["n1"] * 4, minimum=0)
    assert made.job("small", "q", ":2", priority=0).run("preempt").evicted == {"large-3", "large-2"}
    other = world(*ready("drf")).job("large", "q", *["n1"] * 4, minimum=0)
    assert other.job("small", "q", ":3", priority=0).run("preempt").evicted == set()


def test_drf_tries_the_job_with_the_smaller_share_first() -> None:
    made = world(plugin("gang"), plugin("drf"), cores=3)
    made.job("large", "q", "n1:2", "", minimum=1).job("small", "q", "", minimum=1)
    assert made.run("allocate").bound == {"small-0"}


def test_gang_tries_jobs_that_are_not_ready_first() -> None:
    made = world(plugin("gang", "JobOrder", "JobReady"), cores=2)
    made.job("ready", "q", "n1", "", minimum=1).job("new", "q", "", minimum=1)
    assert made.run("allocate").bound == {"new-0"}


@pytest.mark.parametrize(("factor", "admitted"), [(1.0, ["a"]), (1.5, ["a", "b"]), ("much", ["a"]), (0.1, ["a"])])
def test_overcommit_admits_up_to_a_factor_of_the_cluster(factor: Any, admitted: list[str]) -> None:
    made = world(plugin("overcommit", arguments={"overcommit-factor": factor}))
    for name in "ab":
        made.job(name, "q", "", min_resources={"cpu": 3}, is_enqueued=False)
    assert list(made.run("enqueue").session.enqueued) == [f"ns/{name}" for name in admitted]


@pytest.mark.parametrize(
    ("now_s", "own_s", "is_admitted"), [(HOUR - 1, None, False), (HOUR, None, True), (60, 60, True), (HOUR, -1, False)]
)
def test_a_job_that_has_waited_too_long_is_admitted(now_s: float, own_s: float | None, is_admitted: bool) -> None:
    tiers = ((plugin("sla", arguments={"sla-waiting-time": "1h"}),), (plugin("overcommit"),))
    made = World([queue("q")], plugins=tiers)
    made.job("a", "q", "", min_resources={"cpu": 99}, is_enqueued=False, created_s=0.0, waiting_time_s=own_s)
    assert bool(made.run("enqueue", now_s=now_s).session.enqueued) is is_admitted


def test_the_job_with_the_earlier_deadline_is_tried_first() -> None:
    made = world(plugin("sla"), cores=1)
    made.job("a", "q", "", created_s=0.0).job("b", "q", "", created_s=5.0, waiting_time_s=1.0)
    assert made.run("allocate").bound == {"b-0"}


ZONES = {"n1": {"volcano.sh/revocable-zone": "rz"}}
NIGHT = {"tdm.revocable-zone.rz": "22:00-06:00", "tdm.evict.period": "10m"}


@pytest.mark.parametrize(
    ("hour", "is_preemptible", "bound"),
    [(23, True, {"a-0"}), (3, True, {"a-0"}), (12, True, set()), (23, False, set())],
)
def test_revocable_nodes_take_preemptible_pods_within_their_window(
    hour: int, is_preemptible: bool, bound: set[str]
) -> None:
    made = world(plugin("tdm", arguments=NIGHT), labels=ZONES).job("a", "q", "", is_preemptible=is_preemptible)
    assert made.run("allocate", now_s=hour * HOUR).bound == bound


def test_after_the_window_one_pod_of_each_job_and_period_is_evicted() -> None:
    made = (
        world(plugin("tdm", arguments=NIGHT), labels=ZONES)
        .job("a", "q", "n1", "n1")
        .job("b", "q", "n1", is_preemptible=False)
    )
    first = made.run("shuffle", now_s=12 * HOUR)
    assert first.evicted == {"a-1"}
    assert made.run("shuffle", now_s=12 * HOUR + 599).evicted == set()
    assert made.run("shuffle", now_s=12 * HOUR + 600).evicted == {"a-0"}
    assert made.run("shuffle", now_s=23 * HOUR).evicted == set()


def test_both_plugins_of_quota_at_once_are_one_of_them_by_what_the_queues_declare() -> None:
    both = (plugin("gang"), plugin("proportion"), plugin("capacity"))
    by_weight = World([queue("a"), queue("b")], plugins=(both,)).job("a", "a", "")
    assert [each.name for each in by_weight.run("allocate").session.plugins] == ["gang", "proportion"]
    declared = World([queue("a", deserved={"cpu": 1}), queue("b")], plugins=(both,)).job("a", "a", "")
    assert [each.name for each in declared.run("allocate").session.plugins] == ["gang", "capacity"]
