"""The view of a Workload: the fields that the controller of queued pods reads."""

from __future__ import annotations

import msgspec
from msgspec import field

from shoal.api.meta import ObjectMeta
from shoal.client.item import Item, Seen


class _WorkloadPodSet(msgspec.Struct, rename="camel", gc=False):
    name: str = "main"
    count: int = 1
    min_count: int | None = None


class _QueuedWorkloadSpec(msgspec.Struct, rename="camel", gc=False):
    pod_sets: tuple[_WorkloadPodSet, ...] = ()
    queue_name: str = ""


class WorkloadCondition(msgspec.Struct, gc=False):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _Assignment(msgspec.Struct, gc=False):
    name: str = "main"
    flavors: dict[str, str] = field(default_factory=dict)
    count: int | None = None


class _Admission(msgspec.Struct, rename="camel", gc=False):
    cluster_queue: str = ""
    pod_set_assignments: tuple[_Assignment, ...] = ()


class _QueuedWorkloadStatus(msgspec.Struct, rename="camel", gc=False):
    conditions: tuple[WorkloadCondition, ...] = ()
    admission: _Admission | None = None
    reclaimable_pods: tuple[_WorkloadPodSet, ...] = ()


class WorkloadView(msgspec.Struct, gc=False):
    metadata: ObjectMeta
    spec: _QueuedWorkloadSpec = field(default_factory=_QueuedWorkloadSpec)
    status: _QueuedWorkloadStatus = field(default_factory=_QueuedWorkloadStatus)

    def condition(self, name: str) -> WorkloadCondition | None:
        return next((one for one in self.status.conditions if one.type == name), None)

    def is_true(self, name: str) -> bool:
        found = self.condition(name)
        return found is not None and found.status == "True"

    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    def counts(self) -> dict[str, int]:
        return {one.name: one.count for one in self.spec.pod_sets}

    def sizes(self) -> dict[str, tuple[int, int | None]]:
        """The count of each pod set, and the count with which it may be admitted."""
        return {one.name: (one.count, one.min_count) for one in self.spec.pod_sets}

    def admitted_counts(self) -> dict[str, int]:
        """Fewer than it counts, if it was admitted with fewer pods."""
        admission = self.status.admission
        given = {} if admission is None else {one.name: one.count for one in admission.pod_set_assignments}
        return {name: count if given.get(name) is None else given[name] or 0 for name, count in self.counts().items()}

    def counts_in_use(self) -> dict[str, int]:
        """Pods for which it holds quota now."""
        released = self.reclaimed()
        return {name: max(count - released.get(name, 0), 0) for name, count in self.admitted_counts().items()}

    def reclaimed(self) -> dict[str, int]:
        return {one.name: one.count for one in self.status.reclaimable_pods}

    def owners(self, kind: str) -> set[str]:
        """The uids of its owners of that kind."""
        return {owner.uid for owner in self.metadata.owner_references if owner.kind == kind}


_seen = Seen(WorkloadView)


def workload_view(item: Item) -> WorkloadView:
    return _seen(item)
