"""Decides a case about driver upgrades by the operator's own code, and states the outcome as the cases do."""

from __future__ import annotations

from collections import Counter
from typing import Any

from shoal.operator.upgrades.decision import NodeAction, UpgradeDecision
from shoal.operator.upgrades.nodes import DriverContainer, DriverPod, UpgradeNode, WorkloadPod
from shoal.operator.upgrades.passes import decide_pass
from shoal.operator.upgrades.policy import UpgradeOptions, parse_upgrade_policy
from shoal.units.errors import UserError, Where

from .case import Case, ContainerLine, DriverPodLine, NodeLine

Answer = dict[str, Any]
_COMPARED = "nvidia.com/gpu-driver-upgrade"
"""The annotations that an answer lists begin so."""
_ACTIONS = {
    NodeAction.CORDON: "cordoned",
    NodeAction.UNCORDON: "uncordoned",
    NodeAction.DRAIN: "drainStarted",
    NodeAction.RESTART_DRIVER_POD: "driverPodsRestarted",
    NodeAction.EVICT_GPU_PODS: "podsEvicted",
}


def decide(case: Case) -> Answer:
    try:
        policy = parse_upgrade_policy(case.policy, Where(path="policy"))
    except UserError as error:
        return {"refused": {"class": "", "words": str(error)}}
    options = UpgradeOptions(deletes_pods=case.options.pod_deletion_enabled, validates=case.options.validation_enabled)
    nodes = [_node(line) for line in case.nodes]
    done = decide_pass(nodes, policy, options, case.now)
    decisions = {one.node: one for one in done.decisions}
    after = {line.name: _after(line, decisions.get(line.name)) for line in case.nodes}
    answer: Answer = {
        "nodes": after,
        "stateCounts": dict(Counter(one["state"] for one in after.values())),
        **{name: [one.node for one in done.decisions if one.action is action] for action, name in _ACTIONS.items()},
    }
    if done.slots is not None:
        answer["upgradeSlots"] = done.slots
    return answer


def _after(line: NodeLine, decision: UpgradeDecision | None) -> dict[str, Any]:
    annotations: dict[str, str | None] = dict(line.annotations)
    state, is_unschedulable = line.state, line.unschedulable
    if decision is not None:
        annotations |= decision.annotations
        state = decision.state
        is_unschedulable = (is_unschedulable or decision.action is NodeAction.CORDON) and (
            decision.action is not NodeAction.UNCORDON
        )
    kept = {key: value for key, value in annotations.items() if key.startswith(_COMPARED) and value is not None}
    return {"state": str(state), "unschedulable": is_unschedulable, "annotations": kept}


def _node(line: NodeLine) -> UpgradeNode:
    return UpgradeNode(
        name=line.name,
        state=line.state,
        is_unschedulable=line.unschedulable,
        is_ready=line.ready,
        annotations=line.annotations,
        labels=line.labels,
        driver_pod=None if line.driver_pod is None else _driver_pod(line.driver_pod),
        pods=tuple(WorkloadPod(pod.name, pod.labels, pod.phase, pod.containers_ready) for pod in line.workload_pods),
    )


def _driver_pod(line: DriverPodLine) -> DriverPod:
    return DriverPod(
        has_current_revision=line.up_to_date,
        is_orphaned=line.orphaned,
        phase=line.phase,
        containers=_containers(line.containers),
        init_containers=_containers(line.init_containers),
        is_terminating=line.terminating,
    )


def _containers(lines: list[ContainerLine]) -> tuple[DriverContainer, ...]:
    return tuple(DriverContainer(one.ready, one.restarts) for one in lines)
