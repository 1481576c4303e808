"""Creates the Workload of queued pods that have none."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from shoal.client.ecosystem_kinds import WORKLOADS
from shoal.client.item import Item
from shoal.client.refusals import AlreadyExistsError, InvalidError
from shoal.controllers.queued_pods.fault_reports import FaultReports
from shoal.controllers.queued_pods.kueue_names import IS_GROUP, MOST_ROLES, POD_INDEX
from shoal.controllers.queued_pods.membership import (
    GroupError,
    Pods,
    counts_of,
    first_members,
    present,
    total_of,
)
from shoal.controllers.queued_pods.pod_groups import PodGroups, group_of_pod
from shoal.controllers.queued_pods.priorities import Priorities, UnknownClassError
from shoal.controllers.queued_pods.roles import role_of
from shoal.controllers.queued_pods.serving_kinds import Parent
from shoal.controllers.queued_pods.workload_context import WorkloadContext
from shoal.controllers.queued_pods.workload_drafts import (
    PodSetDraft,
    WorkloadDraft,
    as_controller,
    max_exec_time_of,
    owner_reference,
    template_of,
)
from shoal.controllers.queued_pods.workload_names import workload_name
from shoal.controllers.queued_pods.writer import QueuedPodWriter
from shoal.controllers.queued_work.kueue_names import JOB_UID, REPLACES, SLICE_NAME
from shoal.engine.queues.pod_groups import GroupRefusal, GroupWorkload
from shoal.units.errors import UserError


class WorkloadCreator:
    def __init__(
        self, writer: QueuedPodWriter, priorities: Priorities, faults: FaultReports, groups: PodGroups
    ) -> None:
        self._writer = writer
        self._priorities = priorities
        self._faults = faults
        self._groups = groups

    async def create(self, context: WorkloadContext) -> None:
        """Called if no Workload of that name exists."""
        await self._writer.release([one for one in context.pods if one[1].is_lost()])
        running = [one for one in context.pods if one[1].runs() and not one[1].is_terminating()]
        if running:
            await self._writer.stop(running, "NoMatchingWorkload", "No matching Workload; restarting pod")
        elif context.parent is not None:
            await self._for_parent(context, context.parent)
        elif context.group:
            await self._for_pod_group(context)
        elif context.owner_type == "group":
            await self._for_group(context)
        elif context.pods:
            await self._for_pod(context)

    async def _for_pod(self, context: WorkloadContext) -> None:
        pods = context.pods
        item, pod = pods[0]
        if pod.is_finished() or pod.is_terminating():
            await self._writer.release(pods)
            return
        if fault := group_of_pod(item).fault:
            await self._refuse(context, "ErrWorkloadCompose", fault)
            return
        reference = as_controller(owner_reference("Pod", "v1", pod.metadata.name, pod.uid))
        drafts = [PodSetDraft("main", template_of(item.obj()), 1)]
        await self._create(context, drafts, [reference], {JOB_UID: pod.uid}, {})

    async def _for_group(self, context: WorkloadContext) -> None:
        runnable = [one for one in context.pods if not one[1].is_lost() and not one[1].is_terminating()]
        if not runnable:
            return
        try:
            total = total_of(runnable, context.key[1])
        except GroupError as fault:
            await self._refuse(context, "ErrWorkloadCompose", str(fault))
            return
        members, excess = first_members(runnable, total)
        await self._writer.delete_excess(excess)
        members = sorted(members, key=lambda one: one[1].age())
        drafts = _drafts(members, total)
        if len(drafts) > MOST_ROLES:
            await self._refuse(context, "ErrWorkloadCompose", f"pod group can't include more than {MOST_ROLES} roles")
            return
        await self._create(context, drafts, _owners(members), {}, {IS_GROUP: "true"})

    async def _for_pod_group(self, context: WorkloadContext) -> None:
        """The group of another project than Kueue."""
        pods = present(context.pods)
        if all(pod.is_finished() for _, pod in pods):
            return
        found = self._groups.workload(context.group, pods)
        if isinstance(found, GroupRefusal):
            await self._refuse(context, "ErrWorkloadCompose", found.message)
            return
        members = [one for one in pods if not one[1].is_finished()]
        await self._create(context, group_drafts(found, members), _owners(members), {}, {IS_GROUP: "true"})

    async def _for_parent(self, context: WorkloadContext, parent: Parent) -> None:
        meta = parent.meta
        reference = as_controller(owner_reference(parent.kind.name, parent.kind.api_version, meta["name"], meta["uid"]))
        await self._create(context, parent.pod_sets, [reference], {JOB_UID: meta["uid"]}, {})

    async def create_replacement(self, context: WorkloadContext, wanted: Sequence[PodSetDraft], before: Item) -> bool:
        """Create a Workload that replaces the one that is too small for its owner; returns whether it was created. A
        failure does not affect the running pods."""
        annotations = {SLICE_NAME: context.key[1], REPLACES: f"{before.namespace}/{before.name}"}
        parent = context.parent
        if parent is None:
            # The name follows from the Workload that it replaces, so that it is created once.
            key = context.key[0], workload_name(WORKLOADS, context.key[1], before.uid)
            replacement = structs.replace(context, key=key)
            owners = _owners([one for one in context.pods if not one[1].is_over()])
            return await self._create(replacement, wanted, owners, {}, {**annotations, IS_GROUP: "true"})
        meta = parent.meta
        name = workload_name(parent.kind, meta["name"], f"{meta['uid']}\n{meta.get('generation') or 0}")
        reference = as_controller(owner_reference(parent.kind.name, parent.kind.api_version, meta["name"], meta["uid"]))
        replacement = structs.replace(context, key=(context.key[0], name), pods=())
        return await self._create(replacement, wanted, [reference], {JOB_UID: meta["uid"]}, annotations)

    async def _create(
        self,
        context: WorkloadContext,
        drafts: Sequence[PodSetDraft],
        owners: Sequence[dict[str, object]],
        labels: dict[str, str],
        annotations: dict[str, str],
    ) -> bool:
        parent = context.parent
        of = parent.labels if parent is not None else context.pods[0][1].metadata.labels
        try:
            priority = self._priorities.of(of, drafts[0].template["spec"])
            draft = WorkloadDraft(
                *context.key, _queue(context), drafts, owners, labels, annotations, priority, max_exec_time_of(of)
            )
            await self._writer.create(draft.to_api())
        except AlreadyExistsError:
            return False
        except UnknownClassError as error:
            await self._refuse(context, "WorkloadPriorityClassNotFound", str(error))
        except InvalidError as error:
            await self._refuse(context, "ErrWorkloadCompose", error.what)
        except UserError as error:
            await self._refuse(context, "ErrWorkloadCompose", str(error))
        else:
            self._created(context, f"Created Workload: {'/'.join(context.key)}")
            return True
        return False

    async def _refuse(self, context: WorkloadContext, reason: str, message: str) -> None:
        """No Workload can be made from these pods: report the reason on each of them."""
        await self._faults.report(context, (reason, message))

    def _created(self, context: WorkloadContext, message: str) -> None:
        if context.parent is not None:
            self._writer.record_on(context.parent.obj, context.parent.kind, "CreatedWorkload", message)
        else:
            self._writer.record(context.pods[0][1], "CreatedWorkload", message)


def _queue(context: WorkloadContext) -> str:
    return context.parent.queue if context.parent is not None else context.pods[0][1].queue


def _owners(members: Pods) -> list[dict[str, object]]:
    return [owner_reference("Pod", "v1", pod.metadata.name, pod.uid) for _, pod in members]


def group_drafts(found: GroupWorkload, members: Pods) -> list[PodSetDraft]:
    """The pod sets of a pod group, in the order of their names as Kueue has them."""
    first: dict[str, Item] = {}
    for item, _ in members:
        first.setdefault(role_of(item), item)
    return [
        PodSetDraft(each.shape, template_of(first[each.shape].obj()), each.count, "", found.least_of(each.shape))
        for each in sorted(found.pod_sets, key=lambda each: each.shape)
    ]


def _drafts(members: Pods, total: int) -> list[PodSetDraft]:
    """One pod set for each role, with the template of its oldest pod."""
    first: dict[str, Item] = {}
    for item, _ in members:
        first.setdefault(role_of(item), item)
    return [
        PodSetDraft(role, template_of(first[role].obj()), count, POD_INDEX)
        for role, count in counts_of(members, total).items()
    ]
