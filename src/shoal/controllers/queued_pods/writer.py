"""Writes pods and Workloads of queued pods. Every write may be repeated after a crash at any point.

Rejected: one write for all pods of a group. There is none in Kubernetes, and a group that was ungated only in part is
completed by the next reconciliation, since an admission lasts until all of it has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from copy import deepcopy
from typing import Literal, TypeVar

from shoal.client.conditions import Status, WriteTime, difference
from shoal.client.context import Context
from shoal.client.item import Item, Obj
from shoal.client.kind import PODS, Kind
from shoal.client.port import Deletion, Patch
from shoal.client.refusals import NotFoundError
from shoal.controllers.queued_pods.kueue_names import GATE, MANAGED, TERMINATION_TARGET
from shoal.controllers.queued_pods.membership import Pods
from shoal.controllers.queued_pods.pod_view import QueuedPod
from shoal.controllers.queued_work.kueue_names import IN_USE
from shoal.controllers.queued_work.quota_condition import QUOTA_CONDITION, Fault, quota_condition

T = TypeVar("T")
_AT_ONCE = 32
StopReason = Literal["WorkloadEvicted", "WorkloadDeleted", "NoMatchingWorkload", "NotAdmitted"]


class QueuedPodWriter:
    def __init__(self, context: Context, workloads: Kind) -> None:
        self._context = context
        self._workloads = workloads

    # -- pods -------------------------------------------------------------------------------------------------------

    async def release(self, pods: Pods) -> None:
        """Remove the finalizer of the pods."""
        await self._each([pod for _, pod in pods if pod.has_finalizer()], self._release)

    async def _release(self, pod: QueuedPod) -> None:
        meta = pod.metadata
        body = {"metadata": {"uid": meta.uid, "$deleteFromPrimitiveList/finalizers": [MANAGED]}}
        try:
            await self._context.api.patch(PODS, meta.namespace, meta.name, Patch("strategic", body))
        except NotFoundError:
            return

    async def let_go(self, pods: Sequence[QueuedPod]) -> None:
        """Make these held pods ordinary pods."""

        async def one(pod: QueuedPod) -> None:
            meta = pod.metadata
            gates = [gate.name for gate in pod.spec.scheduling_gates if gate.name != GATE]
            body = {
                "metadata": {
                    "uid": meta.uid,
                    "labels": {MANAGED: None},
                    "finalizers": [name for name in meta.finalizers if name != MANAGED] or None,
                },
                "spec": {"schedulingGates": [{"name": name} for name in gates] or None},
            }
            try:
                await self._context.api.patch(PODS, meta.namespace, meta.name, Patch("merge", body))
            except NotFoundError:
                return

        await self._each(pods, one)

    async def stop(self, pods: Pods, reason: StopReason, message: str) -> None:
        """Delete the pods that are not terminating yet."""

        async def one(pod: QueuedPod) -> None:
            meta = pod.metadata
            condition = {
                "type": TERMINATION_TARGET,
                "status": "True",
                "reason": reason,
                "message": message,
                "lastTransitionTime": self._context.clock.text(),
            }
            body = {"metadata": {"uid": meta.uid}, "status": {"conditions": [condition]}}
            try:
                await self._context.api.patch(PODS, meta.namespace, meta.name, Patch("strategic", body), "status")
                await self._context.api.delete(PODS, meta.namespace, meta.name, Deletion(uid=meta.uid))
            except NotFoundError:
                return
            self.record(pod, "Stopped", message)

        await self._each([pod for _, pod in pods if not pod.is_terminating()], one)

    async def delete_excess(self, pods: Pods) -> None:
        """Delete pods in excess of the group's size."""

        async def one(pod: QueuedPod) -> None:
            meta = pod.metadata
            await self._release(pod)
            if pod.is_terminating():
                return
            try:
                await self._context.api.delete(PODS, meta.namespace, meta.name, Deletion(uid=meta.uid))
            except NotFoundError:
                return
            self.record(pod, "ExcessPodDeleted", "Excess pod deleted")

        await self._each([pod for _, pod in pods], one)

    async def ungate(self, pods: Sequence[tuple[Item, Obj]], message: str) -> None:
        """`pods` with the patches that ungate them."""

        async def one(started: tuple[Item, Obj]) -> None:
            item, patch = started
            await self._context.api.patch(PODS, item.namespace, item.name, Patch("merge", patch))
            self._record(item.namespace, item.name, item.uid, "Started", message)

        await self._each(pods, one)

    async def write_condition(self, pods: Pods, fault: Fault | None) -> None:
        """Write the condition for a lasting fault, with an Event, on each pod that lacks it; None removes it."""

        async def one(pod: QueuedPod) -> None:
            meta = pod.metadata
            gone = {"type": QUOTA_CONDITION, "$patch": "delete"}
            condition = gone if fault is None else quota_condition(fault, self._context.clock.text())
            body = {"metadata": {"uid": meta.uid}, "status": {"conditions": [condition]}}
            try:
                await self._context.api.patch(PODS, meta.namespace, meta.name, Patch("strategic", body), "status")
            except NotFoundError:
                return
            if fault is not None:
                self.record(pod, *fault, "Warning")

        await self._each([pod for _, pod in pods if pod.fault() != fault and not pod.is_over()], one)

    async def _each(self, what: Sequence[T], do: Callable[[T], Awaitable[None]]) -> None:
        """Call `do` for all of them even if some fail; the first failure is raised at the end."""
        failures: list[BaseException] = []
        for at in range(0, len(what), _AT_ONCE):
            answers = await asyncio.gather(*map(do, what[at : at + _AT_ONCE]), return_exceptions=True)
            failures += [one for one in answers if isinstance(one, BaseException)]
        if failures:
            raise failures[0]

    # -- workloads --------------------------------------------------------------------------------------------------

    async def create(self, workload: Obj) -> Item:
        return await self._context.api.create(self._workloads, workload)

    async def write_status(self, item: Item, *changes: Callable[[Status, WriteTime], None]) -> Item:
        """Write all changes with one patch for this version of the Workload; without changes there is no request."""
        obj = item.obj()
        before = obj.get("status") or {}
        after = deepcopy(before)
        clock = self._context.clock
        moment = WriteTime(clock.text(), clock.seconds(), int(obj["metadata"].get("generation") or 0))
        for change in changes:
            change(after, moment)
        changed = difference(before, after)
        if not changed:
            return item
        body = {"metadata": {"resourceVersion": str(item.version)}, "status": changed}
        return await self._context.api.patch(self._workloads, item.namespace, item.name, Patch("merge", body), "status")

    async def patch_workload(self, item: Item, body: Obj) -> Item:
        """A merge patch for this version of the Workload."""
        meta = {**body.get("metadata", {}), "resourceVersion": str(item.version)}
        patch = Patch("merge", {**body, "metadata": meta})
        return await self._context.api.patch(self._workloads, item.namespace, item.name, patch)

    async def remove_finalizer(self, item: Item) -> bool:
        """Remove Shoal's finalizer; returns whether it was there."""
        present = item.obj()["metadata"].get("finalizers") or []
        if IN_USE not in present:
            return False
        kept = [one for one in present if one != IN_USE]
        try:
            await self.patch_workload(item, {"metadata": {"finalizers": kept or None}})
        except NotFoundError:
            return False
        return True

    async def delete_workload(self, item: Item) -> None:
        """Delete a Workload that is not needed any more."""
        await self.remove_finalizer(item)
        try:
            await self._context.api.delete(self._workloads, item.namespace, item.name, Deletion(uid=item.uid))
        except NotFoundError:
            return

    # -- Events -----------------------------------------------------------------------------------------------------

    def record(self, pod: QueuedPod, reason: str, message: str, type_: Literal["Normal", "Warning"] = "Normal") -> None:
        meta = pod.metadata
        self._record(meta.namespace, meta.name, meta.uid, reason, message, type_)

    def record_on(
        self, obj: Obj, kind: Kind, reason: str, message: str, type_: Literal["Normal", "Warning"] = "Normal"
    ) -> None:
        about = {"kind": kind.name, "apiVersion": kind.api_version, "metadata": obj["metadata"]}
        self._context.events.record(about, reason, message, type_=type_)

    def _record(
        self,
        namespace: str,
        name: str,
        uid: str,
        reason: str,
        message: str,
        type_: Literal["Normal", "Warning"] = "Normal",
    ) -> None:
        meta = {"namespace": namespace, "name": name, "uid": uid}
        about = {"kind": "Pod", "apiVersion": "v1", "metadata": meta}
        self._context.events.record(about, reason, message, type_=type_)
