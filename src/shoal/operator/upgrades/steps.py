"""Decides about one node in each state, from the facts at the start of the pass.

What depends on all nodes, which of them start, is in `passes.py`.
"""

from __future__ import annotations

from shoal.operator.upgrades.decision import (
    NodeAction,
    UpgradeDecision,
    allowed_load,
    ends,
    moves,
    stays,
    waits_for,
)
from shoal.operator.upgrades.nodes import DriverPod, UpgradeNode
from shoal.operator.upgrades.policy import UpgradeOptions, UpgradePolicy
from shoal.operator.upgrades.states import (
    EXTERNAL_MAINTENANCE,
    REQUESTED,
    WAITS_FOR_SAFE_LOAD,
    WAS_UNSCHEDULABLE,
    UpgradeState,
)
from shoal.operator.upgrades.waiting import validate, wait_for_jobs


def decide_node(node: UpgradeNode, policy: UpgradePolicy, options: UpgradeOptions, now_s: int) -> UpgradeDecision:
    """About a node in any state but `upgrade-required`. States that are not this operator's are left as they are."""
    match node.state:
        case UpgradeState.UNKNOWN | UpgradeState.DONE:
            return _compare_revisions(node)
        case UpgradeState.CORDON_REQUIRED:
            return _with(moves(node, UpgradeState.WAIT_FOR_JOBS, "cordoned"), NodeAction.CORDON)
        case UpgradeState.WAIT_FOR_JOBS:
            return wait_for_jobs(node, policy, options, now_s)
        case UpgradeState.POD_DELETION:
            return _delete_pods(node, options)
        case UpgradeState.DRAIN_REQUIRED:
            return _drain(node, policy)
        case UpgradeState.POD_RESTART:
            return _restart(node, options)
        case UpgradeState.VALIDATION_REQUIRED:
            return validate(node, options, now_s)
        case UpgradeState.UNCORDON_REQUIRED:
            return _uncordon(node)
        case UpgradeState.FAILED:
            return _retry(node)
        case _:
            return stays(node)


def state_after_pod_deletion(policy: UpgradePolicy, *, succeeded: bool) -> UpgradeState:
    """Of a node in `pod-deletion-required` whose eviction has ended. A drain may still evict the remaining pods."""
    if succeeded:
        return UpgradeState.POD_RESTART
    return UpgradeState.DRAIN_REQUIRED if policy.drain.is_enabled else UpgradeState.FAILED


def state_after_drain(*, succeeded: bool) -> UpgradeState:
    """Of a node in `drain-required` whose drain has ended."""
    return UpgradeState.POD_RESTART if succeeded else UpgradeState.FAILED


def _compare_revisions(node: UpgradeNode) -> UpgradeDecision:
    reason = _reason_to_upgrade(node)
    if reason:
        changes: dict[str, str | None] = {WAS_UNSCHEDULABLE: "true"} if node.is_unschedulable else {}
        return moves(node, UpgradeState.UPGRADE_REQUIRED, reason, changes)
    if node.state == UpgradeState.UNKNOWN:
        return moves(node, UpgradeState.DONE, "the driver needs no upgrade")
    return stays(node)


def _reason_to_upgrade(node: UpgradeNode) -> str:
    """An orphaned driver pod has no revision to compare with, so that only a request replaces it."""
    if node.annotations.get(WAITS_FOR_SAFE_LOAD):
        return "the driver waits until the node is drained"
    if node.annotations.get(REQUESTED) == "true":
        return f"requested by the annotation {REQUESTED}"
    pod = node.driver_pod
    if pod is not None and not pod.is_orphaned and not pod.has_current_revision:
        return "the revision of the driver pod is not the one of its DaemonSet"
    return ""


def _delete_pods(node: UpgradeNode, options: UpgradeOptions) -> UpgradeDecision:
    if not options.deletes_pods:
        return moves(node, UpgradeState.DRAIN_REQUIRED, "pods with GPUs are not evicted on their own")
    return waits_for(node, NodeAction.EVICT_GPU_PODS, "pods with GPUs are evicted")


def _drain(node: UpgradeNode, policy: UpgradePolicy) -> UpgradeDecision:
    if not policy.drain.is_enabled:
        return moves(node, UpgradeState.POD_RESTART, "the policy has no drain")
    return waits_for(node, NodeAction.DRAIN, "the node is drained")


def _restart(node: UpgradeNode, options: UpgradeOptions) -> UpgradeDecision:
    pod = node.driver_pod
    if pod is None:
        return stays(node, "the driver pod is not created yet")
    if not pod.is_current:
        if pod.is_terminating:
            return stays(node, "the driver pod is terminating")
        return waits_for(node, NodeAction.RESTART_DRIVER_POD, "the driver pod is replaced")
    changes = allowed_load(node)
    if pod.runs_current_driver:
        if options.validates:
            return moves(node, UpgradeState.VALIDATION_REQUIRED, "the driver runs", changes)
        return ends(node, "the driver runs", changes)
    if pod.is_failing:
        return moves(node, UpgradeState.FAILED, _failure(pod), changes)
    return stays(node, "the driver pod is not ready", changes)


def _failure(pod: DriverPod) -> str:
    restarts = max(one.restarts for one in (*pod.init_containers, *pod.containers) if one.is_failing)
    return f"the driver pod is not ready after {restarts} restarts"


def _retry(node: UpgradeNode) -> UpgradeDecision:
    """A failed node continues by itself once its driver runs, e.g. after the pod was deleted by hand."""
    if node.driver_pod is not None and node.driver_pod.runs_current_driver:
        return ends(node, "the driver runs")
    return stays(node, "the driver does not run; delete its pod to try again")


def _uncordon(node: UpgradeNode) -> UpgradeDecision:
    if EXTERNAL_MAINTENANCE in node.annotations:
        return stays(node, f"another controller uncordons the node: annotation {EXTERNAL_MAINTENANCE}")
    return _with(moves(node, UpgradeState.DONE, "upgraded"), NodeAction.UNCORDON)


def _with(decision: UpgradeDecision, action: NodeAction) -> UpgradeDecision:
    return UpgradeDecision(decision.node, decision.state, decision.reason, action, decision.annotations)
