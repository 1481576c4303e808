"""The history of an object: who stopped it, when it was admitted, and what failed, in a few lines."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from shoal.views.history import DELETED, FAILED, MOST_LINES, Happening, history_lines

BEGIN = datetime(2026, 1, 1, 18, 45, 0, tzinfo=UTC)
PREEMPTED = (
    "Preempted to accommodate a workload (UID: u-1, JobUID: j-1) due to reclamation within the cohort; "
    "preemptor path: /research/vision; preemptee path: /research/language"
)


def happening(
    second: int, reason: str, message: str = "", kind: str = "job", name: str = "pretrain", *, warns: bool = False
) -> Happening:
    return Happening(BEGIN + timedelta(seconds=second), kind, name, reason, message, warns)


def test_a_preempted_job_names_the_job_it_was_stopped_for() -> None:
    told = history_lines(
        [
            happening(1, "Stopped", PREEMPTED),
            happening(1, "EvictedDueToPreempted", PREEMPTED, kind="workload", name="job-pretrain-1"),
            happening(0, "Started", "Admitted by clusterQueue language"),
        ],
        {"j-1": "default/finetune"},
        "job",
    )
    assert told == [
        "18:45:00 admitted by ClusterQueue language",
        "18:45:01 stopped for default/finetune (reclamation within the cohort)",
    ]


def test_a_preemptor_that_is_gone_is_not_named() -> None:
    told = history_lines([happening(1, "Stopped", PREEMPTED)], {}, "job")
    assert told == ["18:45:01 stopped for a workload that is gone (reclamation within the cohort)"]


def test_pods_that_start_together_are_one_line() -> None:
    started = [happening(2, "Started", "Container started", "pod", f"w-{at}") for at in range(2)]
    assert history_lines(started, {}, "job") == ["18:45:02 w-0, w-1 started"]
    started += [happening(2, "Started", "Container started", "pod", f"w-{at}") for at in range(2, 4)]
    assert history_lines(started, {}, "job") == ["18:45:02 4 pods started"]
    assert history_lines(started[:1], {}, "pod") == ["18:45:02 started"]


def test_a_repeated_warning_is_told_once_at_its_last_time() -> None:
    told = history_lines(
        [
            happening(at, "FailedCreate", f'Error creating: pods "w-{at}" is forbidden', warns=True)
            for at in range(MOST_LINES + 3)
        ],
        {},
        "job",
    )
    assert told == ["18:45:10 FailedCreate: Error creating: pods ... is forbidden"]


def test_names_in_a_message_stay_but_for_that_of_the_pod_that_is_not_created() -> None:
    message = 'Error creating: pods "w-x7" is forbidden: serviceaccount "trainer" not found'
    told = history_lines([happening(1, "FailedCreate", message, warns=True)], {}, "job")
    assert told == ['18:45:01 FailedCreate: Error creating: pods ... is forbidden: serviceaccount "trainer" not found']


def test_the_newest_lines_are_kept_and_states_are_left_out() -> None:
    many = [happening(at, f"Fault{at}", "broke", warns=True) for at in range(MOST_LINES + 1)]
    told = history_lines([*many, happening(99, "FailedScheduling", "0/1 nodes", warns=True)], {}, "pod")
    assert len(told) == MOST_LINES
    assert told[-1] == f"18:45:0{MOST_LINES} Fault{MOST_LINES}: broke"


def test_a_failed_pod_is_told_after_what_happened_to_its_node() -> None:
    told = history_lines(
        [
            happening(9, FAILED, "container main exited with code 1", "pod", "w-0"),
            happening(9, "XidError", "NVRM: Xid: 79, GPU has fallen off the bus", "node", "n", warns=True),
            happening(10, "Killing", "Stopping container main", "pod", "w-0"),
            happening(11, DELETED, "Deleted pod: w-0", "pod", "w-0"),
            happening(40, "GpuMended", "GPU 3 works again", "node", "n"),
            happening(41, "Started", "Container started", "pod", "w-1"),
            happening(42, "RegisteredNode", "Node n event", "node", "n"),
        ],
        {},
        "job",
    )
    assert told == [
        "18:45:09 node n: XidError: NVRM: Xid: 79, GPU has fallen off the bus",
        "18:45:09 w-0 failed: container main exited with code 1",
        "18:45:40 node n: GpuMended: GPU 3 works again",
        "18:45:41 w-1 started",
    ]


CAUSES = {
    "preemption": ("Preempted", "Preempted by pod u-9 on node n", "stopped for t/high"),
    "preemption for a gang": ("Preempted", "Preempted by t/gang on node n", "stopped for t/gang"),
    "a taint": ("TaintManagerEviction", "Marking for deletion Pod t/w-0", "evicted because of a taint of its node"),
    "an eviction that was cancelled": (
        "TaintManagerEviction",
        "Cancelling deletion of Pod t/w-0",
        "was not evicted: the taint of its node is gone",
    ),
    "a move": (
        "Moved",
        "Moved away from node n to make room for t/x",
        "Moved: Moved away from node n to make room for t/x",
    ),
}


@pytest.mark.parametrize("case", CAUSES)
def test_a_pod_of_a_job_that_was_ended_says_because_of_what(case: str) -> None:
    reason, message, words = CAUSES[case]
    told = history_lines(
        [
            happening(5, reason, message, "pod", "w-0"),
            happening(6, "Killing", "Stopping container main", "pod", "w-0"),
            happening(7, DELETED, "", "pod", "w-1"),
        ],
        {"u-9": "t/high"},
        "job",
    )
    assert told == [f"18:45:05 w-0 {words}", "18:45:07 w-1 deleted"]


def test_a_pod_that_is_deleted_without_a_cause_is_told() -> None:
    told = history_lines([happening(6, "Killing", "Stopping container main", "pod", "w-0")], {}, "job")
    assert told == ["18:45:06 w-0 is being stopped"]


def test_pods_of_a_job_that_fail_within_seconds_are_one_line() -> None:
    ends = [happening(at, FAILED, "container main exited with code 1", "pod", f"w-{at}") for at in (1, 3, 60)]
    assert history_lines(ends, {}, "job") == [
        "18:45:01 w-1, w-3 failed: container main exited with code 1",
        "18:46:00 w-60 failed: container main exited with code 1",
    ]
