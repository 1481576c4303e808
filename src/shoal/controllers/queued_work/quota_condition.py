"""Computes the condition on jobs and pods that cannot be queued as they are written, with the reason from QuotaReserved
of their Workload.

Kueue records only an Event, which is deleted after an hour; and if a class is unknown there is not even a Workload with
a condition. Only kinds whose controllers keep conditions of others get the condition: with other kinds two controllers
would overwrite each other, and the Event has to be enough.

Rejected: `Suspended` or `PodScheduled` with another reason. Their own controllers would reset them at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Obj = dict[str, Any]
QUOTA_CONDITION = "shoal.dev/QuotaReserved"
Fault = tuple[str, str]
"""Reason and message."""
_LASTING_REASONS = frozenset({"Misconfigured", "Inadmissible"})
_LONGEST_MESSAGE = 32_768


def lasting_fault(status: str, reason: str, message: str) -> Fault | None:
    """From a Workload's condition QuotaReserved: why it can never get quota as it is written; None if it may."""
    return (reason, message) if status == "False" and reason in _LASTING_REASONS else None


def quota_condition(fault: Fault, now: str) -> Obj:
    return {
        "type": QUOTA_CONDITION,
        "status": "False",
        "reason": fault[0],
        "message": fault[1][:_LONGEST_MESSAGE],
        "lastTransitionTime": now,
    }


def updated_conditions(conditions: Sequence[Obj], fault: Fault | None, now: str) -> list[Obj] | None:
    """The conditions as they should be; None if they need no change."""
    before = next((one for one in conditions if one.get("type") == QUOTA_CONDITION), None)
    others = [one for one in conditions if one.get("type") != QUOTA_CONDITION]
    if fault is None:
        return None if before is None else others
    condition = quota_condition(fault, now if before is None else str(before.get("lastTransitionTime") or now))
    fields = (condition["reason"], condition["message"])
    if before is not None and (before.get("reason"), before.get("message")) == fields:
        return None
    return [*others, condition]
