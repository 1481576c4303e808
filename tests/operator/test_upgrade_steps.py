"""What one pass decides about a single node in each state."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from build.upgrading import (
    FAILING,
    NEW,
    NOW_S,
    OLD,
    ORPHAN,
    READY,
    STARTING,
    VALIDATOR,
    decided,
    node,
    policy,
    the_decision,
)
from shoal.operator.upgrades.decision import NodeAction
from shoal.operator.upgrades.nodes import DriverContainer, DriverPod, UpgradeNode, WorkloadPod
from shoal.operator.upgrades.policy import UpgradeOptions
from shoal.operator.upgrades.states import (
    JOBS_SINCE,
    REQUESTED,
    VALIDATION_SINCE,
    WAITS_FOR_SAFE_LOAD,
    WAS_UNSCHEDULABLE,
    UpgradeState,
)
from shoal.operator.upgrades.steps import state_after_drain, state_after_pod_deletion

JOB = WorkloadPod("job", {"app": "job"})
JOBS = {"waitForCompletion": {"podSelector": "app=job"}}
TIMED = {"waitForCompletion": {"podSelector": "app=job", "timeoutSeconds": 30}}
DELETES = UpgradeOptions(deletes_pods=True)
VALIDATES = UpgradeOptions(validates=True)
UNREADY = structs.replace(VALIDATOR, has_ready_containers=False)
KEPT = {WAS_UNSCHEDULABLE: "true"}

MOVES: list[tuple[str, UpgradeNode, dict[str, Any], UpgradeOptions, str]] = [
    ("a new node with the current driver is done", node(driver_pod=NEW), {}, DELETES, "upgrade-done"),
    ("a new node with an old driver needs an upgrade", node(), {}, DELETES, "upgrade-required"),
    ("a new node with an orphaned driver pod is done", node(driver_pod=ORPHAN), {}, DELETES, "upgrade-done"),
    ("a done node with an old driver needs an upgrade", node(state="upgrade-done"), {}, DELETES, "upgrade-required"),
    (
        "a request starts an upgrade of an orphaned driver pod",
        node(state="upgrade-done", driver_pod=ORPHAN, annotations={REQUESTED: "true"}),
        {},
        DELETES,
        "upgrade-required",
    ),
    (
        "a request with another value than true starts nothing",
        node(state="upgrade-done", driver_pod=ORPHAN, annotations={REQUESTED: "yes"}),
        {},
        DELETES,
        "upgrade-done",
    ),
    (
        "a driver that waits for its safe load starts an upgrade",
        node(state="upgrade-done", driver_pod=NEW, annotations={WAITS_FOR_SAFE_LOAD: "pod-1"}),
        {},
        DELETES,
        "upgrade-required",
    ),
    ("a cordoned node waits for jobs", node(state="cordon-required"), {}, DELETES, "wait-for-jobs-required"),
    (
        "without a selector of jobs pods are deleted",
        node(state="wait-for-jobs-required"),
        {},
        DELETES,
        "pod-deletion-required",
    ),
    (
        "without deletion of pods the drain follows",
        node(state="wait-for-jobs-required"),
        {},
        VALIDATES,
        "drain-required",
    ),
    (
        "an active job holds its node",
        node(state="wait-for-jobs-required", pods=(JOB,)),
        JOBS,
        DELETES,
        "wait-for-jobs-required",
    ),
    (
        "a pending job holds its node",
        node(state="wait-for-jobs-required", pods=(structs.replace(JOB, phase="Pending"),)),
        JOBS,
        DELETES,
        "wait-for-jobs-required",
    ),
    (
        "a pod that is no job does not hold its node",
        node(state="wait-for-jobs-required", pods=(WorkloadPod("web", {"app": "web"}),)),
        JOBS,
        DELETES,
        "pod-deletion-required",
    ),
    (
        "pod deletion follows the end of jobs even where it is off",
        node(state="wait-for-jobs-required", pods=(structs.replace(JOB, phase="Succeeded"),)),
        JOBS,
        VALIDATES,
        "pod-deletion-required",
    ),
    ("pod deletion that is off is left out", node(state="pod-deletion-required"), {}, VALIDATES, "drain-required"),
    (
        "a drain that is off is left out",
        node(state="drain-required"),
        {"drain": {"enable": False}},
        DELETES,
        "pod-restart-required",
    ),
    (
        "a driver that runs is validated",
        node(state="pod-restart-required", driver_pod=NEW),
        {},
        VALIDATES,
        "validation-required",
    ),
    (
        "without validation the node is uncordoned",
        node(state="pod-restart-required", driver_pod=NEW),
        {},
        DELETES,
        "uncordon-required",
    ),
    (
        "a node that was unschedulable before skips the uncordon",
        node(state="pod-restart-required", driver_pod=NEW, annotations=KEPT),
        {},
        DELETES,
        "upgrade-done",
    ),
    (
        "a starting driver is waited for",
        node(state="pod-restart-required", driver_pod=STARTING),
        {},
        DELETES,
        "pod-restart-required",
    ),
    (
        "a driver that restarts again and again fails",
        node(state="pod-restart-required", driver_pod=FAILING),
        {},
        DELETES,
        "upgrade-failed",
    ),
    (
        "ten restarts are not yet a failure",
        node(
            state="pod-restart-required",
            driver_pod=DriverPod(has_current_revision=True, containers=(DriverContainer(is_ready=False, restarts=10),)),
        ),
        {},
        DELETES,
        "pod-restart-required",
    ),
    (
        "restarts of a ready container are not a failure",
        node(
            state="pod-restart-required",
            driver_pod=DriverPod(
                has_current_revision=True,
                containers=(DriverContainer(is_ready=True, restarts=90), DriverContainer(is_ready=False)),
            ),
        ),
        {},
        DELETES,
        "pod-restart-required",
    ),
    (
        "a driver pod without containers does not run",
        node(state="pod-restart-required", driver_pod=DriverPod(has_current_revision=True)),
        {},
        DELETES,
        "pod-restart-required",
    ),
    (
        "a pending driver pod does not run",
        node(
            state="pod-restart-required",
            driver_pod=DriverPod(has_current_revision=True, phase="Pending", containers=(READY,)),
        ),
        {},
        DELETES,
        "pod-restart-required",
    ),
    (
        "a deleted driver pod is waited for",
        node(state="pod-restart-required", driver_pod=None),
        {},
        DELETES,
        "pod-restart-required",
    ),
    (
        "validation that is off is left out",
        node(state="validation-required", driver_pod=NEW),
        {},
        DELETES,
        "uncordon-required",
    ),
    (
        "validation waits for its pod",
        node(state="validation-required", driver_pod=NEW),
        {},
        VALIDATES,
        "validation-required",
    ),
    (
        "a ready validation pod ends the validation",
        node(state="validation-required", driver_pod=NEW, pods=(VALIDATOR,)),
        {},
        VALIDATES,
        "uncordon-required",
    ),
    (
        "all validation pods have to be ready",
        node(state="validation-required", driver_pod=NEW, pods=(VALIDATOR, UNREADY)),
        {},
        VALIDATES,
        "validation-required",
    ),
    ("a failed node with an old driver stays failed", node(state="upgrade-failed"), {}, DELETES, "upgrade-failed"),
    (
        "a failed node whose driver does not run stays failed",
        node(state="upgrade-failed", driver_pod=STARTING),
        {},
        DELETES,
        "upgrade-failed",
    ),
    (
        "a failed node with an orphaned driver pod stays failed",
        node(state="upgrade-failed", driver_pod=ORPHAN),
        {},
        DELETES,
        "upgrade-failed",
    ),
    (
        "a failed node whose driver runs is uncordoned",
        node(state="upgrade-failed", driver_pod=NEW),
        {},
        VALIDATES,
        "uncordon-required",
    ),
    (
        "a failed node that was unschedulable before is done",
        node(state="upgrade-failed", driver_pod=NEW, annotations=KEPT),
        {},
        VALIDATES,
        "upgrade-done",
    ),
    ("an uncordoned node is done", node(state="uncordon-required", driver_pod=NEW), {}, DELETES, "upgrade-done"),
    (
        "another controller uncordons its node",
        node(
            state="uncordon-required",
            driver_pod=NEW,
            annotations={"nvidia.com/gpu-driver-upgrade-requestor-mode": "true"},
        ),
        {},
        DELETES,
        "uncordon-required",
    ),
    (
        "a maintenance operator's state is kept",
        node(state="node-maintenance-required"),
        {},
        DELETES,
        "node-maintenance-required",
    ),
    (
        "the state after a maintenance is kept",
        node(state="post-maintenance-required"),
        {},
        DELETES,
        "post-maintenance-required",
    ),
    ("an unknown state is kept", node(state="painted"), {}, DELETES, "painted"),
]


@pytest.mark.parametrize(
    ("one", "fields", "options", "state"), [case[1:] for case in MOVES], ids=[case[0] for case in MOVES]
)
def test_the_next_state(one: UpgradeNode, fields: dict[str, Any], options: UpgradeOptions, state: str) -> None:
    assert the_decision(one, policy(**fields), options).state == state


ACTIONS: list[tuple[str, UpgradeNode, NodeAction | None]] = [
    ("a node is cordoned", node(state="cordon-required"), NodeAction.CORDON),
    ("a cordoned node is cordoned again", node(state="cordon-required", is_unschedulable=True), NodeAction.CORDON),
    ("pods with GPUs are evicted", node(state="pod-deletion-required"), NodeAction.EVICT_GPU_PODS),
    ("the drain starts", node(state="drain-required"), NodeAction.DRAIN),
    ("an old driver pod is restarted", node(state="pod-restart-required"), NodeAction.RESTART_DRIVER_POD),
    (
        "an orphaned driver pod is restarted whatever its revision",
        node(state="pod-restart-required", driver_pod=structs.replace(NEW, is_orphaned=True)),
        NodeAction.RESTART_DRIVER_POD,
    ),
    (
        "a terminating driver pod is not restarted again",
        node(state="pod-restart-required", driver_pod=structs.replace(OLD, is_terminating=True)),
        None,
    ),
    ("a current driver pod is not restarted", node(state="pod-restart-required", driver_pod=STARTING), None),
    ("an orphaned driver pod of a failed node is left", node(state="upgrade-failed", driver_pod=ORPHAN), None),
    ("a node is uncordoned", node(state="uncordon-required", driver_pod=NEW), NodeAction.UNCORDON),
    ("nothing is done on a node that needs an upgrade", node(), None),
]


@pytest.mark.parametrize(("one", "action"), [case[1:] for case in ACTIONS], ids=[case[0] for case in ACTIONS])
def test_the_action(one: UpgradeNode, action: NodeAction | None) -> None:
    decision = the_decision(one, policy(drain={"enable": True}), DELETES)
    assert decision.action == action
    waits = {NodeAction.EVICT_GPU_PODS, NodeAction.DRAIN, NodeAction.RESTART_DRIVER_POD}
    assert (decision.state == one.state) or action not in waits


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


def test_a_failure_names_its_cause() -> None:
    assert the_decision(node(state="pod-restart-required", driver_pod=FAILING)).reason == (
        "the driver pod is not ready after 11 restarts"
    )


def test_the_end_of_an_eviction_or_a_drain_decides_the_next_state() -> None:
    drains = policy(drain={"enable": True})
    assert state_after_pod_deletion(drains, succeeded=True) == UpgradeState.POD_RESTART
    assert state_after_pod_deletion(drains, succeeded=False) == UpgradeState.DRAIN_REQUIRED
    assert state_after_pod_deletion(policy(), succeeded=False) == UpgradeState.FAILED
    assert state_after_drain(succeeded=True) == UpgradeState.POD_RESTART
    assert state_after_drain(succeeded=False) == UpgradeState.FAILED


def test_a_node_without_a_driver_pod_is_managed_only_after_its_upgrade_began() -> None:
    alien, begun = node("alien", driver_pod=None), node("begun", state="drain-required", driver_pod=None)
    assert [one.node for one in decided(alien, begun).decisions] == ["begun"]
