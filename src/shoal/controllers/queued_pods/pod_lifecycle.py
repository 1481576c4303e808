"""Makes pods follow their Workload: ungates them when it is admitted, stops them when it is evicted, and holds them
while it is pending.

Guarantees: no pod is ungated before its Workload is admitted, and quota is not released while a pod of the Workload may
still use its node. The next step follows from the present state alone.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec import structs

from shoal.client.item import Item, Obj
from shoal.client.kind import STATEFUL_SETS
from shoal.controllers.queued_pods import workload_conditions
from shoal.controllers.queued_pods.fault_reports import FaultReports
from shoal.controllers.queued_pods.membership import Member, Pods
from shoal.controllers.queued_pods.roles import role_of
from shoal.controllers.queued_pods.serving_kinds import has_grown, pod_set_of
from shoal.controllers.queued_pods.ungating import per_pod_infos, ungate_patch
from shoal.controllers.queued_pods.workload_context import WorkloadContext
from shoal.controllers.queued_pods.workload_view import WorkloadCondition, WorkloadView
from shoal.controllers.queued_pods.writer import QueuedPodWriter
from shoal.controllers.queued_work.kueue_names import SLICE_NAME
from shoal.controllers.queued_work.pod_set_info import FlavorLookup, PodSetConflictError, pod_set_infos
from shoal.controllers.queued_work.quota_condition import Fault, lasting_fault
from shoal.controllers.queued_work.rules import JobRules
from shoal.units.errors import UserError

_AGAIN_S = 1.0


class PodLifecycle:
    def __init__(self, writer: QueuedPodWriter, flavor: FlavorLookup, faults: FaultReports) -> None:
        self._writer = writer
        self._flavor = flavor
        self._faults = faults

    async def reconcile(
        self, context: WorkloadContext, item: Item, workload: WorkloadView, pods: Pods, rules: JobRules
    ) -> float | None:
        """Evicted: stop all pods; admitted: ungate pods; neither: no pod may run."""
        evicted = workload.condition("Evicted")
        running = [one for one in pods if one[1].runs()]
        if evicted is not None and evicted.status == "True":
            await self._writer.stop(running, "WorkloadEvicted", evicted.message)
            if not running and workload.is_true("QuotaReserved"):
                await self._writer.write_status(item, workload_conditions.release_quota)
            return None
        if not workload.is_true("Admitted"):
            if running:
                await self._writer.stop(running, "NotAdmitted", "Not admitted by cluster queue")
                return None
            reserved = workload.condition("QuotaReserved") or WorkloadCondition()
            fault = lasting_fault(reserved.status, reserved.reason, reserved.message)
            await self._faults.report(context, await self._update_pending(context, item, workload) or fault)
            return None
        await self._faults.report(context, None)
        parent = context.parent
        if parent is not None and parent.kind != STATEFUL_SETS and has_grown(parent, workload):
            await self._restart(item, running)
            return None
        return await self._ungate(context, item, pods, rules.schedulers)

    async def _ungate(
        self, context: WorkloadContext, item: Item, pods: Pods, schedulers: frozenset[str]
    ) -> float | None:
        """Ungate as many pods of each role as are admitted."""
        held = [one for one in pods if one[1].is_held() and not one[1].is_terminating()]
        if not held:
            return None
        workload = item.obj()
        try:
            patches = self._patches(context, workload, (held, pods), schedulers)
        except PodSetConflictError as error:
            message = error.what
            await self._writer.write_status(
                item, lambda status, moment: workload_conditions.set_failed_to_start(status, message, moment)
            )
            return None
        if patches is None:
            return _AGAIN_S
        queue = workload["status"]["admission"]["clusterQueue"]
        await self._writer.ungate(patches, f"Admitted by clusterQueue {queue}")
        return None

    def _patches(
        self, context: WorkloadContext, workload: Obj, held_of: tuple[Pods, Pods], schedulers: frozenset[str]
    ) -> list[tuple[Item, Obj]] | None:
        """Patches for held pods as far as their role has places left; None while a flavor is missing."""
        found = pod_set_infos(workload, self._flavor, schedulers)
        if found is None:
            return None
        held, pods = held_of
        if context.group or (context.parent is not None and context.parent.kind == STATEFUL_SETS):
            annotations = {SLICE_NAME: context.key[1]}
            found = [structs.replace(one, annotations={**one.annotations, **annotations}) for one in found]
        infos = {one.name: one for one in found}
        running = _by_role(context, infos, [one for one in pods if one[1].runs()])
        has_roles = context.owner_type == "group"
        started = []
        for role, waiting in _by_role(context, infos, held).items():
            if role not in infos:
                continue
            there = running.get(role, [])
            next_pods = waiting[: max(infos[role].count - len(there), 0)]
            for item, info in per_pod_infos(infos[role], there, next_pods):
                started.append((item, ungate_patch(item.obj(), info, role if has_roles else "")))
        return started

    async def _restart(self, item: Item, running: Pods) -> None:
        """There are more replicas than admitted: queue the whole set again once none of its pods runs."""
        await self._writer.stop(running, "NoMatchingWorkload", "No matching Workload; restarting pod")
        if not running:
            await self._writer.delete_workload(item)

    async def _update_pending(self, context: WorkloadContext, item: Item, workload: WorkloadView) -> Fault | None:
        """Update a pending Workload to what its owner requests now; returns why that is impossible."""
        if workload.is_true("QuotaReserved"):
            return None
        spec: Obj = {}
        fault = None
        queue = context.parent.queue if context.parent is not None else context.pods[0][1].queue if context.pods else ""
        if queue and queue != workload.spec.queue_name:
            spec["queueName"] = queue
        if context.parent is not None and context.parent.counts() != workload.counts():
            try:
                spec["podSets"] = [one.to_api() for one in context.parent.pod_sets]
            except UserError as error:
                fault = "ErrWorkloadCompose", str(error)
        if spec:
            await self._writer.patch_workload(item, {"spec": spec})
        return fault


def _by_role(context: WorkloadContext, names: Collection[str], pods: Pods) -> dict[str, list[Member]]:
    found: dict[str, list[Member]] = {}
    for one in pods:
        found.setdefault(_role(context, names, one), []).append(one)
    return found


def _role(context: WorkloadContext, names: Collection[str], one: Member) -> str:
    if context.owner_type == "group":
        return role_of(one[0])
    if context.owner_type == "pod":
        return next(iter(names), "main")
    return pod_set_of(names, one[1])
