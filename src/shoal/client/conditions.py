"""Sets conditions of Kueue's objects in a decoded status: the transition time of a condition changes only with its
status.
"""

from __future__ import annotations

from typing import Any

import msgspec

Status = dict[str, Any]
LONGEST_MESSAGE = 32 * 1024


class WriteTime(msgspec.Struct, frozen=True):
    """The time of a write, and the observed generation of the object."""

    text: str
    seconds: float
    generation: int = 0


def find(status: Status, name: str) -> Status | None:
    return next((one for one in status.get("conditions") or () if one.get("type") == name), None)


def is_true(status: Status, name: str) -> bool:
    found = find(status, name)
    return found is not None and found.get("status") == "True"


def put(status: Status, name: str, says: tuple[bool, str, str], moment: WriteTime) -> bool:
    """`says`: status, reason and message. Returns whether the condition changed."""
    is_so, reason, message = says
    word = "True" if is_so else "False"
    message = message[:LONGEST_MESSAGE]
    before = find(status, name)
    if before is not None and (before.get("status"), before.get("reason"), before.get("message")) == (
        word,
        reason,
        message,
    ):
        return False
    since = before["lastTransitionTime"] if before is not None and before.get("status") == word else moment.text
    now: Status = {
        "type": name,
        "status": word,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since,
    }
    if moment.generation:
        now["observedGeneration"] = moment.generation
    conditions = list(status.get("conditions") or ())
    if before is None:
        conditions.append(now)
    else:
        conditions[conditions.index(before)] = now
    status["conditions"] = conditions
    return True


def remove(status: Status, name: str) -> None:
    conditions = status.get("conditions")
    if conditions:
        status["conditions"] = [one for one in conditions if one.get("type") != name]


def difference(before: Status, after: Status) -> Status:
    """The merge patch from one status to the other; empty if they are equal."""
    found: Status = {}
    for name in before.keys() | after.keys():
        if name not in after:
            found[name] = None
        elif name not in before:
            found[name] = after[name]
        elif before[name] != after[name]:
            both = isinstance(before[name], dict) and isinstance(after[name], dict)
            found[name] = difference(before[name], after[name]) if both else after[name]
    return found
