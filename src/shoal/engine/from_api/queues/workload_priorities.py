"""Determines a workload's priority: by its own class where it names one, else by the class of its pods.

Kueue copies the class's number into the workload once, so a number that is written there holds whatever became of the
class. A missing class is the user's error, as for pods.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from shoal.api.kueue import Workload, WorkloadPriorityClass
from shoal.api.kueue.workloads import WORKLOAD_PRIORITY_CLASS
from shoal.api.pod import PodSpec
from shoal.engine.from_api.priorities import Priorities
from shoal.units.errors import UserError, Where, excerpt


class WorkloadPriorities:
    """The classes of both kinds."""

    def __init__(self, classes: Iterable[WorkloadPriorityClass], pods: Priorities) -> None:
        self._known = {each.metadata.name: each.value for each in classes}
        self._pods = pods

    def of_job(self, label: str, spec: PodSpec, label_at: Where, spec_at: Where) -> int:
        """`label` names the workload's own class; empty for a job that leaves it to its pods."""
        return self._named(label, label_at) if label else self._pods.of_pod(spec, spec_at).value

    def of_workload(self, workload: Workload) -> int:
        """Places are those in the workload."""
        spec = workload.spec
        if spec.priority is not None:
            return spec.priority
        named, where = spec.priority_class_ref, Where(path="spec.priorityClassRef.name")
        if named is not None and named.kind == WORKLOAD_PRIORITY_CLASS:
            return self._named(named.name, where)
        if named is not None:
            return self._pods.named(named.name, where).value
        if not spec.pod_sets:
            return 0
        return self._pods.of_pod(spec.pod_sets[0].template.spec, Where(path="spec.podSets[0].template.spec")).value

    def _named(self, name: str, where: Where) -> int:
        value = self._known.get(name)
        if value is None:
            close = difflib.get_close_matches(name, self._known, n=1)
            fix = f"did you mean {close[0]}?" if close else "add the WorkloadPriorityClass to the manifests"
            raise UserError(f"WorkloadPriorityClass {excerpt(name)} not found", where=where, fix=fix)
        return value
