"""Gives idle GPUs the MIG layout that pods wait for, by the label that the MIG manager of the node follows.

A plan takes seconds, in which the scheduler goes on: that the GPUs are still idle is checked before the label is set.
"""

from __future__ import annotations

import logging

from shoal.api.pod import Pod
from shoal.autoscale.nodes.plan import NodePlan
from shoal.client.kind import NODES, PODS
from shoal.client.kubelet.times import written
from shoal.controllers.node_scaling.claim_events import node_reference
from shoal.controllers.node_scaling.parts import ScalingParts
from shoal.engine.from_api import ask_of_pod
from shoal.store.freed_capacity import CHANGED, FreedCapacity, may_hold_gpus
from shoal.store.mig_relabelling import MIG_CONFIG
from shoal.store.watched.pod_heads import head_of
from shoal.store.watched.reading import value_of
from shoal.units.errors import ShoalError, UserError

_log = logging.getLogger("shoal.nodes")


class Repartitioning:
    def __init__(self, parts: ScalingParts) -> None:
        self._context = parts.context
        self._writer = parts.writer

    async def carry_out(self, freed: FreedCapacity, plan: NodePlan) -> None:
        """For the units that are held back by it, and for those that no node is provisioned for."""
        now_s = self._context.clock.seconds()
        pending = {each.pod for each in plan.pending}
        wanted: dict[str, tuple[str, str]] = {}
        for unit, found in freed.outcomes:
            # A unit that another step holds back does not need it.
            is_held = found.hold is not None and found.hold.step == "repartition"
            if is_held or (found.hold is None and pending.issuperset(unit.keys)):
                wanted |= {node: (layout, unit.name) for node, layout in freed.layouts.get(unit.name, ())}
        for node, (layout, unit_name) in wanted.items():
            await self._change(node, layout, unit_name, now_s)

    async def _change(self, name: str, layout: str, unit: str, now_s: float) -> None:
        item = self._context.informers.of(NODES).get("", name)
        if item is None or (item.obj()["metadata"].get("labels") or {}).get(MIG_CONFIG) == layout:
            return
        if self._is_in_use(name):
            return
        metadata = {"labels": {MIG_CONFIG: layout}, "annotations": {CHANGED: written(now_s)}}
        try:
            await self._writer.patch_node(item, metadata)
        except ShoalError as error:
            # Another pass tries it again, until the time of the pods is over.
            _log.warning("the MIG layout of node %s is not changed: %s", name, error)
            return
        words = f"MIG layout {layout} for {unit}, before a node is provisioned"
        self._context.events.record(node_reference(item), "Repartitioning", words)

    def _is_in_use(self, node: str) -> bool:
        """Whether a pod has got a part of its GPUs by now."""
        for item in self._context.informers.of(PODS):
            if head_of(item).spec.node_name != node:
                continue
            try:
                pod = value_of(PODS, item, Pod)
                if not pod.is_finished() and may_hold_gpus(ask_of_pod(pod)):
                    return True
            except UserError:
                # What it holds is not known.
                return True
        return False
