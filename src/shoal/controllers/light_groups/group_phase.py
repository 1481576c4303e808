"""Computes the phase of scheduler-plugins' PodGroups from their pods, as the project's own controller does."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

PENDING, SCHEDULING, RUNNING, FINISHED, FAILED = "Pending", "Scheduling", "Running", "Finished", "Failed"
FINAL = frozenset({FINISHED, FAILED})


class GroupMember(msgspec.Struct, frozen=True):
    name: str
    phase: str
    owners: tuple[str, ...] = ()


class GroupProgress(msgspec.Struct, frozen=True):
    phase: str
    running: int
    succeeded: int
    failed: int
    occupied_by: str


def group_progress(members: Sequence[GroupMember], minimum: int, namespace: str) -> GroupProgress:
    """Computes the phase of an unfinished group."""
    running, succeeded, failed = (
        sum(one.phase == phase for one in members) for phase in ("Running", "Succeeded", "Failed")
    )
    phase = RUNNING if running + succeeded >= minimum else SCHEDULING
    if len(members) < minimum:
        phase = PENDING
    elif succeeded >= minimum:
        phase = FINISHED
    elif failed and failed + running + succeeded >= minimum:
        phase = FAILED
    owners = sorted(members[0].owners) if members and phase != PENDING else ()
    return GroupProgress(phase, running, succeeded, failed, ",".join(f"{namespace}/{name}" for name in owners))
