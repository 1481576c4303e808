"""The history of an object: who stopped it, when it was admitted, and what failed, in six lines at most."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from shoal.views.history import MOST_LINES, Happening, history_lines

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
    assert told == ["18:45:08 FailedCreate: Error creating: pods ... is forbidden"]


def test_the_newest_lines_are_kept_and_states_are_left_out() -> None:
    many = [happening(at, f"Fault{at}", "broke", warns=True) for at in range(9)]
    told = history_lines([*many, happening(99, "FailedScheduling", "0/1 nodes", warns=True)], {}, "pod")
    assert len(told) == MOST_LINES
    assert told[-1] == "18:45:08 Fault8: broke"
