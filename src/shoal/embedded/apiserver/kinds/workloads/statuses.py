"""Validates the status of sets of pods: no negative counts, no part greater than its total.

Controllers write these thousands of times a second, so the good case is a handful of look-ups and builds no path.
"""

from __future__ import annotations

from shoal.embedded.apiserver.field_errors import bad_value
from shoal.embedded.apiserver.kinds.complaints import NEGATIVE, Errors, Obj

Parts = tuple[tuple[str, str, str], ...]
"""A count, the count that it is a part of, and that one's name in the complaint."""

SETS = (
    "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "terminatingReplicas",
    "observedGeneration",
)  # fmt: skip
DEPLOYMENTS = (
    "observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas",
    "terminatingReplicas", "collisionCount",
)  # fmt: skip
STATEFUL_SETS = (
    "replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas", "observedGeneration",
    "collisionCount",
)  # fmt: skip
DAEMON_SETS = (
    "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration",
    "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount",
)  # fmt: skip

PARTS_OF_SETS: Parts = (
    ("fullyLabeledReplicas", "replicas", "status.replicas"),
    ("readyReplicas", "replicas", "status.replicas"),
    ("availableReplicas", "replicas", "status.replicas"),
    ("availableReplicas", "readyReplicas", "readyReplicas"),
)
PARTS_OF_DEPLOYMENTS: Parts = (("updatedReplicas", "replicas", "status.replicas"), *PARTS_OF_SETS[1:])
PARTS_OF_STATEFUL_SETS: Parts = (
    ("readyReplicas", "replicas", "status.replicas"),
    ("currentReplicas", "replicas", "status.replicas"),
    ("updatedReplicas", "replicas", "status.replicas"),
    ("availableReplicas", "replicas", "status.replicas"),
    ("availableReplicas", "readyReplicas", "status.readyReplicas"),
)


def check_counts(new: Obj, old: Obj, counts: tuple[str, ...], parts: Parts = ()) -> Errors:
    """`new` and `old` are whole objects. Only what has a count of collisions may not lower it."""
    errors: Errors = []
    status = new.get("status") or {}
    get = status.get
    for key in counts:
        if (value := get(key)) is not None and value < 0:
            errors.append(bad_value(f"status.{key}", value, NEGATIVE))
    for key, whole, named in parts:
        value = get(key) or 0
        if value > (get(whole) or 0):
            errors.append(bad_value(f"status.{key}", value, f"cannot be greater than {named}"))
    if "collisionCount" in counts:
        _check_collisions(get("collisionCount"), (old.get("status") or {}).get("collisionCount"), errors)
    return errors


def _check_collisions(new: int | None, old: int | None, errors: Errors) -> None:
    """To forget the count is to lower it."""
    if old is not None and (new is None or new < old):
        errors.append(bad_value("status.collisionCount", new or 0, "cannot be decremented"))
