"""The annotations of a node, and the waits whose start they keep."""

from __future__ import annotations

import pytest
from msgspec import structs

from build.upgrading import (
    NEW,
    NOW_S,
    STARTING,
    VALIDATOR,
    decided,
    node,
    policy,
    the_decision,
)
from shoal.operator.upgrades.nodes import UpgradeNode, WorkloadPod
from shoal.operator.upgrades.policy import UpgradeOptions
from shoal.operator.upgrades.states import (
    JOBS_SINCE,
    REQUESTED,
    VALIDATION_SINCE,
    WAITS_FOR_SAFE_LOAD,
    WAS_UNSCHEDULABLE,
)

JOB = WorkloadPod("job", {"app": "job"})
JOBS = {"waitForCompletion": {"podSelector": "app=job"}}
TIMED = {"waitForCompletion": {"podSelector": "app=job", "timeoutSeconds": 30}}
DELETES = UpgradeOptions(deletes_pods=True)
VALIDATES = UpgradeOptions(validates=True)
UNREADY = structs.replace(VALIDATOR, has_ready_containers=False)
KEPT = {WAS_UNSCHEDULABLE: "true"}

ANNOTATIONS: list[tuple[str, UpgradeNode, UpgradeOptions, dict[str, str | None]]] = [
    ("an unschedulable node is remembered as such", node(is_unschedulable=True), DELETES, {WAS_UNSCHEDULABLE: "true"}),
    ("a schedulable node gets no annotation", node(), DELETES, {}),
    (
        "a node that needs no upgrade is not remembered",
        node(state="upgrade-done", driver_pod=NEW, is_unschedulable=True),
        DELETES,
        {},
    ),
    (
        "the initial state is forgotten at the end",
        node(state="pod-restart-required", driver_pod=NEW, annotations=KEPT),
        DELETES,
        {WAS_UNSCHEDULABLE: None},
    ),
    (
        "the initial state is kept until the validation",
        node(state="pod-restart-required", driver_pod=NEW, annotations=KEPT),
        VALIDATES,
        {},
    ),
    (
        "a current driver pod is allowed to load its driver",
        node(state="pod-restart-required", driver_pod=STARTING, annotations={WAITS_FOR_SAFE_LOAD: "pod"}),
        DELETES,
        {WAITS_FOR_SAFE_LOAD: None},
    ),
    (
        "an old driver pod is not allowed to load its driver",
        node(state="pod-restart-required", annotations={WAITS_FOR_SAFE_LOAD: "pod"}),
        DELETES,
        {},
    ),
    (
        "a driver is allowed to load during the validation",
        node(state="validation-required", driver_pod=NEW, annotations={WAITS_FOR_SAFE_LOAD: "pod"}),
        VALIDATES,
        {WAITS_FOR_SAFE_LOAD: None},
    ),
    (
        "a request is granted when the upgrade starts",
        node(state="upgrade-required", annotations={REQUESTED: "true"}),
        DELETES,
        {REQUESTED: None},
    ),
    (
        "the wait for jobs has a start",
        node(state="wait-for-jobs-required", pods=(JOB,)),
        DELETES,
        {JOBS_SINCE: str(NOW_S)},
    ),
    (
        "the start of the wait for jobs is forgotten with their end",
        node(state="wait-for-jobs-required", annotations={JOBS_SINCE: "1"}),
        DELETES,
        {JOBS_SINCE: None},
    ),
    ("no pod of the validation starts no wait", node(state="validation-required", driver_pod=NEW), VALIDATES, {}),
    (
        "the wait for an unready validation pod has a start",
        node(state="validation-required", driver_pod=NEW, pods=(UNREADY,)),
        VALIDATES,
        {VALIDATION_SINCE: str(NOW_S)},
    ),
    (
        "the start of the wait is forgotten with the validation",
        node(state="validation-required", driver_pod=NEW, pods=(VALIDATOR,), annotations={VALIDATION_SINCE: "1"}),
        VALIDATES,
        {VALIDATION_SINCE: None},
    ),
    (
        "a ready validation pod before an unready one restarts the wait",
        node(
            state="validation-required", driver_pod=NEW, pods=(VALIDATOR, UNREADY), annotations={VALIDATION_SINCE: "1"}
        ),
        VALIDATES,
        {VALIDATION_SINCE: str(NOW_S)},
    ),
]


@pytest.mark.parametrize(
    ("one", "options", "changes"), [case[1:] for case in ANNOTATIONS], ids=[case[0] for case in ANNOTATIONS]
)
def test_the_annotations(one: UpgradeNode, options: UpgradeOptions, changes: dict[str, str | None]) -> None:
    assert the_decision(one, policy(**TIMED), options).annotations == changes


@pytest.mark.parametrize(
    ("waited_s", "state", "is_removed"),
    [(29, "wait-for-jobs-required", False), (30, "wait-for-jobs-required", False), (31, "pod-deletion-required", True)],
)
def test_a_job_is_waited_for_until_the_timeout_has_passed(waited_s: int, state: str, *, is_removed: bool) -> None:
    one = node(state="wait-for-jobs-required", pods=(JOB,), annotations={JOBS_SINCE: str(NOW_S - waited_s)})
    decision = the_decision(one, policy(**TIMED), DELETES)
    assert decision.state == state
    assert decision.annotations == ({JOBS_SINCE: None} if is_removed else {})


@pytest.mark.parametrize(
    ("waited_s", "state", "is_removed"), [(600, "validation-required", False), (601, "upgrade-failed", True)]
)
def test_a_validation_fails_after_ten_minutes(waited_s: int, state: str, *, is_removed: bool) -> None:
    since = {VALIDATION_SINCE: str(NOW_S - waited_s)}
    decision = the_decision(node(state="validation-required", pods=(UNREADY,), annotations=since), None, VALIDATES)
    assert decision.state == state
    assert decision.annotations == ({VALIDATION_SINCE: None} if is_removed else {})


def test_jobs_are_waited_for_without_a_timeout() -> None:
    decision = the_decision(node(state="wait-for-jobs-required", pods=(JOB,)), policy(**JOBS), DELETES)
    assert (decision.state, decision.annotations) == ("wait-for-jobs-required", {})
    assert decision.reason == "1 pods of jobs are active, first job"


@pytest.mark.parametrize(
    ("one", "name"),
    [
        (node(state="wait-for-jobs-required", pods=(JOB,), annotations={JOBS_SINCE: "soon"}), JOBS_SINCE),
        (node(state="validation-required", pods=(UNREADY,), annotations={VALIDATION_SINCE: ""}), VALIDATION_SINCE),
    ],
)
def test_a_start_that_is_no_time_keeps_the_node_and_is_named(one: UpgradeNode, name: str) -> None:
    other = node("b", state="uncordon-required", driver_pod=NEW)
    held, done = decided(one, other, by=policy(**TIMED), options=VALIDATES).decisions
    assert (held.state, held.annotations) == (one.state, {})
    assert held.reason.startswith(f"annotation {name} is ")
    assert held.reason.endswith("not a Unix time; remove the annotation")
    assert done.state == "upgrade-done"
