"""Virtual time behind queues: who starts when, as far as anything is known of it."""

from __future__ import annotations

from build.gpu_queues import BY_PRIORITY, gpu_job, gpu_queue, gpu_workload, gpus, rounds_on
from build.manifests import Object, node
from build.queue_manifests import configuration, flavor
from shoal.engine.queues.decisions import Admitted, Preempted
from shoal.engine.queues.facts import QuotaAssignment
from shoal.engine.queues.reasons import Yield
from shoal.sim.queue_future import Future, _Life, future_of
from shoal.sim.queue_rounds import QueueRecord

AT = [f"2026-01-01T0{hour}:00:00Z" for hour in range(6)]
HOUR = 3600.0


def live(*objects: Object, quota: int = 8, preemption: Object | None = None) -> Future:
    queue = gpu_queue("t", gpus(quota), preemption=preemption)
    return future_of(rounds_on(node("n", 8), flavor(), *queue, *objects))


def test_one_after_the_other_starts_when_the_one_before_has_ended() -> None:
    work = [gpu_workload(f"t/w{number}", 1, 8, at=AT[number], lasts="2h") for number in range(3)]
    future = live(*work)
    assert future.starts == {"t/w0": 0.0, "t/w1": 2 * HOUR, "t/w2": 4 * HOUR}
    assert (future.ran, future.is_quiet) == (set(), True)


def test_those_that_run_already_end_when_their_time_is_up_and_not_later_for_having_been_seen() -> None:
    held = gpu_workload("t/held", 1, 8, "f", at=AT[0], lasts="3h")
    future = live(held, gpu_workload("t/next", 1, 8, at=AT[1]))
    assert future.starts == {"t/held": 0.0, "t/next": 2 * HOUR}
    assert future.ran == {"t/held"}


def test_those_that_should_have_ended_long_ago_end_now() -> None:
    held = gpu_workload("t/held", 1, 8, "f", at=AT[0], lasts="1h")
    assert live(held, gpu_workload("t/next", 1, 8, at=AT[5])).starts["t/next"] == 0.0


def test_behind_work_of_unknown_length_nothing_is_promised() -> None:
    assert "t/next" not in live(gpu_workload("t/held", 1, 8, "f"), gpu_workload("t/next", 1, 8)).starts


def test_what_its_like_took_is_what_work_is_expected_to_take() -> None:
    known = gpu_workload("t/a", 1, 8, at=AT[0], lasts="2h")
    alike, last = gpu_workload("t/b", 1, 8, at=AT[1]), gpu_job("t/c", 1, 8, AT[2])
    assert live(known, alike, last).starts == {"t/a": 0.0, "t/b": 2 * HOUR, "t/job-c": 4 * HOUR}


def test_whoever_has_to_stop_starts_over() -> None:
    low = gpu_workload("t/low", 1, 8, "f", at=AT[0], lasts="4h")
    high = gpu_workload("t/high", 1, 8, priority=9, at=AT[3], lasts="1h")
    last = gpu_workload("t/last", 1, 8, at=AT[3])
    future = live(low, high, last, preemption=BY_PRIORITY)
    assert [(stop.after_s, stop.beneficiary) for stop in future.stops["t/low"]] == [(0.0, "t/high")]
    assert future.starts == {"t/low": 0.0, "t/high": 0.0, "t/last": 5 * HOUR}


def test_a_backoff_that_ends_is_a_moment_at_which_something_happens() -> None:
    later = gpu_workload("t/later", 1, 8, at=AT[0])
    later["status"] = {"requeueState": {"count": 1, "requeueAt": AT[2]}}
    assert live(later, gpu_workload("t/now", 1, 1, at=AT[1]), quota=16).starts == {"t/now": 0.0}
    assert live(later).starts == {"t/later": 2 * HOUR}


def test_pods_that_do_not_get_ready_hold_up_the_others_until_their_time_is_up() -> None:
    waits = configuration(waitForPodsReady={"enable": True, "blockAdmission": True, "timeout": "10m"})
    stuck = gpu_workload("t/stuck", 1, 8, "f", at=AT[0])
    stuck["spec"]["podSets"][0]["template"]["spec"]["nodeSelector"] = {"no": "where"}
    stuck["status"]["conditions"].append({"type": "PodsReady", "status": "False", "lastTransitionTime": AT[0]})
    other = [*gpu_queue("u", gpus(8)), gpu_workload("u/w", 1, 1, at=AT[0])]
    future = live(waits, stuck, *other)
    assert [(stop.after_s, stop.reason) for stop in future.stops["t/stuck"]] == [(600.0, "PodsReadyTimeout")]
    assert future.starts["u/w"] == 600.0


def test_whoever_comes_back_is_told_with_the_moment_and_whoever_does_not_without() -> None:
    low = gpu_workload("t/low", 1, 8, "f", at=AT[0], lasts="4h")
    high = [gpu_workload("t/high", 1, 8, priority=9, at=AT[3], lasts="1h")]
    back = live(low, *high, preemption=BY_PRIORITY)
    assert [stop.back_s for stop in back.stops["t/low"]] == [HOUR]
    high = [gpu_workload("t/high", 1, 8, priority=9, at=AT[3])]
    gone = live(gpu_workload("t/low", 1, 8, "f", at=AT[0]), *high, preemption=BY_PRIORITY)
    assert [stop.back_s for stop in gone.stops["t/low"]] == [None]


def test_what_ends_in_the_moment_in_which_it_began_has_neither_started_nor_stopped() -> None:
    rounds = rounds_on(flavor(), *gpu_queue("t", gpus(8)), gpu_workload("t/w", 1, 8))
    life = _Life(rounds)
    admitted = Admitted("t/w", "t/q", QuotaAssignment("t"))
    life._note(QueueRecord(admitted=[admitted]))
    life._note(QueueRecord(preempted=[Preempted("t/w", "t/v", Yield.RECLAIM)]))
    assert (life._future.starts, life._future.stops) == ({}, {})
