"""What whoever looks at a job of one kind has at hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from shoal.controllers.queued_jobs.priorities import PriorityDesk
from shoal.controllers.queued_jobs.row import JobRow
from shoal.controllers.queued_jobs.workloads import owner_values
from shoal.controllers.queued_work.fields import string_map
from shoal.controllers.queued_work.quota_condition import Fault, updated_conditions
from shoal.controllers.queued_work.rules import Rules
from shoal.store.live.context import Context
from shoal.store.live.ecosystem_kinds import RESOURCE_FLAVORS, WORKLOADS
from shoal.store.live.item import Item, Obj
from shoal.store.live.kind import NAMESPACES, Kind
from shoal.store.live.port import Patch

Find = Callable[[Kind], Kind | None]
"""A kind in the version that is served; None where it is not."""


class Office:
    def __init__(self, context: Context, row: JobRow, kind: Kind, find: Find, rules: Rules) -> None:
        """`kind` is the row's in the version that is served."""
        self.context = context
        self.row = row
        self.kind = kind
        self.find = find
        self.rules = rules
        self.jobs = context.informers.of(kind)
        self.workload_kind = _workloads(find)
        self.workloads = context.informers.of(self.workload_kind)
        self.of_owner = self.workloads.index("job", owner_values)
        self.priorities = PriorityDesk(context, find)
        self._namespaces = context.informers.of(NAMESPACES)
        flavors = find(RESOURCE_FLAVORS)
        self._flavors = None if flavors is None else context.informers.of(flavors)
        self._said: dict[tuple[str, str], dict[str, str]] = {}
        """By job, what was said of its present state: message by reason."""

    def flavor(self, name: str) -> Obj | None:
        found = None if self._flavors is None else self._flavors.get("", name)
        return None if found is None else found.obj()

    def look(self, kind: str, namespace: str, name: str) -> Obj | None:
        """What a job refers to."""
        for each in self.row.refers_to:
            served = self.find(each)
            if served is not None and each.name == kind:
                found = self.context.informers.of(served).get(namespace, name)
                return None if found is None else found.obj()
        return None

    def namespace_labels(self, namespace: str) -> dict[str, str]:
        found = self._namespaces.get("", namespace)
        labels = {} if found is None else string_map(found.obj(), "metadata", "labels")
        return {**labels, "kubernetes.io/metadata.name": namespace}

    def whole(self, item: Item) -> Obj:
        """As it can be written back and spoken about."""
        return {**item.obj(), "kind": self.kind.name, "apiVersion": self.kind.api_version}

    def say(self, job: Obj, reason: str, message: str, type_: Literal["Normal", "Warning"] = "Normal") -> None:
        self.context.events.record(job, reason, message, type_=type_)

    def warn(self, job: Obj, reason: str, message: str, type_: Literal["Normal", "Warning"] = "Warning") -> None:
        """Of something that lasts: said when it begins, and when it changes."""
        known = self._said.setdefault(_address(job), {})
        if known.get(reason) != message:
            known[reason] = message
            self.say(job, reason, message, type_)

    def forget(self, key: tuple[str, str]) -> None:
        self._said.pop(key, None)

    async def is_present(self, job: Obj) -> bool:
        """Asks the server whether the job is as it was looked at. A Workload lets go of quota, and of what the job's
        owner wrote, on nothing less: a cache may not know yet of a start whose answer was lost."""
        meta = job["metadata"]
        fresh = await self.context.api.get(self.kind, *_address(job))
        return (fresh.uid, str(fresh.version)) == (meta["uid"], meta["resourceVersion"])

    async def write_job(self, job: Obj) -> Item:
        """One write, refused if somebody was first."""
        return await self.context.api.update(self.kind, job)

    async def write_job_status(self, job: Obj, status: dict[str, Any]) -> None:
        await self.context.api.patch(self.kind, *_address(job), _merge(job, {"status": status}), "status")

    async def mark(self, job: Obj, fault: Fault | None) -> bool:
        """Whether there was anything to write about it on the job itself."""
        if not self.row.keeps_conditions:
            return False
        present = (job.get("status") or {}).get("conditions") or ()
        conditions = updated_conditions(present, fault, self.context.clock.text())
        if conditions is not None:
            await self.write_job_status(job, {"conditions": conditions})
        return conditions is not None

    async def write_workload(self, workload: Obj, body: Obj) -> Item:
        return await self.context.api.patch(self.workload_kind, *_address(workload), _merge(workload, body))

    async def write_workload_status(self, workload: Obj, status: Obj) -> Item:
        patch = _merge(workload, {"status": status})
        return await self.context.api.patch(self.workload_kind, *_address(workload), patch, "status")


def _workloads(find: Find) -> Kind:
    return find(WORKLOADS) or WORKLOADS


def _address(obj: Obj) -> tuple[str, str]:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


def _merge(obj: Obj, body: Obj) -> Patch:
    meta = obj["metadata"]
    precondition = {"resourceVersion": meta["resourceVersion"], "uid": meta["uid"]}
    return Patch("merge", {**body, "metadata": {**(body.get("metadata") or {}), **precondition}})
