"""Reads and writes the jobs of one kind: their caches, Workloads and Events. The server refuses every write to an
object that was changed since it was read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from shoal.client.context import Context
from shoal.client.ecosystem_kinds import RESOURCE_FLAVORS, WORKLOADS
from shoal.client.item import Item, Obj
from shoal.client.kind import NAMESPACES, Kind
from shoal.client.port import Patch
from shoal.controllers.queued_jobs.job_kind import QueuedJobKind
from shoal.controllers.queued_jobs.priorities import WorkloadPriorities
from shoal.controllers.queued_jobs.workloads import OwnedWorkload, controller_of, owner_value, owner_values
from shoal.controllers.queued_work.fields import string_map
from shoal.controllers.queued_work.quota_condition import Fault, updated_conditions
from shoal.controllers.queued_work.rules import Rules

FindKind = Callable[[Kind], Kind | None]
"""Returns a kind in the version that is served; None if it is not served."""


class QueuedJobContext:
    def __init__(self, context: Context, job_kind: QueuedJobKind, kind: Kind, find: FindKind, rules: Rules) -> None:
        """`kind` is the kind of the jobs in the version that is served."""
        self.live = context
        self.job_kind = job_kind
        self.kind = kind
        self.find = find
        self.rules = rules
        self.jobs = context.informers.of(kind)
        self.workload_kind = _workloads(find)
        self.workloads = context.informers.of(self.workload_kind)
        self.by_owner = self.workloads.index("job", owner_values)
        self.priorities = WorkloadPriorities(context, find)
        self._namespaces = context.informers.of(NAMESPACES)
        flavors = find(RESOURCE_FLAVORS)
        self._flavors = None if flavors is None else context.informers.of(flavors)
        self._recorded: dict[tuple[str, str], dict[str, str]] = {}
        """Job -> reason -> the message that was recorded last."""

    def flavor(self, name: str) -> Obj | None:
        found = None if self._flavors is None else self._flavors.get("", name)
        return None if found is None else found.obj()

    def look_up(self, kind: str, namespace: str, name: str) -> Obj | None:
        """An object to which a job refers."""
        for each in self.job_kind.refers_to:
            served = self.find(each)
            if served is not None and each.name == kind:
                found = self.live.informers.of(served).get(namespace, name)
                return None if found is None else found.obj()
        return None

    def workloads_of(self, job: Obj) -> list[OwnedWorkload]:
        """The Workloads that this job controls, not those of an earlier job with its name."""
        items = self.by_owner[owner_value(self.kind.group, self.kind.name, _key_of(job))]
        uid = job["metadata"]["uid"]
        return [OwnedWorkload(one) for one in items if (owner := controller_of(one)) and owner.uid == uid]

    def namespace_labels(self, namespace: str) -> dict[str, str]:
        found = self._namespaces.get("", namespace)
        labels = {} if found is None else string_map(found.obj(), "metadata", "labels")
        return {**labels, "kubernetes.io/metadata.name": namespace}

    def with_type(self, item: Item) -> Obj:
        """The job with its kind and version, as updates and Events need it."""
        return {**item.obj(), "kind": self.kind.name, "apiVersion": self.kind.api_version}

    def record(self, job: Obj, reason: str, message: str, type_: Literal["Normal", "Warning"] = "Normal") -> None:
        self.live.events.record(job, reason, message, type_=type_)

    def record_once(self, job: Obj, reason: str, message: str, type_: Literal["Normal", "Warning"] = "Warning") -> None:
        """Record an Event about a lasting state when it begins and when it changes."""
        known = self._recorded.setdefault(_key_of(job), {})
        if known.get(reason) != message:
            known[reason] = message
            self.record(job, reason, message, type_)

    def forget(self, key: tuple[str, str]) -> None:
        self._recorded.pop(key, None)

    async def is_present(self, job: Obj) -> bool:
        """Ask the server whether the job is unchanged since it was read. This is required before a Workload gives up
        quota or the original templates: the cache may lack a start whose answer was lost."""
        meta = job["metadata"]
        fresh = await self.live.api.get(self.kind, *_key_of(job))
        return (fresh.uid, str(fresh.version)) == (meta["uid"], meta["resourceVersion"])

    async def write_job(self, job: Obj) -> Item:
        """Refused if the job was changed meanwhile."""
        return await self.live.api.update(self.kind, job)

    async def write_job_status(self, job: Obj, status: dict[str, Any]) -> None:
        await self.live.api.patch(self.kind, *_key_of(job), _merge(job, {"status": status}), "status")

    async def write_condition(self, job: Obj, fault: Fault | None) -> bool:
        """Write or remove the condition about a lasting fault on the job; returns whether that was necessary."""
        if not self.job_kind.keeps_other_conditions:
            return False
        present = (job.get("status") or {}).get("conditions") or ()
        conditions = updated_conditions(present, fault, self.live.clock.text())
        if conditions is not None:
            await self.write_job_status(job, {"conditions": conditions})
        return conditions is not None

    async def write_workload(self, workload: Obj, body: Obj) -> Item:
        return await self.live.api.patch(self.workload_kind, *_key_of(workload), _merge(workload, body))

    async def write_workload_status(self, workload: Obj, status: Obj) -> Item:
        patch = _merge(workload, {"status": status})
        return await self.live.api.patch(self.workload_kind, *_key_of(workload), patch, "status")


def _workloads(find: FindKind) -> Kind:
    return find(WORKLOADS) or WORKLOADS


def _key_of(obj: Obj) -> tuple[str, str]:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


def _merge(obj: Obj, body: Obj) -> Patch:
    meta = obj["metadata"]
    precondition = {"resourceVersion": meta["resourceVersion"], "uid": meta["uid"]}
    return Patch("merge", {**body, "metadata": {**(body.get("metadata") or {}), **precondition}})
