"""Searches for nodes to disrupt, with one method for each reason, as Karpenter orders them.

Empty nodes are removed together. Drifted nodes are replaced one by one, whatever that costs. Underused nodes are
removed several at once, then one at a time, if their pods fit on other nodes and at most one new node that is cheaper.
Expired nodes are removed by force. A gang is not split: its nodes are disrupted together or not at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec
from msgspec.structs import replace

from shoal.api.pod import Pod
from shoal.autoscale.disruption.budgets import BudgetNode, allowed_disruptions
from shoal.autoscale.disruption.candidates import (
    Candidate,
    DisruptableNode,
    blocker,
    candidate_of,
    consolidation_blocker,
)
from shoal.autoscale.disruption.decision import DisruptionDecision, DisruptionMethod
from shoal.autoscale.disruption.lost_work import LostWork, riskier
from shoal.autoscale.disruption.protection import DisruptionLimit, is_rescheduled
from shoal.autoscale.disruption.replacement import cheaper_replacement, on_demand_replacement, without_dearer_types
from shoal.autoscale.nodes.existing_nodes import ExistingNode
from shoal.autoscale.nodes.instance_types import InstanceType
from shoal.autoscale.nodes.plan import NewNode, NodePlan
from shoal.autoscale.nodes.planner import NodePlanner
from shoal.autoscale.nodes.planning_input import PlanningInput, pod_key
from shoal.autoscale.nodes.pools import DisruptionReason, NodePool

_MOST_AT_ONCE: Final = 100
_BALANCE: Final = 0.5


class DisruptionInput(msgspec.Struct, frozen=True):
    """Everything that the searches depend on."""

    planning: PlanningInput
    """Its nodes are all nodes that exist; its pods are pending."""
    nodes: tuple[DisruptableNode, ...]
    now: datetime
    limits: tuple[DisruptionLimit, ...] = ()
    lost_work: LostWork = LostWork()
    spot_to_spot: bool = False


class NodeDisruption:
    """The searches over one state of a cluster."""

    def __init__(self, given: DisruptionInput) -> None:
        self._given = given
        self._pools: dict[str, NodePool] = {pool.name: pool for pool in given.planning.pools}
        self._types: dict[str, dict[str, InstanceType]] = {
            name: {one.name: one for one in types} for name, types in given.planning.types.items()
        }
        self._planner: NodePlanner | None = None
        self._starting = {node.name for node in given.planning.nodes if not node.is_initialized}
        self._pending = {pod_key(pod) for pod in given.planning.pods}
        self._leaving = tuple(
            pod for node in given.planning.nodes if node.is_deleting for pod in node.pods if is_rescheduled(pod)
        )
        """Pods of nodes that are being deleted need a place too."""
        self._gang_nodes = _gang_nodes(given.planning.gangs, given.planning.nodes)

    def decide(self, method: DisruptionMethod) -> DisruptionDecision:
        """What one search decides."""
        match method:
            case "emptiness":
                return self._emptiness()
            case "drift":
                return self._drift()
            case "multi":
                return self._multi()
            case "single":
                return self._single()
            case "expiry":
                return self._expiry()

    def allowed(self, pool: str, reason: DisruptionReason) -> int:
        """How many nodes of the pool may be disrupted for the reason now."""
        nodes = (
            BudgetNode(node.existing.is_initialized, node.is_ready, node.existing.is_deleting)
            for node in self._given.nodes
            if node.existing.pool == pool
        )
        return allowed_disruptions(self._pools[pool], nodes, reason, self._given.now)

    # -- the methods -------------------------------------------------------------------------------------------

    def _emptiness(self) -> DisruptionDecision:
        candidates, kept = self._candidates("emptiness")
        chosen = self._within_budgets([each for each in candidates if each.is_empty], "Empty", kept)
        if not chosen:
            return DisruptionDecision("emptiness", kept=kept)
        return _deletion("emptiness", chosen, "no pod needs them", kept)

    def _drift(self) -> DisruptionDecision:
        candidates, kept = self._candidates("drift")
        candidates.sort(key=lambda each: (not each.is_empty, each.node.drifted_since, each.name))
        left = self._budgets("Drifted")
        for candidate in candidates:
            if left[candidate.pool.name] <= 0:
                kept[candidate.name] = "the disruption budget of its pool is used up"
                continue
            plan = self._simulated([candidate], kept)
            if plan is not None:
                return self._decided("drift", [candidate], plan, "it drifted from its pool", kept)
        return DisruptionDecision("drift", kept=kept)

    def _multi(self) -> DisruptionDecision:
        candidates, kept = self._candidates("multi")
        chosen = self._within_budgets([each for each in candidates if not each.is_empty], "Underutilized", kept)
        best = DisruptionDecision("multi", kept=kept)
        low, high = 1, min(len(chosen), _MOST_AT_ONCE) - 1
        while low <= high:
            middle = (low + high) // 2
            found = self._consolidated("multi", chosen[: middle + 1], kept)
            if found is None:
                high = middle - 1
            else:
                best, low = found, middle + 1
        return best

    def _single(self) -> DisruptionDecision:
        candidates, kept = self._candidates("single")
        left = self._budgets("Underutilized")
        for candidate in candidates:
            if candidate.is_empty:
                continue
            if left[candidate.pool.name] <= 0:
                kept[candidate.name] = "the disruption budget of its pool is used up"
                continue
            found = self._consolidated("single", [candidate], kept)
            if found is not None:
                return found
        return DisruptionDecision("single", kept=kept)

    def _expiry(self) -> DisruptionDecision:
        """Neither budgets nor pods keep a node that is too old, and nothing replaces it first."""
        expired = [
            node
            for node in self._given.nodes
            if node.created is not None
            and node.expire_after_s is not None
            and not node.existing.is_deleting
            and (self._given.now - node.created).total_seconds() >= node.expire_after_s
        ]
        if not expired:
            return DisruptionDecision("expiry")
        names = tuple(sorted(node.name for node in expired))
        return DisruptionDecision("expiry", "delete", names, why="they are older than expireAfter")

    # -- candidates --------------------------------------------------------------------------------------------

    def _candidates(self, method: DisruptionMethod) -> tuple[list[Candidate], dict[str, str]]:
        found: list[Candidate] = []
        kept: dict[str, str] = {}
        for node in self._given.nodes:
            pool = self._pools.get(node.existing.pool)
            if pool is None:
                kept[node.name] = "no pool is known for it"
                continue
            why = self._kept(node, pool, method)
            if why is None:
                found.append(candidate_of(node, pool, self._types.get(pool.name, {})))
            else:
                kept[node.name] = why
        if method in ("multi", "single"):
            priced = [each for each in found if each.price is not None]
            kept |= {
                each.name: "its instance type, zone or capacity type is not known"
                for each in found
                if each.price is None
            }
            found = priced
        return sorted(found, key=lambda each: each.order), kept

    def _kept(self, node: DisruptableNode, pool: NodePool, method: DisruptionMethod) -> str | None:
        if method == "drift":
            if node.drifted_since is None:
                return "it has not drifted"
            if pool.is_static:
                return "its pool has a fixed number of nodes"
            ignores_pods = node.termination_grace_s is not None
            return blocker(node, self._given.limits, self._given.now, ignores_pods=ignores_pods)
        why = consolidation_blocker(node, pool, self._given.now)
        if why is None and method != "emptiness" and pool.disruption.policy == "WhenEmpty":
            why = "its pool is consolidated when it is empty only"
        return why if why is not None else blocker(node, self._given.limits, self._given.now)

    def _budgets(self, reason: DisruptionReason) -> dict[str, int]:
        return {name: self.allowed(name, reason) for name in self._pools}

    def _within_budgets(
        self, candidates: Sequence[Candidate], reason: DisruptionReason, kept: dict[str, str]
    ) -> list[Candidate]:
        left = self._budgets(reason)
        chosen = []
        for candidate in candidates:
            if left[candidate.pool.name] > 0:
                left[candidate.pool.name] -= 1
                chosen.append(candidate)
            else:
                kept[candidate.name] = "the disruption budget of its pool is used up"
        return chosen

    # -- trials ------------------------------------------------------------------------------------------------

    def _consolidated(
        self, method: DisruptionMethod, removed: Sequence[Candidate], kept: dict[str, str]
    ) -> DisruptionDecision | None:
        """The decision to remove these nodes; None if their pods would not fit, or nothing would be saved."""
        plan = self._simulated(removed, kept)
        if plan is None:
            return None
        if not plan.new_nodes:
            return self._worth(
                self._decided(method, removed, plan, "their pods fit on other nodes", kept), removed, kept
            )
        if len(plan.new_nodes) > 1:
            kept |= {each.name: "its pods would need more than one new node" for each in removed}
            return None
        new = self._cheap_enough(plan.new_nodes[0], removed)
        if new is None:
            kept |= {each.name: "no cheaper node would hold its pods" for each in removed}
            return None
        plan = replace(plan, new_nodes=(new,))
        return self._worth(self._decided(method, removed, plan, "a cheaper node holds their pods", kept), removed, kept)

    def _cheap_enough(self, new: NewNode, removed: Sequence[Candidate]) -> NewNode | None:
        """The new node with the types that save money; as an on-demand node if spot would lose more work than that."""
        least = new.requirements.min_values()

        def kept(found: NewNode | None) -> NewNode | None:
            return found if found is None or len(removed) == 1 else without_dearer_types(found, removed, least)

        first = kept(cheaper_replacement(new, removed, spot_to_spot=self._given.spot_to_spot, least=least))
        if first is None:
            return None
        saved = sum(each.price or 0.0 for each in removed) - first.price
        if riskier(removed, (first,), saved, self._given.planning.gangs) is None:
            return first
        return kept(on_demand_replacement(new, removed, least)) or first

    def _worth(
        self, decision: DisruptionDecision, removed: Sequence[Candidate], kept: dict[str, str]
    ) -> DisruptionDecision | None:
        """The decision; None if more work would be lost than money is saved."""
        objection = (
            self._given.lost_work.objection(removed, decision.saved)
            or riskier(removed, decision.replacements, decision.saved, self._given.planning.gangs)
            or self._imbalance(decision, removed)
        )
        if objection is None:
            return decision
        kept |= {each.name: objection for each in removed}
        return None

    def _imbalance(self, decision: DisruptionDecision, removed: Sequence[Candidate]) -> str | None:
        """Why pools with the policy `Balanced` do not save enough for what is disrupted: their part of the cost that is
        saved must be at least half of the part of the pods that are evicted.
        """
        pools = {each.pool.name for each in removed if each.pool.disruption.policy == "Balanced"}
        if not pools:
            return None
        there = [
            candidate_of(node, self._pools[name], self._types.get(name, {}))
            for node in self._given.nodes
            if (name := node.existing.pool) in pools
        ]
        cost = sum(each.price or 0.0 for each in there)
        evictions = sum(1 + each.eviction_cost for each in there)
        chosen = sum(1 + each.eviction_cost for each in removed if each.pool.name in pools)
        saved = decision.saved / cost if cost else 0.0
        if saved >= _BALANCE * chosen / evictions:
            return None
        return f"{100 * saved:.0f} % of its pool's cost would be saved for {100 * chosen / evictions:.0f} % of its pods"

    def _simulated(self, removed: Sequence[Candidate], kept: dict[str, str]) -> NodePlan | None:
        """Where the pods of these nodes would go; None if some have no place, or only one on a node that starts."""
        names = {candidate.name for candidate in removed}
        split = self._split_gang(names)
        if split is not None:
            kept |= dict.fromkeys(names, f"gang {split} would be split")
            return None
        moved = tuple(pod for candidate in removed for pod in candidate.rescheduled)
        plan = self._plan((*self._given.planning.pods, *self._leaving, *moved), names)
        refused = [each.pod for each in plan.pending if each.pod not in self._pending]
        may_wait = self._pending | {pod_key(pod) for pod in self._leaving}
        waiting = [pod for pod, node in plan.placed.items() if node in self._starting and pod not in may_wait]
        if refused or waiting:
            why = f"pod {(refused or waiting)[0]} would have no place"
            kept |= dict.fromkeys(names, why if refused else f"{why} on a node that has started")
            return None
        return plan

    def _plan(self, pods: Sequence[Pod], names: set[str]) -> NodePlan:
        if self._planner is None:
            self._planner = NodePlanner(self._given.planning)
        return self._planner.plan(pods, names)

    def _split_gang(self, names: set[str]) -> str | None:
        for gang, nodes in self._gang_nodes.items():
            if nodes & names and not nodes <= names:
                return gang
        return None

    def _decided(
        self,
        method: DisruptionMethod,
        removed: Sequence[Candidate],
        plan: NodePlan,
        why: str,
        kept: dict[str, str],
    ) -> DisruptionDecision:
        saved = sum(each.price or 0.0 for each in removed) - sum(node.price for node in plan.new_nodes)
        names = tuple(each.name for each in removed)
        return DisruptionDecision(
            method,
            "replace" if plan.new_nodes else "delete",
            tuple(sorted(names)),
            plan.new_nodes,
            saved,
            why,
            {name: reason for name, reason in kept.items() if name not in names},
        )


def _deletion(
    method: DisruptionMethod, removed: Sequence[Candidate], why: str, kept: Mapping[str, str]
) -> DisruptionDecision:
    names = tuple(sorted(each.name for each in removed))
    return DisruptionDecision(method, "delete", names, (), sum(each.price or 0.0 for each in removed), why, kept)


def _gang_nodes(gangs: Mapping[str, str], nodes: Sequence[ExistingNode]) -> dict[str, set[str]]:
    """The nodes on which pods of each gang run."""
    found: dict[str, set[str]] = {}
    for node in nodes:
        for gang in Counter(gangs[key] for pod in node.pods if (key := pod_key(pod)) in gangs):
            found.setdefault(gang, set()).add(node.name)
    return found
