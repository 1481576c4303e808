"""Determines the priority of a job's Workload: from its WorkloadPriorityClass, else the PriorityClass of its pods, else
the default PriorityClass.

The value is copied once: later changes of the class do not affect the Workload.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from shoal.api.kueue.priority_classes import PRIORITY_CLASS_LABEL
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import WORKLOAD_PRIORITY_CLASSES
from shoal.client.item import Obj
from shoal.client.kind import PRIORITY_CLASSES, Kind
from shoal.controllers.queued_work.fields import string_map
from shoal.store.queues.job_parts import PodPart, Steps, dig
from shoal.units.errors import UserError

_OF_WORKLOADS, _OF_PODS = "WorkloadPriorityClass", "PriorityClass"


class ClassNotFoundError(UserError):
    """The job names a class that does not exist."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(what)
        self.kind = kind


class _PriorityValue(msgspec.Struct):
    value: int | None = None


class _Class(msgspec.Struct, rename="camel"):
    value: int | None = None
    spec: _PriorityValue | None = None
    """Some users write the value here."""
    global_default: bool = False

    @property
    def number(self) -> int:
        if self.value is None and self.spec is not None:
            return self.spec.value or 0
        return self.value or 0


class WorkloadPriorities:
    def __init__(self, context: Context, find: Callable[[Kind], Kind | None]) -> None:
        self._context = context
        self._find = find
        self._of_pods = context.informers.of(PRIORITY_CLASSES)

    def fields(self, job: Obj, parts: Sequence[PodPart], own: Steps) -> Obj:
        """The fields of a Workload's spec. `own`: the path at which jobs of this kind name a class for all pods."""
        named = string_map(job["metadata"], "labels").get(PRIORITY_CLASS_LABEL)
        if named:
            return self.of_workload_class(named)
        named_by_job = dig(job, own) if own else None
        name = str(named_by_job or next((one for part in parts if (one := dig(part.template, _CLASS_NAME))), ""))
        if name:
            found = self._of_pods.get("", name)
            if found is None:
                raise ClassNotFoundError(_OF_PODS, f'priorityclasses.scheduling.k8s.io "{name}" not found')
            return self._to_api(_OF_PODS, name, found.read(_Class).number)
        default = next((one for one in self._of_pods if one.read(_Class).global_default), None)
        if default is None:
            return {"priority": 0}
        return self._to_api(_OF_PODS, default.name, default.read(_Class).number)

    def of_workload_class(self, name: str) -> Obj:
        kind = self._find(WORKLOAD_PRIORITY_CLASSES)
        found = None if kind is None else self._context.informers.of(kind).get("", name)
        if found is None:
            raise ClassNotFoundError(_OF_WORKLOADS, f'workloadpriorityclasses.kueue.x-k8s.io "{name}" not found')
        return self._to_api(_OF_WORKLOADS, name, found.read(_Class).number)

    def has_new_class(self, job: Obj, workload: Obj) -> bool:
        """Whether the job names another WorkloadPriorityClass than its Workload has."""
        named = string_map(job["metadata"], "labels").get(PRIORITY_CLASS_LABEL)
        if not named:
            return False
        reference = dig(workload, ("spec", "priorityClassRef")) or {}
        return (reference.get("kind"), reference.get("name")) != (_OF_WORKLOADS, named)

    def _to_api(self, kind: str, name: str, value: int) -> Obj:
        group = "kueue.x-k8s.io" if kind == _OF_WORKLOADS else "scheduling.k8s.io"
        return {"priorityClassRef": {"group": group, "kind": kind, "name": name}, "priority": value}


_CLASS_NAME: Steps = ("spec", "priorityClassName")
