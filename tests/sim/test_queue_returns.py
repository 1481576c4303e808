"""What rounds keep of those who had to stop: time they have run, and what budgets allow without their pods."""

from __future__ import annotations

from build.gpu_queues import BY_PRIORITY, admitted_in, gpu_job, gpu_queue, gpu_workload, gpus, lived, rounds_on
from build.manifests import Object, node, pod, thing
from build.queue_manifests import condition, configuration, flavor
from shoal.sim.queue_future import future_of
from shoal.sim.queue_rounds import QueueRecord

AT = [f"2026-01-01T0{hour}:00:00Z" for hour in range(9)]
HOUR = 3600.0


def pair(*, allowed: int, respects: bool = True) -> list[Object]:
    """Two workloads of a pod each, four GPUs wide, on one node and under one budget."""
    held = [gpu_workload(f"t/v{index}", 1, 4, "f") for index in range(2)]
    of = [{"kueue.x-k8s.io/workload": f"v{index}"} for index in range(2)]
    pods = [pod(f"t/v{index}-p", 4, on="n", labels={"app": "x"}, annotations=of[index]) for index in range(2)]
    spec = {"maxUnavailable": allowed, "selector": {"matchLabels": {"app": "x"}}}
    budget = thing("policy/v1", "PodDisruptionBudget", "t/b", spec=spec)
    settings = configuration(shoal={"respectBudgets": respects}, waitForPodsReady={"enable": False})
    return [settings, node("n", 8), flavor(), *gpu_queue("t", gpus(8), preemption=BY_PRIORITY), *held, *pods, budget]


def preempted(records: list[QueueRecord]) -> list[str]:
    return sorted(each.workload for record in records for each in record.preempted)


def test_two_pods_of_one_budget_do_not_go_for_one_workload() -> None:
    big = gpu_workload("t/big", 1, 8, priority=5)
    assert preempted(lived(rounds_on(*pair(allowed=1), big))) == []
    assert preempted(lived(rounds_on(*pair(allowed=2), big))) == ["t/v0", "t/v1"]
    assert preempted(lived(rounds_on(*pair(allowed=1, respects=False), big))) == ["t/v0", "t/v1"]


def test_rounds_that_follow_one_another_do_not_overdraw_a_budget() -> None:
    wants = [gpu_workload(f"t/high{index}", 1, 4, priority=5) for index in range(2)]
    assert len(preempted(lived(rounds_on(*pair(allowed=1), *wants)))) == 1
    assert len(preempted(lived(rounds_on(*pair(allowed=2), *wants)))) == 2


def test_whoever_runs_again_is_not_missing_to_its_budget_any_more() -> None:
    rounds = rounds_on(*pair(allowed=1), gpu_workload("t/high", 1, 4, priority=5))
    (gone,) = preempted(lived(rounds))
    other = next(key for key in ("t/v0", "t/v1") if key != gone)
    assert [use.allowed for use in rounds.kueue.queues.held[other].facts.budgets] == [0]
    rounds.finish("t/high")
    assert gone in admitted_in(lived(rounds))
    assert [use.allowed for use in rounds.kueue.queues.held[other].facts.budgets] == [1]


def test_time_that_a_stopped_workload_has_run_counts_towards_its_limit() -> None:
    low = gpu_workload("t/low", 1, 8, "f", at=AT[0])
    low["spec"]["maximumExecutionTimeSeconds"] = 5 * 3600
    high = gpu_workload("t/high", 2, 4, priority=9, at=AT[3], lasts="1h")
    world = [node("n", 8), flavor(), *gpu_queue("t", gpus(8), preemption=BY_PRIORITY), low, high]
    future = future_of(rounds_on(*world, gpu_workload("t/last", 1, 8, at=AT[3])))
    assert future.starts["t/last"] == 3 * HOUR, "one for the one that is preferred, two are left of five"


def test_whoever_ran_too_long_already_is_switched_off_and_its_room_is_free() -> None:
    runs = gpu_workload("t/runs", 1, 8, "f", at=AT[0])
    runs["spec"]["maximumExecutionTimeSeconds"] = 60
    later = gpu_workload("t/later", 1, 8, at=AT[2])
    records = lived(rounds_on(node("n", 8), flavor(), *gpu_queue("t", gpus(8)), runs, later))
    assert [(each.workload, each.reason) for record in records for each in record.stopped] == [
        ("t/runs", "Deactivated")
    ]
    assert admitted_in(records) == ["t/later"]
    assert [(each.workload, each.why.value) for each in records[-1].waiting] == [("t/runs", "OnHold")]


def test_lost_readiness_is_judged_by_the_time_to_recover() -> None:
    waits = configuration(waitForPodsReady={"timeout": "5m", "recoveryTimeout": "1m"})
    for lost, now, reasons in (
        ("2026-01-01T03:00:00Z", "2026-01-01T03:00:30Z", []),
        ("2026-01-01T00:00:10Z", "2026-01-01T00:01:40Z", ["PodsReadyTimeout"]),
    ):
        runs = gpu_workload("t/runs", 1, 6, "f", at=AT[0])
        runs["status"]["conditions"].append(condition("PodsReady", "False", lost, "WaitForRecovery"))
        (first, *_) = lived(
            rounds_on(waits, node("n", 8), flavor(), *gpu_queue("t", gpus(8)), runs, gpu_job("t/later", 1, 8, now))
        )
        assert [each.reason for each in first.stopped] == reasons


def finished(name: str) -> Object:
    """It asked for six GPUs, and ran for ten minutes."""
    done = gpu_workload(name, 1, 6, "f", at="2025-12-31T00:00:00Z")
    done["status"]["conditions"].append(condition("Finished", at="2025-12-31T00:10:00Z", reason="Succeeded"))
    return done


def test_with_history_a_gang_is_promised_a_start_and_long_work_does_not_overtake_it() -> None:
    settings = configuration(shoal={"reservations": True}, waitForPodsReady={"enable": False})
    world = [settings, node("n", 8), flavor(), *gpu_queue("t", gpus(8)), gpu_workload("t/runs", 1, 6, "f", at=AT[0])]
    work = [gpu_workload("t/gang", 1, 8, priority=5), gpu_workload("t/long", 1, 2, lasts="10h")]
    assert admitted_in(lived(rounds_on(*world, *work))) == ["t/long"]
    assert admitted_in(lived(rounds_on(*world, *work, finished("t/old")))) == []


def test_work_whose_like_has_finished_ends_in_the_future_when_that_is_up() -> None:
    world = [node("n", 8), flavor(), *gpu_queue("t", gpus(8)), gpu_workload("t/runs", 1, 6, "f", at=AT[0])]
    next_ = gpu_workload("t/next", 1, 8, at=AT[0])
    assert "t/next" not in future_of(rounds_on(*world, next_)).starts
    assert future_of(rounds_on(*world, next_, finished("t/old"))).starts["t/next"] == 600.0
