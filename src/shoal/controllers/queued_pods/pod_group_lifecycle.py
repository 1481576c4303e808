"""Keeps the Workload of a pod group of Volcano, KAI, scheduler-plugins or Kubernetes in line with its pods.

While the Workload waits, it counts the pods that exist; if these are too few for the gang, it is deleted, so that a
group never gets quota that it cannot use. Once it is admitted, its pods may be replaced, pods that others delete are
let go, and further pods wait for quota of their own (`elastic_workloads.py`).

Guarantees: no group holds quota while its gang lacks pods, except for members that are lost while others run; the quota
of a lost member is kept for its replacement.

Rejected: Kueue's rules for its own groups, where the number of pods is fixed, pods above it are deleted, and a deleted
pod is kept until it is replaced. These PodGroups promise a minimum only, and their controllers replace pods under the
same names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import structs

from shoal.client.item import Item
from shoal.controllers.queued_pods.fault_reports import FaultReports
from shoal.controllers.queued_pods.membership import Member, Pods, present
from shoal.controllers.queued_pods.pod_groups import PodGroups
from shoal.controllers.queued_pods.roles import role_of
from shoal.controllers.queued_pods.workload_conditions import Ending
from shoal.controllers.queued_pods.workload_context import WorkloadContext
from shoal.controllers.queued_pods.workload_creator import group_drafts
from shoal.controllers.queued_pods.workload_drafts import PodSetDraft
from shoal.controllers.queued_pods.workload_view import WorkloadView
from shoal.controllers.queued_pods.writer import QueuedPodWriter
from shoal.engine.queues.pod_groups import GroupRefusal

_ALL = 1 << 30
"""More pods than any role has."""


class PodGroupMembers(msgspec.Struct, frozen=True, eq=False):
    """The pods of a group that count for its Workload."""

    pods: Pods = ()
    """Those that run come first, then the others in the order in which they are admitted."""
    lacks_pods: bool = False
    """The gang needs more pods than there are."""
    ending: Ending | None = None
    larger: Sequence[PodSetDraft] = ()
    """The pod sets of a Workload for more pods; empty if there are not more."""


class PodGroupLifecycle:
    def __init__(self, writer: QueuedPodWriter, faults: FaultReports, groups: PodGroups) -> None:
        self._writer = writer
        self._faults = faults
        self._groups = groups

    async def restart_finished(self, context: WorkloadContext, item: Item) -> bool:
        """Delete the Workload of a finished group that has new pods; returns whether it was deleted."""
        if not any(pod.is_held() and not pod.is_terminating() for _, pod in context.pods):
            return False
        await self._end(context, item)
        return True

    async def report_other_shapes(self, context: WorkloadContext, workload: WorkloadView) -> None:
        """Report on pods for which the admitted Workload has no pod set why they wait."""
        others = other_shapes(context.pods, workload)
        if others and workload.is_true("Admitted"):
            message = (
                f"pod group {context.group} is admitted without pods of this shape: the pod is queued with the group "
                "when the group has ended or is preempted"
            )
            await self._faults.report(structs.replace(context, pods=others), ("ErrWorkloadCompose", message))

    async def members(self, context: WorkloadContext, item: Item, workload: WorkloadView) -> PodGroupMembers | None:
        """None if the Workload was deleted or changed."""
        pods = context.pods
        await self._writer.release([one for one in pods if one[1].is_terminating() and one[1].is_lost()])
        there = present(pods)
        runs = any(pod.runs() for _, pod in pods)
        is_reserved = workload.is_true("QuotaReserved")
        is_stopping = is_reserved and workload.is_true("Evicted")
        if all(pod.is_finished() for _, pod in there):
            if runs or is_stopping:
                return PodGroupMembers(_kept(pods, workload, ()))
            ended = [one for one in pods if one[1].is_finished() and not (one[1].is_terminating() and one[1].is_lost())]
            if is_reserved and ended:
                succeeded = sum(pod.status.phase == "Succeeded" for _, pod in ended)
                is_good = self._groups.is_complete(context.group, ended)
                return PodGroupMembers(there, ending=Ending(is_good, f"Pods succeeded: {succeeded}/{len(ended)}."))
            await self._end(context, item)
            return None
        found = self._groups.workload(context.group, there)
        if isinstance(found, GroupRefusal):
            if not runs and not is_stopping and (found.lacks_pods or not is_reserved):
                await self._writer.delete_workload(item)
                await self._faults.report(context, ("ErrWorkloadCompose", found.message))
                return None
            return PodGroupMembers(_kept(pods, workload, ()), found.lacks_pods)
        if not is_reserved and not runs:
            waiting = [one for one in there if not one[1].is_finished()]
            drafts = [one.to_api() for one in group_drafts(found, waiting)]
            if _sizes(drafts) != _sizes(item.obj()["spec"]["podSets"]):
                await self._writer.patch_workload(item, {"spec": {"podSets": drafts}})
                return None
        return PodGroupMembers(_kept(pods, workload, found.order), larger=_larger(there, workload, item))

    async def _end(self, context: WorkloadContext, item: Item) -> None:
        """The Workload counts for none of these pods any more."""
        await self._writer.release([one for one in context.pods if one[1].is_over()])
        for each in (*context.older, *context.newer, item):
            await self._writer.delete_workload(each)


def _kept(pods: Pods, workload: WorkloadView, order: tuple[str, ...]) -> Pods:
    """As many pods of each role as are admitted, or would be. Pods that succeeded before there was this Workload do not
    count for it."""
    own = workload.owners("Pod")
    place = {name: index for index, name in enumerate(order)}
    left = Counter(workload.admitted_counts())
    kept: list[Member] = []

    def rank(one: Member) -> tuple[bool, int, tuple[float, str]]:
        return one[1].is_held(), place.get(one[1].metadata.name, len(place)), one[1].age()

    counting = (one for one in pods if not one[1].is_lost() and (one[1].uid in own or not one[1].is_finished()))
    for one in sorted(counting, key=rank):
        role = role_of(one[0])
        if left[role] > 0:
            left[role] -= 1
            kept.append(one)
    return kept


def _larger(pods: Pods, workload: WorkloadView, item: Item) -> list[PodSetDraft]:
    """The pod sets with the further pods of one role; of several such roles, that of the oldest pod. As many of them
    are admitted as there is quota for."""
    held, active = workload.counts_in_use(), Counter(role_of(one) for one, pod in pods if not pod.is_finished())
    growing = next(
        (role_of(one) for one, pod in pods if pod.is_held() and active[role_of(one)] > held.get(role_of(one), _ALL)), ""
    )
    if not growing:
        return []
    return [
        PodSetDraft(
            one["name"],
            one["template"],
            active[growing] if one["name"] == growing else held[one["name"]],
            min_count=held[growing] + 1 if one["name"] == growing else None,
        )
        for one in item.obj()["spec"]["podSets"]
    ]


def other_shapes(pods: Pods, workload: WorkloadView) -> Pods:
    """Waiting pods for which the Workload has no pod set."""
    known = workload.counts()
    return [one for one in pods if one[1].is_held() and not one[1].is_terminating() and role_of(one[0]) not in known]


def _sizes(pod_sets: list[dict[str, Any]]) -> list[tuple[str, int, int | None]]:
    return [(one["name"], one["count"], one.get("minCount")) for one in pod_sets]
