"""Computes the status of a Deployment from its ReplicaSets."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.client.item import Obj
from shoal.embedded.controllers.deployments.conditions import (
    AVAILABLE,
    DONE,
    FAILURE,
    PROGRESSING,
    TIMED_OUT,
    UPDATED,
    condition,
    find,
    seconds_left,
    with_condition,
    without,
)
from shoal.embedded.controllers.deployments.sizes import slack

NO_DEADLINE_S = 2**31 - 1


def counted(deployment: Obj, sets: Sequence[Obj], new: Obj | None, now: str) -> Obj:
    """The counts and the condition Available."""
    spec, before = deployment["spec"], deployment.get("status") or {}
    available = _total(sets, "availableReplicas")
    asked = sum(one["spec"].get("replicas", 1) for one in sets)
    numbers = {
        "replicas": _total(sets, "replicas"),
        "updatedReplicas": _total([new] if new is not None else [], "replicas"),
        "readyReplicas": _total(sets, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(asked - available, 0),
    }
    status: Obj = {"observedGeneration": deployment["metadata"].get("generation", 0)}
    status |= {key: value for key, value in numbers.items() if value}
    if all((one.get("status") or {}).get("terminatingReplicas") is not None for one in sets):
        status["terminatingReplicas"] = _total(sets, "terminatingReplicas")
    if "collisionCount" in before:
        status["collisionCount"] = before["collisionCount"]
    if available >= spec.get("replicas", 1) - slack(spec).unavailable:
        said = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        said = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    status["conditions"] = with_condition(before.get("conditions") or [], condition(AVAILABLE, *said, now))
    return status


def is_complete(deployment: Obj, status: Obj) -> bool:
    """Whether all pods are new and available, and no old one is left."""
    wanted = deployment["spec"].get("replicas", 1)
    numbers = (status.get(key, 0) for key in ("updatedReplicas", "replicas", "availableReplicas"))
    seen = status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)
    return seen and all(number == wanted for number in numbers)


def has_deadline(deployment: Obj) -> bool:
    deadline: int | None = deployment["spec"].get("progressDeadlineSeconds")
    return deadline is not None and deadline != NO_DEADLINE_S


def rolled(deployment: Obj, sets: Sequence[Obj], new: Obj | None, now: str, now_s: float) -> Obj:
    """The status during a rollout: the counts and the condition Progressing."""
    before: Obj = deployment.get("status") or {}
    status = counted(deployment, sets, new, now)
    conditions = status["conditions"]
    current = find(before.get("conditions") or [], PROGRESSING)
    if not has_deadline(deployment):
        conditions = without(conditions, PROGRESSING)
    elif not (_all_updated(status) and current is not None and current.get("reason") == DONE):
        conditions = _with_progress(deployment, status, new, now, now_s)
    failure = _failure(sets, new)
    if failure is None:
        conditions = without(conditions, FAILURE)
    else:
        said = condition(FAILURE, failure["status"], failure.get("reason", ""), failure.get("message", ""), now)
        since = failure.get("lastTransitionTime", now)
        conditions = with_condition(conditions, {**said, "lastUpdateTime": since, "lastTransitionTime": since})
    status["conditions"] = conditions
    return status


def _with_progress(deployment: Obj, status: Obj, new: Obj | None, now: str, now_s: float) -> list[Obj]:
    name = deployment["metadata"]["name"]
    who = f'ReplicaSet "{new["metadata"]["name"]}"' if new is not None else f'Deployment "{name}"'
    conditions: list[Obj] = status["conditions"]
    current = find(conditions, PROGRESSING)
    if is_complete(deployment, status):
        said = condition(PROGRESSING, "True", DONE, f"{who} has successfully progressed.", now)
        return with_condition(conditions, said)
    if _has_progressed(deployment.get("status") or {}, status):
        said = condition(PROGRESSING, "True", UPDATED, f"{who} is progressing.", now)
        if current is not None and current["status"] == "True":
            said["lastTransitionTime"] = current.get("lastTransitionTime")
        # The condition is replaced even if only its time changed, because the deadline counts from it.
        return [*without(conditions, PROGRESSING), said]
    left_s = seconds_left(current, deployment["spec"]["progressDeadlineSeconds"], now_s)
    if left_s is not None and left_s < 0:
        return with_condition(
            conditions, condition(PROGRESSING, "False", TIMED_OUT, f"{who} has timed out progressing.", now)
        )
    return conditions


def _has_progressed(before: Obj, after: Obj) -> bool:
    def grew(key: str) -> bool:
        more: bool = after.get(key, 0) > before.get(key, 0)
        return more

    def old(status: Obj) -> int:
        count: int = status.get("replicas", 0) - status.get("updatedReplicas", 0)
        return count

    return any(map(grew, ("updatedReplicas", "readyReplicas", "availableReplicas"))) or old(after) < old(before)


def _all_updated(status: Obj) -> bool:
    updated: bool = status.get("replicas", 0) == status.get("updatedReplicas", 0)
    return updated


def _failure(sets: Sequence[Obj], new: Obj | None) -> Obj | None:
    for one in [*([new] if new is not None else ()), *sets]:
        found = find((one.get("status") or {}).get("conditions") or [], FAILURE)
        if found is not None:
            return found
    return None


def _total(sets: Sequence[Obj], key: str) -> int:
    return sum((one.get("status") or {}).get(key, 0) for one in sets)
