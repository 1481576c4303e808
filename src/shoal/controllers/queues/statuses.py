"""What is written into a Workload's status, step by step in its life: pure changes of a plain status, in Kueue's words.

A change says whether it applies: a status that somebody else has moved on meanwhile is left alone, and the decision
behind the change is taken anew. A change that is there already applies and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from shoal.controllers.queues.spelling import admission_of, amount_text
from shoal.controllers.queues.words import ADMISSION_CHECK, DELAYED, NO_RESERVATION, UNSATISFIED
from shoal.engine.queues.facts import Admission, PodSet
from shoal.store.live.conditions import Moment, Status, find, is_true, put, remove

RESERVED, ADMITTED, EVICTED, PREEMPTED = "QuotaReserved", "Admitted", "Evicted", "Preempted"
REQUEUED, FINISHED, TARGET = "Requeued", "Finished", "DeactivationTarget"


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
    forgets: bool = False
    """Nothing is left of earlier attempts: it is not put back by itself."""


# -- admission ------------------------------------------------------------------------------------------------


def reserve(status: Status, admission: Admission, checks: tuple[str, ...], moment: Moment) -> bool:
    """Quota is reserved, and the workload admitted if no check is open."""
    if is_true(status, FINISHED):
        return False
    written = admission_of(admission)
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
    list_checks(status, checks, moment)
    admit(status, moment)
    return True


def place_anew(status: Status, admission: Admission, moment: Moment) -> bool:
    """It holds quota, and its domains are new."""
    if not is_true(status, RESERVED) or is_true(status, EVICTED):
        return False
    status["admission"] = admission_of(admission)
    if unhealthy := status.pop("unhealthyNodes", None):
        left = unhealthy[1:]
        if left:
            status["unhealthyNodes"] = left
    admit(status, moment)
    return True


def admit(status: Status, moment: Moment) -> bool:
    """Admitted once all checks are ready and all domains known; told otherwise until then."""
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


def list_checks(status: Status, names: tuple[str, ...], moment: Moment) -> bool:
    """Those that are demanded stand in the status, the new ones open."""
    before = status.get("admissionChecks") or []
    known = {check["name"]: check for check in before}
    now = [known.get(name) or _open_check(name, moment) for name in names]
    if now:
        status["admissionChecks"] = now
    else:
        status.pop("admissionChecks", None)
    return True


def wait(status: Status, told: tuple[str, str], pod_sets: Iterable[tuple[PodSet, int]], moment: Moment) -> bool:
    """It waits, and this is why."""
    if is_true(status, RESERVED) or is_true(status, FINISHED):
        return False
    put(status, RESERVED, (False, *told), moment)
    if find(status, ADMITTED) is None:
        put(status, ADMITTED, (False, *NO_RESERVATION), moment)
    asked = [{"name": each.name, "resources": _asked(each, count)} for each, count in pod_sets]
    if asked:
        status["resourceRequests"] = asked
    return True


def name_failed(status: Status, nodes: tuple[str, ...]) -> bool:
    """Nodes of its places that failed."""
    if not is_true(status, ADMITTED) or is_true(status, EVICTED):
        return False
    if nodes:
        status["unhealthyNodes"] = [{"name": name} for name in nodes[:MOST_UNHEALTHY]]
    else:
        status.pop("unhealthyNodes", None)
    return True


# -- the end of an admission -----------------------------------------------------------------------------------


def evict(status: Status, eviction: Eviction, moment: Moment) -> bool:
    """It has to stop. What it holds it holds until its job has stopped."""
    if is_true(status, FINISHED):
        return False
    if is_true(status, EVICTED):
        found = find(status, EVICTED)
        return bool(found and found.get("reason") == eviction.reason)
    put(status, EVICTED, (True, eviction.reason, eviction.message), moment)
    if eviction.preempted_for:
        put(status, PREEMPTED, (True, eviction.preempted_for, eviction.message), moment)
    remove(status, TARGET)
    if eviction.reason == ADMISSION_CHECK and (again_s := _not_before_s(status)):
        status["requeueState"] = {**(status.get("requeueState") or {}), "requeueAt": _text(again_s)}
    for check in status.get("admissionChecks") or ():
        _reopen(check, moment)
    _count(status, eviction)
    if eviction.forgets:
        status.pop("requeueState", None)
    elif eviction.requeues is not None:
        state: Status = {"count": eviction.requeues}
        if eviction.requeue_at_s:
            state["requeueAt"] = _text(eviction.requeue_at_s)
        status["requeueState"] = state
    return True


def target(status: Status, cause: tuple[str, str], moment: Moment) -> bool:
    """It is about to be switched off."""
    if is_true(status, FINISHED):
        return False
    put(status, TARGET, (True, *cause), moment)
    return True


def requeue(status: Status, told: tuple[str, str], moment: Moment) -> bool:
    """It may be admitted again."""
    if is_true(status, FINISHED):
        return False
    put(status, REQUEUED, (True, *told), moment)
    state = status.get("requeueState")
    if state and told[0] == "BackoffFinished":
        status["requeueState"] = {name: value for name, value in state.items() if name != "requeueAt"}
    return True


# -- how it is spelled ------------------------------------------------------------------------------------------


def _asked(each: PodSet, count: int) -> Mapping[str, str]:
    return {name: amount_text(name, amount * count) for name, amount in each.requests.items()}


def _open_check(name: str, moment: Moment) -> Status:
    return {"name": name, "state": "Pending", "message": "", "lastTransitionTime": moment.text}


def _reopen(check: dict[str, Any], moment: Moment) -> None:
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


def _not_before_s(status: Status) -> float:
    """When the last of the checks that ask to try again wants to be asked; 0 where none minds."""
    found = 0.0
    for check in status.get("admissionChecks") or ():
        after_s, since = check.get("requeueAfterSeconds"), check.get("lastTransitionTime")
        if check.get("state") == "Retry" and after_s and since:
            found = max(found, datetime.fromisoformat(since).timestamp() + after_s)
    return found


def _count(status: Status, eviction: Eviction) -> None:
    evictions = list((status.get("schedulingStats") or {}).get("evictions") or ())
    reason = eviction.reason.partition("DueTo")[0]
    for at, one in enumerate(evictions):
        if one.get("reason") == reason and one.get("underlyingCause", "") == eviction.cause:
            evictions[at] = {**one, "count": int(one.get("count") or 0) + 1}
            break
    else:
        evictions.append({"reason": reason, "underlyingCause": eviction.cause, "count": 1})
    status["schedulingStats"] = {"evictions": evictions}


def _text(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
