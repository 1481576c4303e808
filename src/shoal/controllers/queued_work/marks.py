"""What work says of itself where it cannot be queued as it is written: a condition, as its Workload would have it.

Kueue has an Event for it and no more, which is gone within the hour; and where a class is unknown there is not even a
Workload that could tell. Only kinds whose controllers keep the conditions of others are marked: elsewhere two would
write over each other, and the Event has to do.

Rejected: `Suspended`, or `PodScheduled`, with another reason. They are others', who would set them right at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Obj = dict[str, Any]
MARK = "shoal.dev/QuotaReserved"
Fault = tuple[str, str]
"""Reason and message."""
_HOPELESS = frozenset({"Misconfigured", "Inadmissible"})
_LONGEST_MESSAGE = 32_768


def fault_of(status: str, reason: str, message: str) -> Fault | None:
    """What keeps a Workload from its quota that no time will mend, from its condition `QuotaReserved`."""
    return (reason, message) if status == "False" and reason in _HOPELESS else None


def mark_of(fault: Fault, now: str) -> Obj:
    message = fault[1][:_LONGEST_MESSAGE]
    return {"type": MARK, "status": "False", "reason": fault[0], "message": message, "lastTransitionTime": now}


def marked(conditions: Sequence[Obj], fault: Fault | None, now: str) -> list[Obj] | None:
    """The conditions as they should be; None where they are so."""
    before = next((one for one in conditions if one.get("type") == MARK), None)
    others = [one for one in conditions if one.get("type") != MARK]
    if fault is None:
        return None if before is None else others
    mark = mark_of(fault, now if before is None else str(before.get("lastTransitionTime") or now))
    if before is not None and (before.get("reason"), before.get("message")) == (mark["reason"], mark["message"]):
        return None
    return [*others, mark]
