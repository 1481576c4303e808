"""Manages the Workloads of a StatefulSet or pod group that grows while it runs: a larger Workload replaces the present
one.

Its pods run on, and the added pods are held until the new Workload is admitted; then the older one is finished. Kueue
allows such a size to change only from and to zero.

Guarantees: the next step follows from the Workloads and the StatefulSet or pods alone; of several Workloads the newest
admitted one counts.

Rejected: stopping all pods and queueing the whole set again. The service would be down for as long as that takes.
"""

from __future__ import annotations

from collections.abc import Sequence

from shoal.client.item import Item
from shoal.client.kind import STATEFUL_SETS
from shoal.controllers.queued_pods import workload_conditions
from shoal.controllers.queued_pods.serving_kinds import has_grown
from shoal.controllers.queued_pods.workload_context import WorkloadContext
from shoal.controllers.queued_pods.workload_creator import WorkloadCreator
from shoal.controllers.queued_pods.workload_drafts import PodSetDraft
from shoal.controllers.queued_pods.workload_view import WorkloadView, workload_view
from shoal.controllers.queued_pods.writer import QueuedPodWriter
from shoal.units.errors import UserError


class ElasticWorkloads:
    def __init__(self, writer: QueuedPodWriter, creator: WorkloadCreator) -> None:
        self._writer = writer
        self._creator = creator

    async def settle(self, context: WorkloadContext, item: Item, workload: WorkloadView) -> bool:
        """Handle the Workloads other than the one under which the pods run; returns whether anything was done."""
        is_done = await self._settle_older(context, item, workload)
        parent = context.parent
        if not _is_admitted(workload) or parent is None or parent.kind != STATEFUL_SETS:
            return is_done
        wanted = parent.pod_sets if has_grown(parent, workload) else ()
        return await self._next(context, item, wanted) or is_done

    async def settle_group(
        self, context: WorkloadContext, item: Item, workload: WorkloadView, wanted: Sequence[PodSetDraft]
    ) -> bool:
        """The same for a pod group. `wanted`: the pod sets of its larger Workload; empty if it has not grown."""
        is_done = await self._settle_older(context, item, workload)
        return await self._next(context, item, wanted if _is_admitted(workload) else ()) or is_done

    async def _settle_older(self, context: WorkloadContext, item: Item, workload: WorkloadView) -> bool:
        is_done = False
        for other in context.older:
            is_done = True
            if not workload_view(other).is_true("Finished") and _is_admitted(workload):
                await self._replace(other, item)
            elif workload_view(other).is_true("Finished"):
                is_done = await self._writer.remove_finalizer(other)
            else:
                await self._writer.delete_workload(other)
        return is_done

    async def _next(self, context: WorkloadContext, item: Item, wanted: Sequence[PodSetDraft]) -> bool:
        """Create or resize the Workload for a larger size; returns whether anything was done."""
        for other in context.newer:
            if await self._release_evicted(other):
                return True
        for other in context.newer if not wanted else context.newer[:-1]:
            await self._writer.delete_workload(other)
        if not wanted:
            return bool(context.newer)
        if not context.newer:
            return await self._creator.create_replacement(context, wanted, item)
        last = workload_view(context.newer[-1])
        if last.sizes() == {one.name: (one.count, one.min_count) for one in wanted} or last.is_true("QuotaReserved"):
            return False
        try:
            await self._writer.patch_workload(
                context.newer[-1], {"spec": {"podSets": [one.to_api() for one in wanted]}}
            )
        except UserError:
            # `PodLifecycle` and `WorkloadCreator` report the fault on the owner.
            return False
        return True

    async def _release_evicted(self, other: Item) -> bool:
        """Release a newer Workload that was deleted or evicted before pods ran under it; returns whether it was."""
        view = workload_view(other)
        if view.is_terminating():
            await self._writer.delete_workload(other)
        elif view.is_true("Evicted") and view.is_true("QuotaReserved"):
            await self._writer.write_status(other, workload_conditions.release_quota)
        else:
            return False
        return True

    async def _replace(self, other: Item, by: Item) -> None:
        uid = next(iter(owner.uid for owner in workload_view(by).metadata.owner_references), "")
        message = f"Replaced to accommodate a workload (UID: {by.uid}, JobUID: {uid}) due to workload slice aggregation"
        await self._writer.write_status(
            other, lambda status, moment: workload_conditions.set_replaced(status, message, moment)
        )


def _is_admitted(workload: WorkloadView) -> bool:
    return workload.is_true("Admitted") and not workload.is_true("Evicted")
