"""Counts the transitions of Workloads (quota reserved, admitted, evicted, ...) from the changes of their conditions.

Every process writes conditions in the same way, so the counts do not depend on the process that decided. Rejected:
counting where decisions are made. A decision may become obsolete before it is written, or be written twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial

import msgspec

from shoal.api.conditions import Condition
from shoal.api.meta import ObjectMeta
from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.telemetry.queues import QueueMetrics, WorkloadTransition

_PREEMPTOR = "preemptor path: "
_DEACTIVATED = "DeactivatedDueTo"


class _WorkloadAdmission(msgspec.Struct, rename="camel"):
    cluster_queue: str = ""


class _Eviction(msgspec.Struct, rename="camel"):
    reason: str = ""
    underlying_cause: str = ""
    count: int = 0


class _SchedulingStats(msgspec.Struct):
    evictions: tuple[_Eviction, ...] | None = None


class _AdmissionCheck(msgspec.Struct):
    name: str = ""


class _WorkloadStatus(msgspec.Struct, rename="camel"):
    conditions: tuple[Condition, ...] | None = None
    admission: _WorkloadAdmission | None = None
    admission_checks: tuple[_AdmissionCheck, ...] | None = None
    scheduling_stats: _SchedulingStats | None = None


class _PriorityClassRef(msgspec.Struct):
    name: str = ""


class _WorkloadSpec(msgspec.Struct, rename="camel"):
    queue_name: str = ""
    priority_class_ref: _PriorityClassRef | None = None
    priority_class_name: str | None = None
    """In v1beta1."""


class _Workload(msgspec.Struct):
    metadata: ObjectMeta = ObjectMeta()
    spec: _WorkloadSpec = msgspec.field(default_factory=_WorkloadSpec)
    status: _WorkloadStatus = msgspec.field(default_factory=_WorkloadStatus)

    def true_conditions(self) -> dict[str, Condition]:
        return {one.type: one for one in self.status.conditions or () if one.status == "True"}

    def false_condition(self, type_: str) -> Condition | None:
        return next((one for one in self.status.conditions or () if (one.type, one.status) == (type_, "False")), None)


_COUNTED = ("QuotaReserved", "Admitted", "PodsReady", "Preempted", "Evicted", "Finished")


def follow_workloads(metrics: QueueMetrics, workloads: Informer) -> None:
    """Count the transitions of Workloads from now on."""

    def changed(before: Item | None, after: Item | None) -> None:
        if before is None or after is None or before.uid != after.uid or before.data == after.data:
            return
        try:
            transitions = workload_transitions(before.read(_Workload), after.read(_Workload))
        except msgspec.ValidationError:
            # Its faults are reported elsewhere.
            return
        for each in transitions:
            metrics.count(each)

    workloads.on_change(changed)


def workload_transitions(before: _Workload, after: _Workload) -> list[WorkloadTransition]:
    """In the order of a Workload's life cycle. A condition that is true again, with a later time, counts again."""
    was, now = before.true_conditions(), after.true_conditions()
    names = [name for name in _COUNTED if name in now and _is_new(was.get(name), now[name])]
    is_released = "QuotaReserved" in was and "QuotaReserved" not in now and "Evicted" in now
    if not names and not is_released:
        return []
    new = _with_labels(before, after)
    # An eviction may end the readiness of pods in the same write.
    found = [_transition(new, name, {**was, **now} if name == "Evicted" else now, after) for name in names]
    released = after.false_condition("QuotaReserved")
    if is_released and released is not None:
        passed_s = _between(now["Evicted"].last_transition_time, released.last_transition_time)
        reason, _ = _reason_of(now["Evicted"].reason)
        found.append(new("released", reason=reason, since_before_s=passed_s))
    return found


def _is_new(was: Condition | None, now: Condition) -> bool:
    return was is None or (was.last_transition_time, was.reason) != (now.last_transition_time, now.reason)


def _with_labels(before: _Workload, after: _Workload) -> Callable[..., WorkloadTransition]:
    """A constructor that fills in the labels of the Workload itself."""
    admission, spec = after.status.admission or before.status.admission, after.spec
    ref = spec.priority_class_ref
    return partial(
        WorkloadTransition,
        cluster_queue=admission.cluster_queue if admission is not None else "",
        priority_class=ref.name if ref is not None else spec.priority_class_name or "",
        local_queue=(spec.queue_name, after.metadata.namespace),
    )


def _transition(
    new: Callable[..., WorkloadTransition], name: str, conditions: dict[str, Condition], after: _Workload
) -> WorkloadTransition:
    """`conditions`: those that are true."""
    this, requeued = conditions[name], conditions.get("Requeued")
    queued = requeued.last_transition_time if requeued is not None else after.metadata.creation_timestamp
    waited_s = _between(queued, this.last_transition_time)

    def since(other: str) -> float | None:
        found = conditions.get(other)
        return None if found is None else _between(found.last_transition_time, this.last_transition_time)

    if name == "QuotaReserved":
        return new("quota_reserved", waited_s=waited_s)
    if name == "Admitted":
        checked_s = since("QuotaReserved") if after.status.admission_checks else None
        return new("admitted", waited_s=waited_s, since_before_s=checked_s)
    if name == "PodsReady":
        return new("ready", waited_s=waited_s, since_before_s=since("Admitted"))
    if name == "Finished" and this.reason == "WorkloadSliceReplaced":
        return new("replaced")
    if name == "Finished":
        return new("finished", waited_s=since("Admitted"))
    if name == "Preempted":
        return new("preempted", reason=this.reason, by=_preemptor(this.message))
    reason, cause = _reason_of(this.reason)
    is_first = _is_first(after.status, reason, cause)
    return new("evicted", reason=reason, cause=cause, is_first=is_first, since_before_s=since("PodsReady"))


def _reason_of(reason: str) -> tuple[str, str]:
    return ("Deactivated", reason.removeprefix(_DEACTIVATED)) if reason.startswith(_DEACTIVATED) else (reason, "")


def _preemptor(message: str) -> str:
    """The cluster queue at the end of the path that the message names."""
    path = message.partition(_PREEMPTOR)[2].partition(";")[0]
    return path.rpartition("/")[2]


def _is_first(status: _WorkloadStatus, reason: str, cause: str) -> bool:
    statistics: Iterable[_Eviction] = (status.scheduling_stats or _SchedulingStats()).evictions or ()
    counts = [one.count for one in statistics if (one.reason, one.underlying_cause) == (reason, cause)]
    return not counts or counts[0] <= 1


def _between(start: datetime | None, end: datetime | None) -> float | None:
    return None if start is None or end is None else (end - start).total_seconds()
