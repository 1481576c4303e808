"""Ends nodes whose NodeClaims are deleted: drains the Node, deletes the instance, then the Node and the NodeClaim.

Pods are evicted, so disruption budgets are respected, until the node's time is over: the terminationGracePeriod of the
claim, or the moment at which the cloud takes the instance back. Then the pods that are left are deleted. An instance is
deleted once no pod is left that has to go elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from shoal.api.pod import Pod
from shoal.api.taints import Taint
from shoal.autoscale.disruption.protection import is_mirror, owner_kind
from shoal.autoscale.node_claims.claim import DISRUPTED_TAINT, DRAINED, TERMINATING, NodeClaim
from shoal.client.item import Item
from shoal.client.kind import NODES, PODS
from shoal.client.kubelet.pod_facts import nodes_of
from shoal.client.port import Deletion
from shoal.client.refusals import BusyError, NotFoundError, StaleError
from shoal.cloud.port import CloudInstance
from shoal.controllers.node_scaling.parts import ScalingParts
from shoal.store.watched.reading import value_of
from shoal.units.errors import UserError

_AGAIN_S: Final = 5.0
_SOON_S: Final = 1.0
_BEFORE_END_S: Final = 30.0
"""Before the cloud takes an instance back, pods that are left get this time to end."""
_STUCK_S: Final = 60.0
_DISRUPTED: Final = Taint(DISRUPTED_TAINT, "NoSchedule")


class Terminations:
    def __init__(self, parts: ScalingParts) -> None:
        self._context = parts.context
        self._cloud = parts.cloud
        self._writer = parts.writer
        self._pods = parts.context.informers.of(PODS)
        self._nodes = parts.context.informers.of(NODES)

    async def terminate(self, claim: NodeClaim, node: str, instance: CloudInstance | None) -> float | None:
        """One step; returns the seconds after which the next one is due, or None if nothing is left to do."""
        if instance is not None and node and self._nodes.get("", node) is not None:
            await self._writer.taint_disrupted(node, is_disrupted=True)
            left = self._leaving(node)
            if left:
                await self._evict(left, self._ends_s(claim, instance))
                await self._writer.set_conditions(
                    claim.name, [(DRAINED, "False", "Draining", f"{len(left)} pods are left")]
                )
                return _AGAIN_S
        if instance is not None:
            await self._writer.set_conditions(
                claim.name, [(DRAINED, "True", "Drained", ""), (TERMINATING, "True", "InstanceTerminating", "")]
            )
            await self._cloud.delete([instance.id])
            return _SOON_S
        if node:
            await self._writer.remove_node(node)
        await self._writer.release(claim)
        return None

    def _ends_s(self, claim: NodeClaim, instance: CloudInstance) -> float | None:
        """When pods are deleted that were not evicted."""
        ends = []
        if claim.grace_s is not None and claim.deleted_s is not None:
            ends.append(claim.deleted_s + claim.grace_s)
        if instance.interrupted_s is not None:
            ends.append(instance.interrupted_s - _BEFORE_END_S)
        return min(ends, default=None)

    def _leaving(self, node: str) -> list[tuple[Item, Pod]]:
        """The pods that have to go elsewhere, or that are about to end."""
        found = []
        for item in self._pods.index("node", nodes_of)[node]:
            try:
                pod = value_of(PODS, item, Pod)
            except UserError:
                continue
            if pod.is_finished() or is_mirror(pod) or owner_kind(pod) == "DaemonSet":
                continue
            if any(each.tolerates(_DISRUPTED) for each in pod.spec.tolerations) or self._is_stuck(pod):
                continue
            found.append((item, pod))
        return found

    def _is_stuck(self, pod: Pod) -> bool:
        """Whether its kubelet does not end it: the node is dead."""
        ends = pod.metadata.deletion_timestamp
        return ends is not None and self._context.clock.seconds() > ends.timestamp() + _STUCK_S

    async def _evict(self, pods: Iterable[tuple[Item, Pod]], ends_s: float | None) -> None:
        now_s = self._context.clock.seconds()
        for item, pod in pods:
            if pod.is_terminating():
                continue
            is_late = ends_s is not None and now_s >= ends_s - pod.spec.termination_grace_period_seconds
            try:
                if is_late:
                    await self._context.api.delete(PODS, *item.key, Deletion(uid=item.uid))
                else:
                    options = {"deleteOptions": {"preconditions": {"uid": item.uid}}}
                    await self._context.api.post(PODS, *item.key, "eviction", options)
            except (NotFoundError, StaleError, BusyError):
                # It is gone, or its disruption budget does not allow it now: the next step shows.
                continue
