"""How the status of a job may go on, told as a controller writes it, and what is refused on the way."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.kind_objects import complaints, created, job, texts
from shoal.embedded.apiserver.kinds.table import STRATEGIES
from shoal.embedded.apiserver.kinds.workloads.indexes import read_indexes, shared_index

TWO_PARTS = "violates the requirement that an index interval can have at most two parts separated by '-'"
START, END = "2026-11-21T10:00:00Z", "2026-11-21T10:05:00Z"
DONE = {"startTime": START, "completionTime": END, "succeeded": 1, "ready": 0, "terminating": 0}


def conditions(*types: str) -> list[dict[str, Any]]:
    return [{"type": one, "status": "True", "lastTransitionTime": END, "lastProbeTime": END} for one in types]


BOTH = conditions("SuccessCriteriaMet", "Complete")


def said(status: dict[str, Any], before: Any = None, **spec: Any) -> list[str]:
    made = created("batch", "jobs", job(**spec))
    return texts(
        STRATEGIES["batch", "jobs"].validate_status(made | {"status": status}, made | {"status": before or {}})
    )


RUNNING = {
    "startTime": START, "active": 2, "ready": 1, "terminating": 1,
    "uncountedTerminatedPods": {"succeeded": ["u1"], "failed": ["u2"]},
}  # fmt: skip
NEAR_END = RUNNING | {"active": 0, "ready": 0, "succeeded": 1, "failed": 1, "uncountedTerminatedPods": {}}
STORIES: dict[str, list[dict[str, Any]]] = {
    "a success": [
        {},
        RUNNING,
        NEAR_END | {"conditions": conditions("SuccessCriteriaMet")},
        DONE | {"failed": 1, "uncountedTerminatedPods": {}, "conditions": BOTH},
    ],
    "a success at once": [{}, DONE | {"conditions": BOTH}],
    "a failure": [
        {},
        RUNNING,
        NEAR_END | {"conditions": conditions("FailureTarget")},
        {"startTime": START, "failed": 7, "terminating": 0, "conditions": conditions("FailureTarget", "Failed")}
        | {"succeeded": 1, "uncountedTerminatedPods": {}},
    ],
}


@pytest.mark.parametrize("story", STORIES)
def test_a_job_goes_its_usual_way(story: str) -> None:
    steps = STORIES[story]
    for before, status in pairwise(steps):
        assert said(status, before) == []
    assert said(steps[-1], steps[-1]) == []


def test_a_suspended_job_loses_its_start_and_gets_another() -> None:
    stopped = {"conditions": conditions("Suspended")}
    assert said(stopped, {"startTime": START, "active": 1}, suspend=True) == []
    assert said({"startTime": END, "active": 1}, stopped) == []
    assert said({"active": 1}, {"startTime": START, "active": 1}) == [
        "status.startTime: Required value: startTime cannot be removed for unsuspended job"
    ]


def test_an_indexed_job_with_failed_indexes_is_taken() -> None:
    spec: dict[str, Any] = {"completionMode": "Indexed", "completions": 10, "backoffLimitPerIndex": 1, "parallelism": 3}
    status = {"startTime": START, "completedIndexes": "0,2-4", "failedIndexes": "1,5-6", "succeeded": 4, "failed": 6}
    assert said(status, **spec) == []
    assert said(status | {"failedIndexes": ""}, **spec) == []


@pytest.mark.parametrize("field", ["active", "succeeded", "failed", "ready", "terminating"])
def test_counts_are_not_negative(field: str) -> None:
    assert said({field: -1})[0] == f"status.{field}: Invalid value: -1: must be greater than or equal to 0"


def test_completion_alone_lacks_nearly_everything() -> None:
    assert said({"conditions": conditions("Complete")}) == [
        "status.completionTime: Required value: completionTime is required for Complete jobs",
        (
            "status.conditions: Invalid value: cannot set Complete=True condition without the "
            "SuccessCriteriaMet=true condition"
        ),
        "status.startTime: Required value: startTime is required for finished job",
    ]


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (
        DONE | {"completionTime": "2026-11-21T09:00:00Z", "conditions": BOTH},
        {},
        'status.completionTime: Invalid value: "2026-11-21T09:00:00Z": completionTime cannot be set before startTime',
    ),
    (
        {"startTime": START, "completionTime": END},
        {"startTime": START},
        (
            f'status.completionTime: Invalid value: "{END}": cannot set completionTime when there is no Complete=True '
            "condition"
        ),
    ),
    (
        {"startTime": START, "conditions": conditions("Failed")},
        {"startTime": START},
        "status.conditions: Invalid value: cannot set Failed=True condition without the FailureTarget=true condition",
    ),
    (
        DONE | {"active": 1, "conditions": BOTH},
        {},
        "status.active: Invalid value: 1: active>0 is invalid for finished job",
    ),
    (
        DONE | {"terminating": 1, "conditions": BOTH},
        {},
        "status.terminating: Invalid value: 1: terminating>0 is invalid for finished job",
    ),
    (
        DONE | {"uncountedTerminatedPods": {"failed": ["u"]}, "conditions": BOTH},
        {},
        (
            'status.uncountedTerminatedPods: Invalid value: {"failed":["u"]}: uncountedTerminatedPods needs to be '
            "empty for finished job"
        ),
    ),
    ({"active": 1, "ready": 2}, {}, "status.ready: Invalid value: 2: cannot set more ready pods than active"),
    ({"failed": 1}, {"failed": 2}, "status.failed: Invalid value: 1: cannot decrease the failed counter"),
    ({}, {"succeeded": 2}, "status.succeeded: Invalid value: 0: cannot decrease the succeeded counter"),
    (
        {"conditions": conditions("SuccessCriteriaMet", "FailureTarget")},
        {},
        "status.conditions: Invalid value: cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
    ),
    (
        {"startTime": START},
        {"startTime": START, "conditions": conditions("FailureTarget")},
        "status.conditions: Invalid value: cannot disable the terminal FailureTarget=True condition",
    ),
    (
        DONE | {"completionTime": "2026-11-21T11:00:00Z", "conditions": BOTH},
        DONE | {"conditions": BOTH},
        'status.completionTime: Invalid value: "2026-11-21T11:00:00Z": completionTime cannot be mutated',
    ),
    (
        {"uncountedTerminatedPods": {"succeeded": ["u"], "failed": ["u"]}},
        {},
        'status.uncountedTerminatedPods.failed[0]: Duplicate value: "u"',
    ),
    (
        {"completedIndexes": "0"},
        {},
        (
            'status.completedIndexes: Invalid value: "0": cannot set non-empty completedIndexes when non-indexed '
            "completion mode"
        ),
    ),
    (
        {"failedIndexes": ""},
        {},
        'status.failedIndexes: Invalid value: "": cannot set non-null failedIndexes when backoffLimitPerIndex is null',
    ),
]


@pytest.mark.parametrize(("status", "before", "words"), REFUSED)
def test_a_wrong_turn_is_refused(status: dict[str, Any], before: dict[str, Any], words: str) -> None:
    assert said(status, before) == [words]


def test_what_was_wrong_before_does_not_stop_other_writes() -> None:
    wrong = {"active": 1, "ready": 2, "conditions": conditions("Failed")}
    assert said(wrong | {"failed": 1}, wrong) == []


def test_an_elastic_job_may_count_down() -> None:
    spec: dict[str, Any] = {"completionMode": "Indexed", "completions": 3, "parallelism": 3}
    assert said({"succeeded": 1}, {"succeeded": 2}, **spec) == []


@pytest.mark.parametrize(
    ("indexes", "words"),
    [
        ("1-2-3", f'the fragment "1-2-3" {TWO_PARTS}'),
        ("x", 'cannot convert string to integer for index: "x"'),
        ("10", 'too large index: "10"'),
        ("3,2", "non-increasing order, previous: 3, current: 2"),
    ],
)  # fmt: skip
def test_indexes_rise_and_are_numbers(indexes: str, words: str) -> None:
    spec: dict[str, Any] = {"completionMode": "Indexed", "completions": 10}
    (found,) = said({"completedIndexes": indexes}, **spec)
    assert found.endswith(f"error parsing completedIndexes: {words}")


def test_an_index_does_not_both_complete_and_fail() -> None:
    spec: dict[str, Any] = {"completionMode": "Indexed", "completions": 10, "backoffLimitPerIndex": 1}
    assert said({"completedIndexes": "0-4", "failedIndexes": "3-5"}, **spec) == [
        'status.failedIndexes: Invalid value: "3-5": failedIndexes and completedIndexes overlap at index: 3'
    ]


@settings(max_examples=examples(50))
@given(st.sets(st.integers(0, 30)), st.sets(st.integers(0, 30)))
def test_the_shared_index_is_the_smallest_of_both(one: set[int], other: set[int]) -> None:
    spans = [read_indexes(",".join(map(str, sorted(each))), 31) for each in (one, other)]
    assert shared_index(*spans) == min(one & other, default=None)


def test_a_manager_is_a_path_in_a_domain() -> None:
    assert complaints("batch", "jobs", job(managedBy="kueue.x-k8s.io/multikueue")) == []
    assert complaints("batch", "jobs", job(managedBy="kubernetes.io/job-controller")) == []
    assert complaints("batch", "jobs", job(managedBy="x")) == [
        'spec.managedBy: Invalid value: "x": must be a domain-prefixed path (such as "acme.io/foo")'
    ]
    assert complaints("batch", "jobs", job(managedBy="a.io/" + "x" * 60)) == [
        "spec.managedBy: Too long: may not be more than 63 bytes"
    ]
