"""How far a pod group of scheduler-plugins is, by its pods: the phases that its own controller would write."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

PENDING, SCHEDULING, RUNNING, FINISHED, FAILED = "Pending", "Scheduling", "Running", "Finished", "Failed"
FINAL = frozenset({FINISHED, FAILED})


class Member(msgspec.Struct, frozen=True):
    name: str
    phase: str
    owners: tuple[str, ...] = ()


class Standing(msgspec.Struct, frozen=True):
    phase: str
    running: int
    succeeded: int
    failed: int
    occupied_by: str


def standing(members: Sequence[Member], least: int, namespace: str) -> Standing:
    """Of a group that has not come to its end."""
    running, succeeded, failed = (
        sum(one.phase == phase for one in members) for phase in ("Running", "Succeeded", "Failed")
    )
    phase = RUNNING if running + succeeded >= least else SCHEDULING
    if len(members) < least:
        phase = PENDING
    elif succeeded >= least:
        phase = FINISHED
    elif failed and failed + running + succeeded >= least:
        phase = FAILED
    owners = sorted(members[0].owners) if members and phase != PENDING else ()
    return Standing(phase, running, succeeded, failed, ",".join(f"{namespace}/{name}" for name in owners))
