"""The condition PodGroupScheduled of Kubernetes' PodGroup, by its pods: what kube-scheduler would write."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

CONDITION = "PodGroupScheduled"
SCHEDULED, UNSCHEDULABLE, SCHEDULER_ERROR = "Scheduled", "Unschedulable", "SchedulerError"


class ScheduledMember(msgspec.Struct, frozen=True):
    name: str
    is_bound: bool = False
    reason: str = ""
    """Of its condition PodScheduled, where that is False."""
    message: str = ""


def scheduled(members: Sequence[ScheduledMember], least: int) -> tuple[bool, str, str] | None:
    """Whether it is so, the reason and the message; None while there is nothing to say. `least`: how many pods start
    together, 0 where each goes its own way.

    As with kube-scheduler, nothing is said of a group that has fewer pods than it needs: it has not been tried."""
    if sum(member.is_bound for member in members) >= max(least, 1):
        return True, SCHEDULED, ""
    refused = [one for one in members if not one.is_bound and one.reason in (UNSCHEDULABLE, SCHEDULER_ERROR)]
    if len(members) < least or not refused:
        return None
    first = min(refused, key=lambda one: one.name)
    return False, first.reason, first.message
