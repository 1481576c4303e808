"""Nodes during a driver upgrade, and an environment that carries out the decisions of its passes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import structs

from shoal.operator.upgrades.decision import NodeAction, UpgradeDecision
from shoal.operator.upgrades.lost_work import NodeWork
from shoal.operator.upgrades.nodes import DriverContainer, DriverPod, UpgradeNode, WorkloadPod
from shoal.operator.upgrades.passes import UpgradePass, decide_pass
from shoal.operator.upgrades.policy import UpgradeOptions, UpgradePolicy, parse_upgrade_policy
from shoal.operator.upgrades.states import IN_PROGRESS, UpgradeState
from shoal.operator.upgrades.steps import state_after_drain, state_after_pod_deletion
from shoal.units.errors import Where

READY = DriverContainer()
PLAIN = UpgradeOptions()
NOW_S = 1_700_000_000
OLD = DriverPod(has_current_revision=False, containers=(READY,))
NEW = DriverPod(has_current_revision=True, containers=(READY,))
ORPHAN = DriverPod(has_current_revision=False, is_orphaned=True, containers=(READY,))
STARTING = DriverPod(has_current_revision=True, containers=(DriverContainer(is_ready=False),))
FAILING = DriverPod(has_current_revision=True, containers=(DriverContainer(is_ready=False, restarts=11),))
VALIDATOR = WorkloadPod("validator", {"app": "nvidia-operator-validator"}, "Running", has_ready_containers=True)


def node(name: str = "a", state: str = "", driver_pod: DriverPod | None = OLD, **facts: Any) -> UpgradeNode:
    return UpgradeNode(name, state, driver_pod=driver_pod, **facts)


def policy(**fields: Any) -> UpgradePolicy:
    """As it would be written in a ClusterPolicy."""
    return parse_upgrade_policy({"autoUpgrade": True, **fields}, Where(path="upgradePolicy"))


def decided(
    *nodes: UpgradeNode,
    by: UpgradePolicy | None = None,
    options: UpgradeOptions = PLAIN,
    now_s: int = NOW_S,
    work: NodeWork | None = None,
) -> UpgradePass:
    return decide_pass(nodes, by or policy(), options, now_s, work)


def the_decision(
    one: UpgradeNode, by: UpgradePolicy | None = None, options: UpgradeOptions = PLAIN, now_s: int = NOW_S
) -> UpgradeDecision:
    (decision,) = decided(one, by=by, options=options, now_s=now_s).decisions
    return decision


class UpgradingFleet:
    """Nodes whose drains and evictions end between two passes, and whose driver pods are ready a pass after their
    restart. A node in `broken` has a new driver that never runs.
    """

    def __init__(
        self, nodes: Iterable[UpgradeNode], by: UpgradePolicy, options: UpgradeOptions, broken: Iterable[str] = ()
    ) -> None:
        self.nodes = {one.name: one for one in nodes}
        self.policy, self.options = by, options
        self.broken = set(broken)
        self.now_s = NOW_S
        self.uncordoned: set[str] = set()
        self.started: dict[str, UpgradeNode] = {}
        """Nodes as they were when they started."""

    def run_pass(self) -> UpgradePass:
        done = decide_pass(list(self.nodes.values()), self.policy, self.options, self.now_s)
        for decision in done.decisions:
            before = self.nodes[decision.node]
            if before.state == UpgradeState.UPGRADE_REQUIRED and decision.state == UpgradeState.CORDON_REQUIRED:
                self.started[before.name] = before
            self.nodes[decision.node] = self._after(before, decision)
        self.now_s += 60
        return done

    def run(self, passes: int) -> None:
        for _ in range(passes):
            self.run_pass()

    def states(self) -> dict[str, str]:
        return {name: str(one.state) for name, one in self.nodes.items()}

    def in_progress(self) -> list[str]:
        return [one.name for one in self.nodes.values() if one.state in IN_PROGRESS]

    def unavailable(self) -> int:
        return sum(one.is_unavailable for one in self.nodes.values())

    def _after(self, one: UpgradeNode, decision: UpgradeDecision) -> UpgradeNode:
        changed = {**one.annotations, **decision.annotations}
        one = structs.replace(
            one,
            state=decision.state,
            annotations={key: value for key, value in changed.items() if value is not None},
            driver_pod=self._driver_pod(one, decision),
        )
        match decision.action:
            case NodeAction.CORDON:
                return structs.replace(one, is_unschedulable=True)
            case NodeAction.UNCORDON:
                self.uncordoned.add(one.name)
                return structs.replace(one, is_unschedulable=False)
            case NodeAction.DRAIN:
                return structs.replace(one, state=state_after_drain(succeeded=True))
            case NodeAction.EVICT_GPU_PODS:
                return structs.replace(one, state=state_after_pod_deletion(self.policy, succeeded=True))
            case _:
                return one

    def _driver_pod(self, one: UpgradeNode, decision: UpgradeDecision) -> DriverPod | None:
        if decision.action is NodeAction.RESTART_DRIVER_POD:
            return STARTING
        if one.driver_pod in (STARTING, FAILING):
            return FAILING if one.name in self.broken else NEW
        return one.driver_pod
