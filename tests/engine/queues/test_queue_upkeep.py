"""Who has to stop as time goes by: pods that are not ready, and work that ran for as long as it may."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from build.queues import admitted, cluster_queue, queues, workload
from shoal.engine.queues.durations import Durations
from shoal.engine.queues.eviction_rules import next_deadline_s, to_stop
from shoal.engine.queues.facts import WorkloadFacts
from shoal.engine.queues.readiness import ready_deadline_s
from shoal.engine.queues.settings import Settings

RUNS = admitted(workload("runs", "a", cpu=1), "a", at=50)
WAITS = Settings(wait_for_pods_ready=True, ready_timeout_s=100, recovery_timeout_s=20, backoff_base_s=10)


def stopped(now_s: float, *running: WorkloadFacts, settings: Settings | None = None) -> dict[str, str]:
    """Workload -> why."""
    world = queues(cluster_queue("a", cpu=9), *running, settings=settings)
    return {each.workload.removeprefix("default/"): each.reason for each in to_stop(world, now_s)}


@pytest.mark.parametrize(
    ("lost_s", "recovery_s", "deadline_s"),
    [(None, 20.0, 150.0), (None, None, 150.0), (60.0, 20.0, 80.0), (9000.0, 20.0, 9020.0), (60.0, None, None)],
)
def test_pods_that_were_ready_have_a_time_of_their_own_to_come_back(
    lost_s: float | None, recovery_s: float | None, deadline_s: float | None
) -> None:
    facts = replace(RUNS, pods_ready=False, ready_lost_s=lost_s)
    assert ready_deadline_s(replace(WAITS, recovery_timeout_s=recovery_s), facts) == deadline_s


def test_whoever_lost_its_pods_long_after_the_start_is_stopped_when_they_had_time_to_recover() -> None:
    lost = replace(RUNS, pods_ready=False, ready_lost_s=5000.0)
    assert stopped(5019, lost, settings=WAITS) == {}
    assert stopped(5020, lost, settings=WAITS) == {"runs": "PodsReadyTimeout"}
    assert stopped(9999, replace(lost, pods_ready=True), settings=WAITS) == {}


def test_whoever_ran_for_as_long_as_it_may_is_switched_off() -> None:
    limited = replace(RUNS, longest_s=60.0)
    assert stopped(109, limited) == {}
    world = queues(cluster_queue("a", cpu=9), limited, replace(RUNS, key="default/other"))
    (found,) = to_stop(world, 110)
    assert (found.workload, found.reason, found.deactivate) == ("default/runs", "Deactivated", True)
    assert found.message.startswith("MaximumExecutionTimeExceeded")
    assert next_deadline_s(world) == 110


def test_time_that_earlier_admissions_took_counts() -> None:
    limited = replace(RUNS, longest_s=60.0, ran_before_s=45.0)
    assert stopped(64, limited) == {}
    assert stopped(65, limited) == {"runs": "Deactivated"}
    assert stopped(65, replace(limited, admitted=False)) == {}, "it runs only once it is admitted"


def test_the_next_deadline_is_the_first_of_any_kind() -> None:
    limited, slow = replace(RUNS, longest_s=60.0), replace(RUNS, key="default/slow", pods_ready=False)
    world = queues(cluster_queue("a", cpu=9), limited, slow, settings=WAITS)
    assert next_deadline_s(world) == 110
    world.held["default/runs"].evicted = True
    assert next_deadline_s(world) == 150


@pytest.mark.parametrize(
    ("said_s", "learnt_s", "longest_s", "expected_s"),
    [
        (None, None, None, None),
        (None, None, 60.0, 50.0),
        (30.0, 90.0, 60.0, 30.0),
        (90.0, None, 60.0, 50.0),
        (None, 90.0, 60.0, 50.0),
        (None, 40.0, 60.0, 40.0),
        (None, 90.0, None, 90.0),
    ],
)
def test_nobody_is_expected_to_run_longer_than_it_may(
    said_s: float | None, learnt_s: float | None, longest_s: float | None, expected_s: float | None
) -> None:
    durations = Durations()
    facts = replace(RUNS, duration_s=said_s, longest_s=longest_s, ran_before_s=10.0)
    if learnt_s is not None:
        durations.learn(facts, learnt_s)
    assert durations.expected_s(facts) == expected_s
