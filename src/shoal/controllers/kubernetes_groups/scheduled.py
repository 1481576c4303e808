"""Computes the condition PodGroupScheduled of Kubernetes' PodGroup from its pods, as kube-scheduler does."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

CONDITION = "PodGroupScheduled"
SCHEDULED, UNSCHEDULABLE, SCHEDULER_ERROR = "Scheduled", "Unschedulable", "SchedulerError"


class ScheduledMember(msgspec.Struct, frozen=True):
    name: str
    is_bound: bool = False
    reason: str = ""
    """The reason of its condition PodScheduled, where that is False."""
    message: str = ""


def scheduled(members: Sequence[ScheduledMember], least: int) -> tuple[bool, str, str] | None:
    """Status, reason and message; None while there is no condition to write. `least`: the number of pods that start
    together, 0 if they start independently.

    As with kube-scheduler, a group with fewer pods than it needs gets no condition, because it has not been tried.
    """
    if sum(member.is_bound for member in members) >= max(least, 1):
        return True, SCHEDULED, ""
    refused = [one for one in members if not one.is_bound and one.reason in (UNSCHEDULABLE, SCHEDULER_ERROR)]
    if len(members) < least or not refused:
        return None
    first = min(refused, key=lambda one: one.name)
    return False, first.reason, first.message
