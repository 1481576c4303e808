"""What one pass decides about a single node in each state."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from build.upgrading import (
    FAILING,
    NEW,
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
    AFTER_ACTIONS,
    REQUESTED,
    TRANSITIONS,
    WAITS_FOR_SAFE_LOAD,
    WAS_UNSCHEDULABLE,
    UpgradeState,
)
from shoal.operator.upgrades.steps import state_after_drain, state_after_pod_deletion

JOB = WorkloadPod("job", {"app": "job"})
JOBS = {"waitForCompletion": {"podSelector": "app=job"}}
DELETES = UpgradeOptions(deletes_pods=True)
VALIDATES = UpgradeOptions(validates=True)
UNREADY = structs.replace(VALIDATOR, has_ready_containers=False)
KEPT = {WAS_UNSCHEDULABLE: "true"}

TIMED_CHANGES = {("validation-required", "upgrade-failed")}
"""What the tests of timeouts in `test_upgrade_annotations.py` check."""

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
        "a validated node that was unschedulable before is done",
        node(state="validation-required", driver_pod=NEW, pods=(VALIDATOR,), annotations=KEPT),
        {},
        VALIDATES,
        "upgrade-done",
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


def test_the_cases_above_make_all_listed_changes_and_no_others() -> None:
    made = {
        (one.state, decision.state)
        for _, one, fields, options, _ in MOVES
        if (decision := the_decision(one, policy(**fields), options)).state != one.state
    }
    started = (UpgradeState.UPGRADE_REQUIRED, UpgradeState.CORDON_REQUIRED)
    listed = {(before, after) for before, states in TRANSITIONS.items() for after in states}
    assert made | {started, *TIMED_CHANGES} == listed


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


def test_the_changes_after_an_action_are_those_of_the_table() -> None:
    policies = (policy(), policy(drain={"enable": True}))
    deleted = {state_after_pod_deletion(by, succeeded=ended) for by in policies for ended in (True, False)}
    drained = {state_after_drain(succeeded=ended) for ended in (True, False)}
    assert {UpgradeState.POD_DELETION: deleted, UpgradeState.DRAIN_REQUIRED: drained} == AFTER_ACTIONS


def test_a_node_without_a_driver_pod_is_managed_only_after_its_upgrade_began() -> None:
    alien, begun = node("alien", driver_pod=None), node("begun", state="drain-required", driver_pod=None)
    assert [one.node for one in decided(alien, begun).decisions] == ["begun"]
