"""Carries out plans: writes the NodeClaims of new nodes, and takes back those that no workload needs any more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from shoal.api.pod import Pod
from shoal.autoscale.node_claims.claim import INITIALIZED, NodeClaim, claim_of
from shoal.autoscale.node_claims.claim_objects import claim_object, launch_groups
from shoal.autoscale.nodes.before_provisioning import NOT_PROVISIONING
from shoal.autoscale.nodes.plan import NewNode, NodePlan
from shoal.autoscale.nodes.planning_input import PlanningInput
from shoal.autoscale.nodes.repeated_provisioning import RepeatedProvisioning
from shoal.client.item import Item
from shoal.controllers.node_scaling.claim_events import pod_reference, pool_reference
from shoal.controllers.node_scaling.parts import ScalingParts

_UNNEEDED_S: Final = 60.0
"""How long a node that starts may be without a workload that needs it."""
_MOST_TOLD: Final = 50

Raw = Mapping[str, Any]


class Provisioning:
    def __init__(self, parts: ScalingParts) -> None:
        self._context = parts.context
        self._cloud = parts.cloud
        self._writer = parts.writer
        self._observer = parts.observer
        self._say = parts.say
        self.repeated = RepeatedProvisioning()
        self._unneeded_since_s: dict[str, float] = {}
        """By the uid of the claim."""

    def note_started(self, claims: Sequence[NodeClaim]) -> None:
        """Look for nodes that have started: the pods that they were provisioned for should not wait any more."""
        started = [claim.name for claim in claims if claim.has(INITIALIZED)]
        self.repeated.note_started(started, [claim.name for claim in claims], self._context.clock.seconds())

    async def carry_out(self, plan: NodePlan, gangs: Mapping[str, str], pools: Mapping[str, Item]) -> None:
        """Write the NodeClaims of all new nodes; the next step launches them."""
        for group in launch_groups(plan.new_nodes, gangs):
            await self.write_group(group.nodes, pools)

    async def write_group(
        self, nodes: Sequence[NewNode], pools: Mapping[str, Item], replaces: Sequence[str] = ()
    ) -> None:
        """NodeClaims that one request launches. `replaces`: the nodes that are removed once these have started."""
        token = self._writer.new_token()
        for node in nodes:
            item = pools.get(node.pool)
            if item is None:
                return
            claim = claim_object(
                node,
                item.obj(),
                self._writer.new_name(node.pool),
                (token, len(nodes)),
                self._cloud.boot_s(node.launch.name),
                replaces,
            )
            made = claim_of((await self._writer.create(claim, node.pool)).obj())
            self.repeated.note_claim(made.name, node.pods)
            place = f"{node.launch.name} in {node.offering.zone} ({node.offering.capacity_type})"
            purpose = f"{len(node.pods)} pods" if node.pods else "the replicas of its pool"
            words = f"provisioning {place} for {purpose}, ${node.price:,.2f} per hour"
            self._say(made, "Provisioning", words)

    def tell_pods(self, plan: NodePlan, given: PlanningInput, pods: Mapping[str, Pod]) -> None:
        """Events of pods: which node will take them, or why none is provisioned."""
        for node in plan.new_nodes[:_MOST_TOLD]:
            for key in node.pods[:_MOST_TOLD]:
                if (pod := pods.get(key)) is not None:
                    self._tell(pod, "Nominated", f"a new {node.launch.name} of pool {node.pool} is provisioned")
        gangs = given.gangs
        # Of a gang, one pod found no place, and the others wait for it.
        causes = {gangs[each.pod]: each for each in plan.pending if each.by_pool and each.pod in gangs}
        for refusal in plan.pending[:_MOST_TOLD]:
            if (pod := pods.get(refusal.pod)) is None:
                continue
            if refusal.pod in given.forbidden:
                is_held = refusal.reason.startswith(NOT_PROVISIONING)
                reason = "CapacityFreedFirst" if is_held else "NotProvisioned"
                self._tell(pod, reason, refusal.reason, is_normal=is_held)
                continue
            cause = causes.get(gangs.get(refusal.pod, ""), refusal)
            by_pool = "; ".join(f"pool {pool}: {why}" for pool, why in sorted(cause.by_pool.items()))
            of_gang = f" for its gang, pod {cause.pod}" if cause is not refusal else ""
            words = f"no node is provisioned{of_gang}: {by_pool or cause.reason}"
            self._tell(pod, "NotProvisioned", words, is_normal=False)

    def tell_dry_run(self, plan: NodePlan, pools: Mapping[str, Item]) -> None:
        for node in plan.new_nodes[:_MOST_TOLD]:
            if (item := pools.get(node.pool)) is not None:
                words = f"would provision {node.launch.name} in {node.offering.zone} for {len(node.pods)} pods"
                self._context.events.record(pool_reference(item), "DryRun", words)

    async def take_back(self, claims: Sequence[NodeClaim], used: frozenset[str], plan: NodePlan) -> float | None:
        """Delete NodeClaims that start and that nothing has needed for a while. `used`: nodes with pods. Returns the
        seconds after which one may be due.
        """
        now_s = self._context.clock.seconds()
        needed = used | frozenset(plan.placed.values())
        starting = {
            claim.uid: claim
            for claim in claims
            if not (claim.is_deleting or claim.has(INITIALIZED) or claim.replaces)
            and not {claim.name, claim.node} & needed
        }
        self._unneeded_since_s = {uid: self._unneeded_since_s.get(uid, now_s) for uid in starting}
        for uid, since_s in self._unneeded_since_s.items():
            if now_s - since_s >= _UNNEEDED_S:
                claim = starting[uid]
                words = "the workload that it was provisioned for does not need it any more"
                self._say(claim, "NoLongerNeeded", words)
                await self._writer.delete(claim)
                self._observer.removed(claim.pool, "not needed")
        if not self._unneeded_since_s:
            return None
        return max(min(self._unneeded_since_s.values()) + _UNNEEDED_S - now_s, 1.0)

    def _tell(self, pod: Pod, reason: str, words: str, *, is_normal: bool = True) -> None:
        meta = pod.metadata
        about = pod_reference(meta.namespace, meta.name, meta.uid)
        self._context.events.record(about, reason, words, type_="Normal" if is_normal else "Warning")
