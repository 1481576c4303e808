"""Computes changes of a Workload's status that follow from its pods: PodsReady, Finished, reclaimable pods, quota."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec

from shoal.client.conditions import Status, WriteTime, find, is_true, put
from shoal.controllers.queued_pods.kueue_names import ALL_READY, LOST_ONE, NOT_READY, WAITING_FOR_REPLACEMENT
from shoal.controllers.queued_pods.membership import Pods, is_unretriable, total_or_none

_REQUEUED_AFTER = frozenset({"Preempted", "AdmissionCheck", "NodeFailures"})


class Ending(msgspec.Struct, frozen=True):
    is_good: bool
    message: str


def ending_of_pod(pods: Pods) -> Ending | None:
    """None while the pod has not ended."""
    pod = pods[0][1]
    return Ending(pod.status.phase == "Succeeded", pod.status.message) if pod.is_finished() else None


def ending_of_group(pods: Pods) -> Ending | None:
    """A group has ended when as many pods as its size succeeded; or, if a pod must not be replaced, when all ended."""
    total = total_or_none(pods)
    if total is None:
        return None
    succeeded = sum(pod.status.phase == "Succeeded" for _, pod in pods)
    is_active = any(not pod.is_finished() for _, pod in pods)
    if succeeded < total and (is_active or not is_unretriable(pods)):
        return None
    return Ending(True, f"Pods succeeded: {succeeded}/{total}.")


def set_finished(status: Status, ending: Ending, moment: WriteTime) -> None:
    put(status, "Finished", (True, "Succeeded" if ending.is_good else "Failed", ending.message), moment)


def set_failed_to_start(status: Status, message: str, moment: WriteTime) -> None:
    """Its pods conflict with its admission; a retry cannot succeed."""
    put(status, "Finished", (True, "FailedToStart", message), moment)


def set_replaced(status: Status, message: str, moment: WriteTime) -> None:
    """Another Workload of the same owner replaced it."""
    put(status, "Finished", (True, "WorkloadSliceReplaced", message), moment)


def set_pods_ready(status: Status, *, are_ready: bool, moment: WriteTime) -> None:
    before = find(status, "PodsReady") or {}
    reason = before.get("reason")
    if not is_true(status, "Admitted"):
        condition = (False, "WaitForStart", NOT_READY)
    elif are_ready:
        has_lost = reason in ("WaitForRecovery", "Recovered")
        condition = (True, "Recovered" if has_lost else "Started", ALL_READY)
    elif before.get("status") == "True" or reason == "WaitForRecovery":
        condition = (False, "WaitForRecovery", LOST_ONE)
    else:
        condition = (False, "WaitForStart", NOT_READY)
    put(status, "PodsReady", condition, moment)


def set_waiting_for_replacement(status: Status, absent: int, moment: WriteTime) -> None:
    """For groups: whether pods have to be replaced."""
    before = find(status, WAITING_FOR_REPLACEMENT)
    if absent:
        evicted = find(status, "Evicted") or {}
        if evicted.get("status") == "True":
            condition = (str(evicted.get("reason")), str(evicted.get("message")))
        elif before is not None and before.get("status") == "True":
            return
        else:
            condition = ("PodsFailed", "Some Failed pods need replacement")
        put(status, WAITING_FOR_REPLACEMENT, (True, *condition), moment)
    elif before is not None and before.get("status") != "False":
        put(status, WAITING_FOR_REPLACEMENT, (False, "PodsReady", "No pods need replacement"), moment)


def set_reclaimable(status: Status, counts: Counter[str]) -> None:
    """The number of reclaimable pods never decreases."""
    known = {one["name"]: int(one.get("count") or 0) for one in status.get("reclaimablePods") or ()}
    now = {name: max(known.get(name, 0), counts[name]) for name in sorted(known.keys() | counts.keys())}
    found = [{"name": name, "count": count} for name, count in now.items() if count]
    if found:
        status["reclaimablePods"] = found


def release_quota(status: Status, moment: WriteTime) -> None:
    """No pod of it runs any more: release its quota; it may be admitted again."""
    evicted = find(status, "Evicted") or {}
    reason, message = str(evicted.get("reason", "")), str(evicted.get("message", ""))
    put(status, "Requeued", (reason.partition("DueTo")[0] in _REQUEUED_AFTER, reason, message), moment)
    put(status, "QuotaReserved", (False, "PendingEvaluation", message), moment)
    status.pop("admission", None)
    if find(status, "Admitted") is not None:
        put(status, "Admitted", (False, "NoReservation", "The workload has no reservation"), moment)
    if find(status, "PodsReady") is not None:
        put(status, "PodsReady", (False, "WaitForStart", NOT_READY), moment)


Change = Callable[[Status, WriteTime], None]
