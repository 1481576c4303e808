"""Writes the statuses of pods, one patch for all changes since the last one, and then their final deletion.

Every write contains the pod's uid, so that it never changes a later pod of the same name. The first one contains the
version too: writes in progress of a killed fleet are detected, and the pod continues from them.
"""

from __future__ import annotations

from collections.abc import Mapping

from shoal.client.item import Item
from shoal.client.kind import PODS
from shoal.client.kubelet.pod_facts import facts_of
from shoal.client.kubelet.pod_run import PodRun
from shoal.client.kubelet.pod_status import status_of
from shoal.client.port import Api, Deletion, Patch
from shoal.client.refusals import NotFoundError, StaleError
from shoal.embedded.kubelets.context import FleetContext
from shoal.embedded.kubelets.simulated_node import SimulatedNode


class PodWriter:
    def __init__(self, api: Api, context: FleetContext, nodes: Mapping[str, SimulatedNode]) -> None:
        self._api = api
        self._context = context
        self._nodes = nodes

    async def write(self, key: tuple[str, str]) -> None:
        """Write until the server has the state, unless the node is disconnected."""
        node, uid = self._nodes.get(key[0]), key[1]
        while node is not None and node.is_reachable():
            run = node.pods.runs.get(uid)
            item = self._context.item(run) if run is not None else None
            if run is None or item is None:
                node.pods.lose(uid)
                return
            try:
                if run.changes != run.written:
                    await self._write_status(node, run, item)
                elif run.is_over and run.is_deleted and not run.is_dismissed:
                    await self._api.delete(PODS, run.namespace, run.name, Deletion(grace_s=0, uid=uid))
                    run.is_dismissed = True
                else:
                    return
            except (NotFoundError, StaleError):
                found = await self._found(run)
                if found is None:
                    node.pods.lose(uid)
                    return
                if run.base:
                    node.pods.begin_again(found)

    async def _write_status(self, node: SimulatedNode, run: PodRun, item: Item) -> None:
        changes = run.changes
        held = node.pods.held(run) if run.uid in node.pods.grants and not run.is_over else None
        status = status_of(run, facts_of(item), node.address, self._context.clock.seconds(), held)
        meta = {"uid": run.uid} | ({"resourceVersion": str(run.base)} if run.base else {})
        patch = Patch("strategic", {"metadata": meta, "status": status})
        await self._api.patch(PODS, run.namespace, run.name, patch, "status")
        run.written, run.base = changes, 0
        node.pods.reported(run)

    async def _found(self, run: PodRun) -> Item | None:
        try:
            item = await self._api.get(PODS, run.namespace, run.name)
        except NotFoundError:
            return None
        return item if item.uid == run.uid else None
