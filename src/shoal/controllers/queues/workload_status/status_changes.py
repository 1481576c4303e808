"""Computes changes of a Workload's status, one for each step of its lifecycle, with Kueue's conditions.

All functions are pure. Each change returns whether it applies. It does not apply to a status that another writer has
changed in the meantime; the decision behind the change is then made again. A change that is already in the status
applies and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from shoal.client.conditions import Status, WriteTime, find, is_true, put, remove
from shoal.controllers.queues.api_values import admission_to_api, amount_to_api
from shoal.controllers.queues.messages import ADMISSION_CHECK, DELAYED, NO_RESERVATION, UNSATISFIED
from shoal.engine.queues.facts import PodSet, QuotaAssignment

RESERVED, ADMITTED, EVICTED, PREEMPTED = "QuotaReserved", "Admitted", "Evicted", "Preempted"
REQUEUED, FINISHED, DEACTIVATION_TARGET = "Requeued", "Finished", "DeactivationTarget"
MOST_UNHEALTHY = 8


class Eviction(msgspec.Struct, frozen=True):
    reason: str
    message: str
    cause: str = ""
    """`underlyingCause` of the statistics."""
    requeues: int | None = None
    requeue_at_s: float = 0.0
    preempted_for: str = ""
    """Reason of the Preempted condition."""
    resets_requeues: bool = False
    """The count of requeues is deleted: the Workload is not requeued automatically."""


# -- admission ------------------------------------------------------------------------------------------------


def reserve(status: Status, admission: QuotaAssignment, checks: tuple[str, ...], moment: WriteTime) -> bool:
    """Reserve quota, and admit the Workload if no admission check is pending."""
    if is_true(status, FINISHED):
        return False
    written = admission_to_api(admission)
    if is_true(status, RESERVED):
        return bool(status.get("admission") == written)
    queue = admission.cluster_queue
    put(status, RESERVED, (True, RESERVED, f"Quota reserved in ClusterQueue {queue}"), moment)
    status["admission"] = written
    status.pop("resourceRequests", None)
    for name in (EVICTED, PREEMPTED):
        before = find(status, name)
        if before is not None and before.get("status") == "True":
            put(status, name, (False, RESERVED, f"Previously: {before.get('message', '')}"), moment)
    set_checks(status, checks, moment)
    admit(status, moment)
    return True


def replace_domains(status: Status, admission: QuotaAssignment, moment: WriteTime) -> bool:
    """Write other topology domains of a Workload that holds quota."""
    if not is_true(status, RESERVED) or is_true(status, EVICTED):
        return False
    status["admission"] = admission_to_api(admission)
    if unhealthy := status.pop("unhealthyNodes", None):
        left = unhealthy[1:]
        if left:
            status["unhealthyNodes"] = left
    admit(status, moment)
    return True


def admit(status: Status, moment: WriteTime) -> bool:
    """Set Admitted: true if all checks are ready and all topology domains assigned, else false with the reason."""
    if not is_true(status, RESERVED) or is_true(status, EVICTED):
        return False
    if is_true(status, ADMITTED):
        return True
    pod_sets = (status.get("admission") or {}).get("podSetAssignments") or ()
    if any(check.get("state") != "Ready" for check in status.get("admissionChecks") or ()):
        put(status, ADMITTED, (False, *UNSATISFIED), moment)
    elif any(each.get("delayedTopologyRequest") == "Pending" for each in pod_sets):
        put(status, ADMITTED, (False, *DELAYED), moment)
    else:
        put(status, ADMITTED, (True, ADMITTED, "The workload is admitted"), moment)
    return True


def set_checks(status: Status, names: tuple[str, ...], moment: WriteTime) -> bool:
    """List the required checks in the status; new ones are pending."""
    before = status.get("admissionChecks") or []
    known = {check["name"]: check for check in before}
    now = [known.get(name) or _pending_check(name, moment) for name in names]
    if now:
        status["admissionChecks"] = now
    else:
        status.pop("admissionChecks", None)
    return True


def set_pending(
    status: Status, reason_and_message: tuple[str, str], pod_sets: Iterable[tuple[PodSet, int]], moment: WriteTime
) -> bool:
    """The Workload is pending, for this reason."""
    if is_true(status, RESERVED) or is_true(status, FINISHED):
        return False
    put(status, RESERVED, (False, *reason_and_message), moment)
    if find(status, ADMITTED) is None:
        put(status, ADMITTED, (False, *NO_RESERVATION), moment)
    requests = [{"name": each.name, "resources": _requests(each, count)} for each, count in pod_sets]
    if requests:
        status["resourceRequests"] = requests
    return True


def set_unhealthy_nodes(status: Status, nodes: tuple[str, ...]) -> bool:
    """List the failed nodes of its topology assignment."""
    if not is_true(status, ADMITTED) or is_true(status, EVICTED):
        return False
    if nodes:
        status["unhealthyNodes"] = [{"name": name} for name in nodes[:MOST_UNHEALTHY]]
    else:
        status.pop("unhealthyNodes", None)
    return True


# -- the end of an admission -----------------------------------------------------------------------------------


def evict(status: Status, eviction: Eviction, moment: WriteTime) -> bool:
    """Evict the Workload. It keeps its quota until its job has stopped."""
    if is_true(status, FINISHED):
        return False
    if is_true(status, EVICTED):
        found = find(status, EVICTED)
        return bool(found and found.get("reason") == eviction.reason)
    put(status, EVICTED, (True, eviction.reason, eviction.message), moment)
    if eviction.preempted_for:
        put(status, PREEMPTED, (True, eviction.preempted_for, eviction.message), moment)
    remove(status, DEACTIVATION_TARGET)
    if eviction.reason == ADMISSION_CHECK and (retry_at_s := _retry_at_s(status)):
        status["requeueState"] = {**(status.get("requeueState") or {}), "requeueAt": _time_text(retry_at_s)}
    for check in status.get("admissionChecks") or ():
        _reset_check(check, moment)
    _count_eviction(status, eviction)
    if eviction.resets_requeues:
        status.pop("requeueState", None)
    elif eviction.requeues is not None:
        state: Status = {"count": eviction.requeues}
        if eviction.requeue_at_s:
            state["requeueAt"] = _time_text(eviction.requeue_at_s)
        status["requeueState"] = state
    return True


def mark_for_deactivation(status: Status, cause: tuple[str, str], moment: WriteTime) -> bool:
    """The Workload is about to be deactivated."""
    if is_true(status, FINISHED):
        return False
    put(status, DEACTIVATION_TARGET, (True, *cause), moment)
    return True


def requeue(status: Status, reason_and_message: tuple[str, str], moment: WriteTime) -> bool:
    """The Workload may be admitted again."""
    if is_true(status, FINISHED):
        return False
    put(status, REQUEUED, (True, *reason_and_message), moment)
    state = status.get("requeueState")
    if state and reason_and_message[0] == "BackoffFinished":
        status["requeueState"] = {name: value for name, value in state.items() if name != "requeueAt"}
    return True


# -- fields -----------------------------------------------------------------------------------------------------


def _requests(each: PodSet, count: int) -> Mapping[str, str]:
    return {name: amount_to_api(name, amount * count) for name, amount in each.requests.items()}


def _pending_check(name: str, moment: WriteTime) -> Status:
    return {"name": name, "state": "Pending", "message": "", "lastTransitionTime": moment.text}


def _reset_check(check: dict[str, Any], moment: WriteTime) -> None:
    before = check.get("state")
    if before == "Pending":
        return
    check.pop("podSetUpdates", None)
    check.pop("requeueAfterSeconds", None)
    if before == "Retry":
        check["retryCount"] = int(check.get("retryCount") or 0) + 1
    check |= {
        "state": "Pending",
        "message": f"Reset to Pending after eviction. Previously: {before}",
        "lastTransitionTime": moment.text,
    }


def _retry_at_s(status: Status) -> float:
    """The latest time at which a check with state Retry asks to be tried again; 0 if none does."""
    found = 0.0
    for check in status.get("admissionChecks") or ():
        after_s, since = check.get("requeueAfterSeconds"), check.get("lastTransitionTime")
        if check.get("state") == "Retry" and after_s and since:
            found = max(found, datetime.fromisoformat(since).timestamp() + after_s)
    return found


def _count_eviction(status: Status, eviction: Eviction) -> None:
    evictions = list((status.get("schedulingStats") or {}).get("evictions") or ())
    reason = eviction.reason.partition("DueTo")[0]
    for at, one in enumerate(evictions):
        if one.get("reason") == reason and one.get("underlyingCause", "") == eviction.cause:
            evictions[at] = {**one, "count": int(one.get("count") or 0) + 1}
            break
    else:
        evictions.append({"reason": reason, "underlyingCause": eviction.cause, "count": 1})
    status["schedulingStats"] = {"evictions": evictions}


def _time_text(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
