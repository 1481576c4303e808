"""How far a unit's pods have come, as its Workload's status tells it: values in, changes of a plain status out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec

from shoal.controllers.queued_pods.membership import Pods, is_unretriable, total_or_none
from shoal.controllers.queued_pods.words import ALL_READY, LOST_ONE, NOT_READY, WAITING_FOR_REPLACEMENT
from shoal.store.live.conditions import Moment, Status, find, is_true, put

_REQUEUED_AFTER = frozenset({"Preempted", "AdmissionCheck", "NodeFailures"})


class Ending(msgspec.Struct, frozen=True):
    is_good: bool
    message: str


def ending_of_pod(pods: Pods) -> Ending | None:
    """None while it goes on."""
    pod = pods[0][1]
    return Ending(pod.status.phase == "Succeeded", pod.status.message) if pod.is_finished() else None


def ending_of_group(pods: Pods) -> Ending | None:
    """A group has ended when as many pods as announced succeeded; or, if one must not be replaced, when all ended."""
    total = total_or_none(pods)
    if total is None:
        return None
    succeeded = sum(pod.status.phase == "Succeeded" for _, pod in pods)
    is_active = any(not pod.is_finished() for _, pod in pods)
    if succeeded < total and (is_active or not is_unretriable(pods)):
        return None
    return Ending(True, f"Pods succeeded: {succeeded}/{total}.")


def finish(status: Status, ending: Ending, moment: Moment) -> None:
    put(status, "Finished", (True, "Succeeded" if ending.is_good else "Failed", ending.message), moment)


def fail_to_start(status: Status, message: str, moment: Moment) -> None:
    """Its pods and its admission contradict each other, and will the next time."""
    put(status, "Finished", (True, "FailedToStart", message), moment)


def replace(status: Status, message: str, moment: Moment) -> None:
    """Another one of the same owner has its place."""
    put(status, "Finished", (True, "WorkloadSliceReplaced", message), moment)


def tell_ready(status: Status, *, are_ready: bool, moment: Moment) -> None:
    before = find(status, "PodsReady") or {}
    reason = before.get("reason")
    if not is_true(status, "Admitted"):
        said = (False, "WaitForStart", NOT_READY)
    elif are_ready:
        has_lost = reason in ("WaitForRecovery", "Recovered")
        said = (True, "Recovered" if has_lost else "Started", ALL_READY)
    elif before.get("status") == "True" or reason == "WaitForRecovery":
        said = (False, "WaitForRecovery", LOST_ONE)
    else:
        said = (False, "WaitForStart", NOT_READY)
    put(status, "PodsReady", said, moment)


def tell_missing(status: Status, absent: int, moment: Moment) -> None:
    """Of groups: whether pods are to be replaced by somebody."""
    before = find(status, WAITING_FOR_REPLACEMENT)
    if absent:
        evicted = find(status, "Evicted") or {}
        if evicted.get("status") == "True":
            said = (str(evicted.get("reason")), str(evicted.get("message")))
        elif before is not None and before.get("status") == "True":
            return
        else:
            said = ("PodsFailed", "Some Failed pods need replacement")
        put(status, WAITING_FOR_REPLACEMENT, (True, *said), moment)
    elif before is not None and before.get("status") != "False":
        put(status, WAITING_FOR_REPLACEMENT, (False, "PodsReady", "No pods need replacement"), moment)


def tell_reclaimable(status: Status, counts: Counter[str]) -> None:
    """What is no longer needed only ever grows."""
    known = {one["name"]: int(one.get("count") or 0) for one in status.get("reclaimablePods") or ()}
    now = {name: max(known.get(name, 0), counts[name]) for name in sorted(known.keys() | counts.keys())}
    found = [{"name": name, "count": count} for name, count in now.items() if count]
    if found:
        status["reclaimablePods"] = found


def give_back(status: Status, moment: Moment) -> None:
    """Nothing of it runs any more: what it held is free, and it may be admitted again."""
    evicted = find(status, "Evicted") or {}
    reason, message = str(evicted.get("reason", "")), str(evicted.get("message", ""))
    put(status, "Requeued", (reason.partition("DueTo")[0] in _REQUEUED_AFTER, reason, message), moment)
    put(status, "QuotaReserved", (False, "PendingEvaluation", message), moment)
    status.pop("admission", None)
    if find(status, "Admitted") is not None:
        put(status, "Admitted", (False, "NoReservation", "The workload has no reservation"), moment)
    if find(status, "PodsReady") is not None:
        put(status, "PodsReady", (False, "WaitForStart", NOT_READY), moment)


Change = Callable[[Status, Moment], None]
