"""What became of the pods of one job, from the queue to the devices."""

from __future__ import annotations

from shoal.cost.records import DeviceShare, Holder, Holding, Wait
from shoal.views.job_history import MOST_ATTEMPTS, JobSubject, pod_attempts

JOB = JobSubject("job", "ml", "train")
POD = Holder("train-0", "ml", "train", queue="main", owner_kind="Job")


def held(start_ms: int, end_ms: int | None = None, holder: Holder = POD, *, preempted: bool = False) -> Holding:
    devices = (DeviceShare("GPU-a"), DeviceShare("GPU-b", part="MIG-1"))
    return Holding(holder, "n-0", start_ms, start_ms + 5, end_ms, devices, is_preempted=preempted)


def test_a_pod_that_was_preempted_and_came_back_has_two_attempts_the_newest_first() -> None:
    waits = [Wait(POD, 0, 10, 1, reason="NoQuota"), Wait(POD, 10, 30, 1, reason="NoDeviceFits"), Wait(POD, 90, 120, 1)]
    found, count = pod_attempts([held(30, 80, preempted=True), held(120)], waits, JOB, 200)
    assert count == 2
    assert [(one.queued_ms, one.waited_ms, one.bound_ms, one.end_ms) for one in found] == [
        (90, 30, 120, None),
        (0, 30, 30, 80),
    ]
    assert found[1].reasons == ["NoQuota", "NoDeviceFits"]
    assert found[1].devices == ["GPU-a", "MIG-1"]
    assert [one.is_preempted for one in found] == [False, True]


def test_a_pod_that_still_waits_has_no_node_and_has_waited_until_now() -> None:
    [one], _ = pod_attempts([], [Wait(POD, 50, None, 1, reason="NoQuota")], JOB, 200)
    assert (one.machine, one.waited_ms, one.end_ms) == ("", 150, None)


def test_a_pod_that_was_deleted_while_it_waited_has_ended() -> None:
    [one], _ = pod_attempts([], [Wait(POD, 50, 70, 1)], JOB, 200)
    assert (one.waited_ms, one.end_ms, one.bound_ms) == (20, 70, None)


def test_a_holding_whose_wait_was_not_seen_has_no_time_in_the_queue() -> None:
    [one], _ = pod_attempts([held(30, 80)], [], JOB, 200)
    assert (one.queued_ms, one.waited_ms, one.bound_ms) == (None, 0, 30)


def test_pods_of_other_namespaces_and_of_objects_of_another_kind_are_left_out() -> None:
    others = [
        Holder("train-0", "other", "train", owner_kind="Job"),
        Holder("train-1", "ml", "train", owner_kind="StatefulSet"),
        Holder("x", "ml", "else", owner_kind="Job"),
        Holder("d", "ml", "train", owner_kind="Job", is_overhead=True),
        Holder("", "ml", "train", owner_kind="Job"),
    ]
    found, count = pod_attempts([held(30, 80, one) for one in [*others, POD]], [], JOB, 200)
    assert [one.pod for one in found] == ["train-0"]
    assert count == 1


def test_a_gang_is_found_by_its_own_name_and_by_that_of_its_job() -> None:
    gang = Holder("worker-0", "ml", "", gang="ring")
    subject = JobSubject("gang", "ml", "ring")
    assert pod_attempts([held(1, 2, gang), held(3, 4)], [], subject, 9)[0][0].pod == "worker-0"
    assert pod_attempts([held(3, 4)], [], JobSubject("gang", "ml", "train"), 9)[1] == 1
    assert pod_attempts([held(3, 4)], [], JobSubject("pod", "ml", "train-0"), 9)[1] == 1


def test_of_many_attempts_the_newest_are_shown() -> None:
    found, count = pod_attempts([held(at, at + 1) for at in range(MOST_ATTEMPTS + 1)], [], JOB, 10**6)
    assert (len(found), count, found[0].bound_ms) == (MOST_ATTEMPTS, MOST_ATTEMPTS + 1, MOST_ATTEMPTS)
