"""Follows a Workload of queued pods from its members to its end.

The finalizer keeps a deleted pod for as long as its outcome still counts.
"""

from __future__ import annotations

from collections import Counter

from msgspec import structs

from shoal.client.item import Item
from shoal.controllers.queued_pods import workload_conditions
from shoal.controllers.queued_pods.elastic_workloads import ElasticWorkloads
from shoal.controllers.queued_pods.membership import Pods, is_serving, members_of
from shoal.controllers.queued_pods.pod_group_lifecycle import PodGroupLifecycle, other_shapes
from shoal.controllers.queued_pods.pod_lifecycle import PodLifecycle
from shoal.controllers.queued_pods.pod_view import QueuedPod
from shoal.controllers.queued_pods.roles import role_of
from shoal.controllers.queued_pods.workload_context import WorkloadContext
from shoal.controllers.queued_pods.workload_drafts import owner_reference
from shoal.controllers.queued_pods.workload_view import WorkloadView
from shoal.controllers.queued_pods.writer import QueuedPodWriter
from shoal.controllers.queued_work.rules import JobRules


class QueuedWorkloadLifecycle:
    def __init__(
        self,
        writer: QueuedPodWriter,
        pod_lifecycle: PodLifecycle,
        elastic: ElasticWorkloads,
        pod_groups: PodGroupLifecycle,
    ) -> None:
        self._writer = writer
        self._pod_lifecycle = pod_lifecycle
        self._elastic = elastic
        self._pod_groups = pod_groups

    async def handle_deletion(self, context: WorkloadContext, item: Item, workload: WorkloadView) -> None:
        """The Workload is being deleted: stop its pods."""
        owners = workload.owners("Pod")
        of_it = [one for one in context.pods if context.owner_type == "parent" or one[1].uid in owners]
        if context.owner_type == "parent":
            of_it = [one for one in of_it if not one[1].is_held()]
        await self._writer.stop(of_it, "WorkloadDeleted", "Workload is deleted")
        await self._writer.release(of_it)
        await self._writer.remove_finalizer(item)

    async def reconcile(
        self, context: WorkloadContext, item: Item, workload: WorkloadView, rules: JobRules
    ) -> float | None:
        if workload.is_true("Finished"):
            if context.group and await self._pod_groups.restart_finished(context, item):
                return None
            await self._writer.release(context.pods)
            await self._writer.remove_finalizer(item)
            return None
        if context.parent is not None and await self._elastic.settle(context, item, workload):
            # The change of these Workloads triggers the next reconciliation.
            return None
        found = await self._members(context, item, workload)
        if found is None:
            return None
        item, pods, absent, ending = found
        await self._writer.release(_releasable(context, pods))
        if ending is not None:
            await self._finish(context, item, ending)
            return None
        item = await self._report(context, item, pods, absent, reports_pods_ready=rules.reports_pods_ready)
        if context.group:
            await self._pod_groups.report_other_shapes(context, workload)
            others = other_shapes(context.pods, workload)
            context = structs.replace(context, pods=[one for one in context.pods if one not in others])
        return await self._pod_lifecycle.reconcile(context, item, workload, pods, rules)

    async def _members(
        self, context: WorkloadContext, item: Item, workload: WorkloadView
    ) -> tuple[Item, Pods, int, workload_conditions.Ending | None] | None:
        """The Workload, its members, how many are missing, and how they ended. None if the Workload does not match the
        pods."""
        pods, ending = context.pods, _ending(context)
        if context.group:
            found = await self._pod_groups.members(context, item, workload)
            if found is None:
                return None
            if await self._elastic.settle_group(context, item, workload, found.larger):
                # The change of these Workloads triggers the next reconciliation.
                return None
            item = await self._add_owners(item, workload, found.pods)
            return item, found.pods, int(found.lacks_pods), found.ending
        if context.owner_type != "group":
            return item, pods, 0, ending
        if ending is None and await self._delete_if_gone(context, item):
            return None
        members = members_of(pods, workload.counts())
        if members.has_other_roles:
            await self._writer.delete_workload(item)
            self._writer.record(
                pods[0][1], "DeletedWorkload", f"Deleted not matching Workload: {'/'.join(context.key)}"
            )
            return None
        item = await self._add_owners(item, workload, members.kept)
        await self._writer.delete_excess(members.excess)
        await self._writer.release(members.replaced)
        return item, members.kept, members.absent, ending

    async def _delete_if_gone(self, context: WorkloadContext, item: Item) -> bool:
        """All pods of the group were deleted, and not by this controller: no replacements will come."""
        if not context.pods or not all(_was_deleted(pod) for _, pod in context.pods):
            return False
        await self._writer.release(context.pods)
        await self._writer.delete_workload(item)
        return True

    async def _add_owners(self, item: Item, workload: WorkloadView, pods: Pods) -> Item:
        known = workload.owners("Pod")
        more = [owner_reference("Pod", "v1", pod.metadata.name, pod.uid) for _, pod in pods if pod.uid not in known]
        if not more:
            return item
        present = item.obj()["metadata"].get("ownerReferences") or []
        return await self._writer.patch_workload(item, {"metadata": {"ownerReferences": [*present, *more]}})

    async def _finish(self, context: WorkloadContext, item: Item, ending: workload_conditions.Ending) -> None:
        await self._writer.write_status(
            item, lambda status, moment: workload_conditions.set_finished(status, ending, moment)
        )
        message = f"Workload '{'/'.join(context.key)}' is declared finished"
        self._writer.record(context.pods[0][1], "FinishedWorkload", message)

    async def _report(
        self, context: WorkloadContext, item: Item, pods: Pods, absent: int, *, reports_pods_ready: bool
    ) -> Item:
        changes: list[workload_conditions.Change] = []
        counts: Counter[str] = Counter()
        if context.owner_type == "group":
            # Pods of a pod group may have succeeded before there was this Workload.
            own = context.workload.owners("Pod") if context.group and context.workload is not None else None
            counts.update(
                role_of(one) for one, pod in pods if pod.status.phase == "Succeeded" and (own is None or pod.uid in own)
            )
            changes.append(
                lambda status, moment: workload_conditions.set_waiting_for_replacement(status, absent, moment)
            )
        if context.parent is not None and context.workload is not None and context.workload.is_true("QuotaReserved"):
            now = context.parent.counts()
            counts.update({name: count - now.get(name, 0) for name, count in context.workload.counts().items()})
        if any(count > 0 for count in counts.values()):
            changes.append(lambda status, _: workload_conditions.set_reclaimable(status, counts))
        if reports_pods_ready:
            are_ready = bool(pods) and not absent and all(pod.is_ready() for _, pod in pods)
            if context.parent is not None and context.workload is not None:
                # The pods by which it grows are not admitted yet.
                wanted = Counter(context.parent.counts()) & Counter(context.workload.counts())
                are_ready = sum(pod.is_ready() and not pod.is_over() for _, pod in pods) >= sum(wanted.values())
            changes.append(
                lambda status, moment: workload_conditions.set_pods_ready(status, are_ready=are_ready, moment=moment)
            )
        return await self._writer.write_status(item, *changes)


def _releasable(context: WorkloadContext, pods: Pods) -> Pods:
    """Terminating pods whose finalizer can be removed: single pods, and pods that their owner creates again."""
    ending = [one for one in pods if one[1].is_terminating()]
    if context.owner_type == "pod":
        return ending
    if context.owner_type == "group" and (context.group or not is_serving(context.pods)):
        return ()
    return [one for one in ending if one[1].is_over()]


def _ending(context: WorkloadContext) -> workload_conditions.Ending | None:
    """None while pods run, and for serving kinds, which never end by themselves."""
    if context.owner_type == "parent" or context.group or not context.pods:
        return None
    if context.owner_type == "pod":
        return workload_conditions.ending_of_pod(context.pods)
    return None if is_serving(context.pods) else workload_conditions.ending_of_group(context.pods)


def _was_deleted(pod: QueuedPod) -> bool:
    return pod.is_terminating() and pod.is_over() and not pod.was_stopped()
