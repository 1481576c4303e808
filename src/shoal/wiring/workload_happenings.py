"""Counts what happens to workloads, from the changes of their conditions.

Conditions are the one record that every process writes the same way, so what is counted here does not depend on who
decided. Rejected: counting where decisions are made. A decision may be overtaken, or written twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial

import msgspec

from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.telemetry.queues import Happened, QueueMetrics

_PREEMPTOR = "preemptor path: "
_DEACTIVATED = "DeactivatedDueTo"


class _Condition(msgspec.Struct, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class _Admission(msgspec.Struct, rename="camel"):
    cluster_queue: str = ""


class _Eviction(msgspec.Struct, rename="camel"):
    reason: str = ""
    underlying_cause: str = ""
    count: int = 0


class _Statistics(msgspec.Struct):
    evictions: tuple[_Eviction, ...] | None = None


class _Check(msgspec.Struct):
    name: str = ""


class _Status(msgspec.Struct, rename="camel"):
    conditions: tuple[_Condition, ...] | None = None
    admission: _Admission | None = None
    admission_checks: tuple[_Check, ...] | None = None
    scheduling_stats: _Statistics | None = None


class _ClassRef(msgspec.Struct):
    name: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    queue_name: str = ""
    priority_class_ref: _ClassRef | None = None
    priority_class_name: str | None = None
    """In v1beta1."""


class _Metadata(msgspec.Struct, rename="camel"):
    namespace: str = ""
    creation_timestamp: datetime | None = None


class _Workload(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)

    def truths(self) -> dict[str, _Condition]:
        return {one.type: one for one in self.status.conditions or () if one.status == "True"}

    def denial(self, type_: str) -> _Condition | None:
        return next((one for one in self.status.conditions or () if (one.type, one.status) == (type_, "False")), None)


_WHAT = ("QuotaReserved", "Admitted", "PodsReady", "Preempted", "Evicted", "Finished")


def follow_workloads(metrics: QueueMetrics, workloads: Informer) -> None:
    """Count what becomes true of workloads from now on."""

    def changed(before: Item | None, after: Item | None) -> None:
        if before is None or after is None or before.uid != after.uid or before.data == after.data:
            return
        try:
            happened = happenings(before.read(_Workload), after.read(_Workload))
        except msgspec.ValidationError:
            # Its faults are reported elsewhere.
            return
        for each in happened:
            metrics.happened(each)

    workloads.on_change(changed)


def happenings(before: _Workload, after: _Workload) -> list[Happened]:
    """In the order of a workload's life. A condition that is true anew, at another time, has happened again."""
    was, now = before.truths(), after.truths()
    names = [name for name in _WHAT if name in now and _is_new(was.get(name), now[name])]
    is_released = "QuotaReserved" in was and "QuotaReserved" not in now and "Evicted" in now
    if not names and not is_released:
        return []
    tell = _telling(before, after)
    # An eviction may end the readiness of pods in the same write.
    found = [_happened(tell, name, {**was, **now} if name == "Evicted" else now, after) for name in names]
    released = after.denial("QuotaReserved")
    if is_released and released is not None:
        passed_s = _between(now["Evicted"].last_transition_time, released.last_transition_time)
        reason, _ = _reason_of(now["Evicted"].reason)
        found.append(tell("released", reason=reason, since_before_s=passed_s))
    return found


def _is_new(was: _Condition | None, now: _Condition) -> bool:
    return was is None or (was.last_transition_time, was.reason) != (now.last_transition_time, now.reason)


def _telling(before: _Workload, after: _Workload) -> Callable[..., Happened]:
    """With what the labels say of the workload itself."""
    admission, spec = after.status.admission or before.status.admission, after.spec
    ref = spec.priority_class_ref
    return partial(
        Happened,
        cluster_queue=admission.cluster_queue if admission is not None else "",
        priority_class=ref.name if ref is not None else spec.priority_class_name or "",
        local_queue=(spec.queue_name, after.metadata.namespace),
    )


def _happened(
    tell: Callable[..., Happened], name: str, conditions: dict[str, _Condition], after: _Workload
) -> Happened:
    """`conditions`: those that are true."""
    this, requeued = conditions[name], conditions.get("Requeued")
    queued = requeued.last_transition_time if requeued is not None else after.metadata.creation_timestamp
    waited_s = _between(queued, this.last_transition_time)

    def since(other: str) -> float | None:
        found = conditions.get(other)
        return None if found is None else _between(found.last_transition_time, this.last_transition_time)

    if name == "QuotaReserved":
        return tell("quota_reserved", waited_s=waited_s)
    if name == "Admitted":
        checked_s = since("QuotaReserved") if after.status.admission_checks else None
        return tell("admitted", waited_s=waited_s, since_before_s=checked_s)
    if name == "PodsReady":
        return tell("ready", waited_s=waited_s, since_before_s=since("Admitted"))
    if name == "Finished" and this.reason == "WorkloadSliceReplaced":
        return tell("replaced")
    if name == "Finished":
        return tell("finished", waited_s=since("Admitted"))
    if name == "Preempted":
        return tell("preempted", reason=this.reason, by=_preemptor(this.message))
    reason, cause = _reason_of(this.reason)
    is_first = _is_first(after.status, reason, cause)
    return tell("evicted", reason=reason, cause=cause, is_first=is_first, since_before_s=since("PodsReady"))


def _reason_of(reason: str) -> tuple[str, str]:
    return ("Deactivated", reason.removeprefix(_DEACTIVATED)) if reason.startswith(_DEACTIVATED) else (reason, "")


def _preemptor(message: str) -> str:
    """The cluster queue at the end of the path that the message names."""
    path = message.partition(_PREEMPTOR)[2].partition(";")[0]
    return path.rpartition("/")[2]


def _is_first(status: _Status, reason: str, cause: str) -> bool:
    statistics: Iterable[_Eviction] = (status.scheduling_stats or _Statistics()).evictions or ()
    counts = [one.count for one in statistics if (one.reason, one.underlying_cause) == (reason, cause)]
    return not counts or counts[0] <= 1


def _between(start: datetime | None, end: datetime | None) -> float | None:
    return None if start is None or end is None else (end - start).total_seconds()
