"""Carries out driver upgrades: reads the facts of all nodes, decides a pass, and does on each node what it says.

On a node the action comes first, then the state label and the annotations in one patch, which applies only to the Node
that the decision was about. A process that is killed between the two, or a conflict, leads to the same decision again,
and every action has the same effect when it is repeated.

Nothing is kept across restarts: states are labels, waits are annotations, and an eviction starts again from the state
of its node.

Rejected: a task for each node. Limits depend on all nodes, and two tasks could use the same free place.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping

from msgspec import structs

from shoal.client.context import Context
from shoal.client.ecosystem_kinds import CLUSTER_POLICIES, MISPLACED_CLUSTER_POLICIES, NVIDIA_DRIVERS
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS, Kind
from shoal.client.kubelet.pod_facts import nodes_of
from shoal.client.loop import Loop
from shoal.client.port import Deletion, Patch
from shoal.client.refusals import NotFoundError
from shoal.client.served import Served
from shoal.controllers.driver_upgrades.leaving_pods import leaving_pods
from shoal.controllers.driver_upgrades.removals import PodRemovals, RemovalRequest
from shoal.controllers.driver_upgrades.reports import UpgradeReports
from shoal.controllers.driver_upgrades.rollouts import read_upgrade_policies
from shoal.controllers.driver_upgrades.running_work import RunningWork
from shoal.controllers.driver_upgrades.upgrade_facts import (
    DriverOwners,
    DriverRevisions,
    NodeHead,
    component_nodes,
    driver_pod_item,
    is_validator,
    needs_pods,
    node_head,
    template_labels,
    upgrade_node,
)
from shoal.operator.upgrades.decision import NodeAction, UpgradeDecision
from shoal.operator.upgrades.figures import UpgradeFigures, upgrade_figures
from shoal.operator.upgrades.nodes import UpgradeNode
from shoal.operator.upgrades.passes import decide_pass
from shoal.operator.upgrades.policy import UpgradeOptions, UpgradePolicy, drain_selector
from shoal.operator.upgrades.states import IN_PROGRESS, STATE_LABEL, UpgradeState
from shoal.operator.upgrades.steps import state_after_drain, state_after_pod_deletion
from shoal.store.watched.cluster import WatchedCluster, WatchSettings
from shoal.units.errors import ConflictError

_log = logging.getLogger("shoal.upgrades")
_PASS: Key = ("", "pass")
_GATHER_S = 1.0
"""The delay that combines the changes of many objects to one pass."""
_AGAIN_S = 15.0
"""The time between passes while a node is in progress, for waits with a limit."""
_COMPONENTS = "components-by-node"
_REMOVALS = (NodeAction.EVICT_GPU_PODS, NodeAction.DRAIN)


class DriverUpgrades:
    def __init__(self, context: Context, served: Served) -> None:
        """Another part refreshes `served` at intervals."""
        self.name = context.name
        self._context = context
        informers = context.informers
        self._nodes, self._pods = informers.of(NODES), informers.of(PODS)
        self._sets, self._revisions = informers.of(DAEMON_SETS), informers.of(CONTROLLER_REVISIONS)
        self._found = asyncio.Event()
        self._loop = Loop(context, self._reconcile, workers=1)
        self._loop.need(NODES, PODS, DAEMON_SETS, CONTROLLER_REVISIONS)
        self._watched = WatchedCluster(context, served, WatchSettings(schedulers=frozenset()), self._wake)
        self._work = RunningWork()
        self._removals = PodRemovals(context.api, context.clock, self._wake)
        self._reports = UpgradeReports(context)
        self.figures = UpgradeFigures()
        """Of the last pass."""
        self._busy: frozenset[str] = frozenset()
        """Nodes whose pods matter for the next pass."""
        self._nodes.on_change(self._node_changed)
        self._pods.on_change(self._pod_changed)
        for informer in (self._sets, self._revisions):
            informer.on_change(lambda _before, _after: self._wake())
        for kind in (CLUSTER_POLICIES, MISPLACED_CLUSTER_POLICIES):
            served.when_there(kind, self._start)
        served.when_there(NVIDIA_DRIVERS, self._follow)

    async def run(self) -> None:
        """Until cancelled. Nothing is done before the server has ClusterPolicies."""
        try:
            await self._found.wait()
            await self._watched.synced()
            await self._loop.run()
        finally:
            await self._removals.close()

    def _start(self, kind: Kind) -> None:
        self._follow(kind)
        self._found.set()
        self._wake()

    def _follow(self, kind: Kind) -> None:
        self._loop.need(kind)
        self._context.informers.of(kind).on_change(lambda _before, _after: self._wake())
        self._wake()

    # -- changes ------------------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        self._loop.wake(_PASS, _GATHER_S)

    def _node_changed(self, before: Item | None, after: Item | None) -> None:
        """Heartbeats and changed resources are no reason for a pass."""
        if before is None or after is None or node_head(before) != node_head(after):
            self._wake()

    def _pod_changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is not None and (component_nodes(item) or not self._busy.isdisjoint(nodes_of(item))):
            self._wake()

    # -- one pass -----------------------------------------------------------------------------------------------------

    async def _reconcile(self, _: Key) -> float | None:
        policies = read_upgrade_policies(self._context.informers, self._reports)
        if policies.is_off:
            self._removals.keep_only(())
            self.figures = UpgradeFigures()
            return None
        self._work.apply(self._watched.drain())
        now_s = int(self._context.clock.seconds())
        heads = {one.name: node_head(one) for one in self._nodes}
        nodes = self._upgrade_nodes(heads)
        by_name = {node.name: node for node in nodes}
        drivers = self._drivers_of(heads) if policies.of_drivers else {}
        rollouts = list(policies.rollouts(nodes, drivers))
        work, options = self._work.node_work(now_s), self._options()
        passes = [decide_pass(one.nodes, one.policy, options, now_s, work) for one in rollouts]
        self.figures = sum(
            (upgrade_figures(one.nodes, done.slots or 0) for one, done in zip(rollouts, passes, strict=True)),
            UpgradeFigures(),
        )
        self._busy = frozenset(node.name for one in rollouts for node in one.nodes if node.state in IN_PROGRESS)
        decisions = [(one.policy, each) for one, done in zip(rollouts, passes, strict=True) for each in done.decisions]
        self._removals.keep_only({one.node for _, one in decisions if one.action in _REMOVALS})
        conflict: ConflictError | None = None
        for policy, decision in decisions:
            try:
                await self._carry_out(by_name[decision.node], decision, policy)
            except NotFoundError:
                # The Node was deleted meanwhile.
                continue
            except ConflictError as error:
                conflict = error
        for one in rollouts:
            self._reports.rollout(one.kind, one.item, one.nodes)
        if conflict is not None:
            raise conflict
        moved = any(one.state != by_name[one.node].state for _, one in decisions)
        return _GATHER_S if moved else _AGAIN_S if self._busy else None

    def _options(self) -> UpgradeOptions:
        """Nodes are validated where a DaemonSet of the validator exists."""
        return UpgradeOptions(
            deletes_pods=True,
            validates=any(is_validator(template_labels(item)) for item in self._sets),
            least_lost_work_first=True,
            stops_at_failure=True,
        )

    def _upgrade_nodes(self, heads: Mapping[str, NodeHead]) -> list[UpgradeNode]:
        components = self._pods.index(_COMPONENTS, component_nodes)
        on_node = self._pods.index("node", nodes_of)
        revisions = DriverRevisions(self._sets, self._revisions)
        return [
            upgrade_node(name, head, components[name], on_node[name] if needs_pods(head.state) else (), revisions)
            for name, head in sorted(heads.items())
        ]

    def _drivers_of(self, heads: Mapping[str, NodeHead]) -> dict[str, str]:
        """The NVIDIADriver of each node that has one."""
        components, owners = self._pods.index(_COMPONENTS, component_nodes), DriverOwners(self._sets)
        return {name: owners.owner(head.labels, components[name]) for name, head in heads.items()}

    # -- one node -----------------------------------------------------------------------------------------------------

    async def _carry_out(self, node: UpgradeNode, decision: UpgradeDecision, policy: UpgradePolicy) -> None:
        action = decision.action
        if action is NodeAction.CORDON:
            await self._set_unschedulable(node, is_unschedulable=True)
        elif action is NodeAction.UNCORDON:
            await self._set_unschedulable(node, is_unschedulable=False)
        elif action is NodeAction.RESTART_DRIVER_POD:
            await self._delete_driver_pod(node.name)
        elif action is not None:
            ended = self._removed(node.name, action, policy)
            if ended is None:
                return
            decision = structs.replace(decision, state=ended[0], reason=ended[1])
        await self._write_state(node, decision)
        self._removals.forget(node.name)

    async def _set_unschedulable(self, node: UpgradeNode, *, is_unschedulable: bool) -> None:
        present = self._nodes.get("", node.name)
        if present is None or node_head(present).is_unschedulable == is_unschedulable:
            return
        body = {"metadata": {"uid": present.uid}, "spec": {"unschedulable": True if is_unschedulable else None}}
        await self._context.api.patch(NODES, "", node.name, Patch("merge", body))

    async def _delete_driver_pod(self, node: str) -> None:
        pod = driver_pod_item(self._pods.index(_COMPONENTS, component_nodes)[node])
        if pod is not None:
            await self._context.api.delete(PODS, *pod.key, Deletion(uid=pod.uid))

    def _removed(self, node: str, action: NodeAction, policy: UpgradePolicy) -> tuple[UpgradeState, str] | None:
        """The next state of a node whose pods are evicted, and the reason; None while they still are."""
        if not self._removals.is_known(node, action):
            self._start_removal(node, action, policy)
        found = self._removals.result(node, action)
        if found is None:
            return None
        if action is NodeAction.DRAIN:
            return state_after_drain(succeeded=found.succeeded), found.reason
        return state_after_pod_deletion(policy, succeeded=found.succeeded), found.reason

    def _start_removal(self, node: str, action: NodeAction, policy: UpgradePolicy) -> None:
        on_node = self._pods.index("node", nodes_of)[node]
        if action is NodeAction.DRAIN:
            removal = policy.drain
            found = leaving_pods(on_node, removal, drain_selector(policy))
        else:
            removal = policy.pod_deletion
            found = leaving_pods(on_node, removal, is_meant=lambda item: self._work.has_gpus("/".join(item.key)))
        # What protects a pod of the node protects its gang on other nodes.
        gang = leaving_pods(self._mates(found.pods), removal)
        problem = found.problem or gang.problem
        if problem:
            self._removals.refuse(node, action, problem)
            return
        mates = gang.pods
        nodes = {node, *(name for item in mates for name in nodes_of(item))}
        request = RemovalRequest(action, (*found.pods, *mates), tuple(sorted(nodes)), removal.timeout_s)
        self._removals.start(node, request)

    def _mates(self, pods: tuple[Item, ...]) -> Iterator[Item]:
        for key in self._work.mates(["/".join(item.key) for item in pods]):
            namespace, _, name = key.partition("/")
            item = self._pods.get(namespace, name)
            if item is not None:
                yield item

    async def _write_state(self, node: UpgradeNode, decision: UpgradeDecision) -> None:
        present = self._nodes.get("", node.name)
        changed = decision.state != node.state
        if present is None or not (changed or decision.annotations):
            return
        if node_head(present).state != node.state:
            raise ConflictError(f"node {node.name} has another state of its driver upgrade now")
        metadata: Obj = {"uid": present.uid, "resourceVersion": str(present.version)}
        if changed:
            metadata["labels"] = {STATE_LABEL: str(decision.state)}
        if decision.annotations:
            metadata["annotations"] = decision.annotations
        await self._context.api.patch(NODES, "", node.name, Patch("merge", {"metadata": metadata}))
        if changed:
            self._reports.moved(present, decision)
