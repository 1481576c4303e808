"""Brings every NodeClaim one step further: launch, registration, initialization, giving up, termination.

Nothing is kept in memory that a successor of this process would need: what has happened is in the conditions of the
claim, and what exists is asked of the cloud.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from shoal.api.node import Node
from shoal.autoscale.node_claims.claim import (
    FINALIZER,
    INITIALIZED,
    INITIALIZED_LABEL,
    REGISTERED,
    REGISTERED_LABEL,
    UNREGISTERED_TAINT,
    NodeClaim,
)
from shoal.autoscale.node_claims.progress import ClaimStep, ProvisionLimits, StepDecision, step_of
from shoal.autoscale.nodes.advertised_devices import GPU
from shoal.autoscale.requirements.labels import INSTANCE_TYPE_LABEL, REGION_LABEL, ZONE_LABEL
from shoal.client.ecosystem_kinds import NODE_CLAIMS
from shoal.client.item import Obj
from shoal.client.kind import NODES
from shoal.cloud.port import ANY_ZONE, GROUP_TAG, CloudInstance
from shoal.controllers.node_scaling.figures import start_times
from shoal.controllers.node_scaling.launches import Launches, Types
from shoal.controllers.node_scaling.parts import ScalingParts
from shoal.controllers.node_scaling.terminations import Terminations

_POLL_S: Final = 15.0
"""Changes of Nodes are seen at once; this is for limits of time."""
_OF_MACHINE: Final = frozenset({INSTANCE_TYPE_LABEL, REGION_LABEL, ZONE_LABEL})
_REGISTERED_SOON_S: Final = 1.0


def _has_gpus(claim: NodeClaim, types: Types) -> bool:
    one = types.get(claim.pool, {}).get(claim.offering[0])
    return one is not None and bool(one.capacity.get(GPU))


class ClaimSteps:
    def __init__(self, parts: ScalingParts) -> None:
        self._context = parts.context
        self._writer = parts.writer
        self._failures = parts.failures
        self._observer = parts.observer
        self._say = parts.say
        self._launches = Launches(parts)
        self._terminations = Terminations(parts)
        self.limits = ProvisionLimits(launch_s=parts.cloud.launch_limit_s)

    async def advance(
        self,
        claims: Sequence[NodeClaim],
        nodes: Mapping[str, Node],
        instances: Mapping[str, CloudInstance],
        types: Types,
        paused: frozenset[str],
        published: frozenset[str] = frozenset(),
    ) -> float | None:
        """`nodes` and `instances` by provider id; `paused`: pools for which nothing is requested or given up;
        `published`: nodes whose GPUs are published as devices of resource claims. Returns the seconds after which
        something has to be looked at again.
        """
        soonest: list[float] = []
        groups: dict[str, list[NodeClaim]] = {}
        for claim in claims:
            groups.setdefault(claim.group, []).append(claim)
        requested = {each.tags.get(GROUP_TAG) for each in instances.values()}
        launched: set[str] = set()
        for claim in claims:
            node = nodes.get(claim.provider_id) if claim.provider_id else None
            instance = instances.get(claim.provider_id) if claim.provider_id else None
            decision = step_of(
                claim,
                node,
                has_instance=instance is not None,
                now_s=self._context.clock.seconds(),
                limits=self.limits,
                is_published=(node is not None and node.metadata.name in published) or not _has_gpus(claim, types),
            )
            if decision.step is ClaimStep.LAUNCH:
                if claim.pool in paused or claim.group in launched:
                    continue
                launched.add(claim.group)
                is_requested = claim.group in requested
                again_s = await self._launches.launch(groups[claim.group], types, is_requested=is_requested)
            elif decision.step is ClaimStep.GIVE_UP and claim.pool in paused:
                again_s = None
            else:
                again_s = await self._step(claim, decision, node, instance)
            if again_s is not None:
                soonest.append(again_s)
        return min(soonest, default=None)

    async def _step(
        self, claim: NodeClaim, decision: StepDecision, node: Node | None, instance: CloudInstance | None
    ) -> float | None:
        match decision.step:
            case ClaimStep.REGISTER if node is not None:
                await self._register(claim, node)
                return _REGISTERED_SOON_S
            case ClaimStep.INITIALIZE if node is not None:
                await self._initialize(claim, node)
            case ClaimStep.GIVE_UP:
                await self._give_up(claim, decision.why)
                return _REGISTERED_SOON_S
            case ClaimStep.LOST:
                self._say(claim, "NodeLost", decision.why, is_normal=False)
                await self._writer.delete(claim)
                return _REGISTERED_SOON_S
            case ClaimStep.TERMINATE if claim.has_finalizer:
                name = claim.node or (node.metadata.name if node is not None else "")
                return await self._terminations.terminate(claim, name, instance)
            case ClaimStep.WAIT:
                condition = INITIALIZED if claim.has(REGISTERED) else REGISTERED
                await self._writer.set_conditions(claim.name, [(condition, "Unknown", "Starting", decision.why)])
                return _POLL_S
            case _:
                pass
        return None

    async def _register(self, claim: NodeClaim, node: Node) -> None:
        """The Node gets what its kubelet did not bring."""
        name = node.metadata.name
        item = self._context.informers.of(NODES).get("", name)
        if item is None:
            return
        raw = item.obj()
        finalizers = raw["metadata"].get("finalizers") or []
        taints: list[Obj] = raw["spec"].get("taints") or []
        there = raw["metadata"].get("labels") or {}
        # The kubelet knows its machine. The word for any zone is not written.
        labels = {
            key: value
            for key, value in claim.labels.items()
            if key not in _OF_MACHINE or (key not in there and value != ANY_ZONE)
        }
        metadata: Obj = {"labels": {**labels, REGISTERED_LABEL: "true"}}
        if FINALIZER not in finalizers:
            metadata["finalizers"] = [*finalizers, FINALIZER]
        left = [each for each in taints if each["key"] != UNREGISTERED_TAINT]
        tainted = {(each["key"], each["effect"]) for each in left}
        left += [each for each in self._taints_of(claim) if (each["key"], each["effect"]) not in tainted]
        await self._writer.patch_node(item, metadata, {"taints": left} if left != taints else None)
        await self._writer.set_conditions(claim.name, [(REGISTERED, "True", "Registered", "")], {"nodeName": name})
        self._say(claim, "Registered", f"node {name} has registered")

    def _taints_of(self, claim: NodeClaim) -> list[Obj]:
        """The taints of its pool, which not every kubelet registers with. Startup taints are left to the kubelet: what
        removes them may have done so already."""
        item = self._context.informers.of(NODE_CLAIMS).get("", claim.name)
        return [] if item is None else list(item.obj()["spec"].get("taints") or ())

    async def _initialize(self, claim: NodeClaim, node: Node) -> None:
        item = self._context.informers.of(NODES).get("", node.metadata.name)
        if item is None:
            return
        await self._writer.patch_node(item, {"labels": {INITIALIZED_LABEL: "true"}})
        now_s = self._context.clock.seconds()
        status: Obj = {"allocatable": item.obj()["status"].get("allocatable") or {}}
        await self._writer.set_conditions(claim.name, [(INITIALIZED, "True", "Initialized", "")], status)
        self._failures.note_start(claim.offering)
        for phase, seconds in start_times(claim, now_s).items():
            self._observer.took(claim.pool, phase, seconds)
        self._say(claim, "Initialized", f"node {node.metadata.name} takes pods {now_s - claim.created_s:.0f} s later")

    async def _give_up(self, claim: NodeClaim, why: str) -> None:
        """The next plan takes another offering."""
        self._failures.note_failure(claim.offering, self._context.clock.seconds())
        self._say(claim, "GivenUp", f"{why}; another offering is tried", is_normal=False)
        await self._writer.delete(claim)
        self._observer.removed(claim.pool, "given up")
