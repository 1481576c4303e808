"""Updates the conditions of a Deployment, and determines when its progress deadline is exceeded."""

from __future__ import annotations

from datetime import datetime

from shoal.client.item import Obj

AVAILABLE, PROGRESSING, FAILURE = "Available", "Progressing", "ReplicaFailure"
CREATED, FOUND, UPDATED, DONE = (
    "NewReplicaSetCreated",
    "FoundNewReplicaSet",
    "ReplicaSetUpdated",
    "NewReplicaSetAvailable",
)
NOT_CREATED, TIMED_OUT, PAUSED, RESUMED = (
    "ReplicaSetCreateError",
    "ProgressDeadlineExceeded",
    "DeploymentPaused",
    "DeploymentResumed",
)


def condition(type_: str, status: str, reason: str, message: str, now: str) -> Obj:
    return {
        "type": type_,
        "status": status,
        "lastUpdateTime": now,
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }


def find(conditions: list[Obj], type_: str) -> Obj | None:
    return next((one for one in conditions if one["type"] == type_), None)


def without(conditions: list[Obj], type_: str) -> list[Obj]:
    return [one for one in conditions if one["type"] != type_]


def with_condition(conditions: list[Obj], new: Obj) -> list[Obj]:
    """A condition with equal status and reason is not changed; one with equal status keeps its transition time."""
    before = find(conditions, new["type"])
    if before is not None and before["status"] == new["status"]:
        if before.get("reason") == new["reason"]:
            return conditions
        new = {**new, "lastTransitionTime": before.get("lastTransitionTime")}
    return [*without(conditions, new["type"]), new]


def seconds_left(progressing: Obj | None, deadline_s: int, now_s: float) -> float | None:
    """The time until the progress deadline; None if there is none. Negative: the deadline is exceeded."""
    if progressing is None or progressing.get("reason") in (DONE, TIMED_OUT):
        return None
    since = progressing.get("lastUpdateTime") or progressing["lastTransitionTime"]
    return datetime.fromisoformat(since).timestamp() + deadline_s - now_s
