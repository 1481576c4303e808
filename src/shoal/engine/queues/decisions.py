"""Defines the decisions of a cycle about workloads, as values for the controllers that execute them."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from shoal.engine.queues.entry import PendingState
from shoal.engine.queues.facts import QuotaAssignment
from shoal.engine.queues.reasons import Wait, Yield


class Admitted(msgspec.Struct, frozen=True):
    """Quota is reserved; admitted as well unless checks are pending."""

    workload: str
    queue: str
    admission: QuotaAssignment
    checks_pending: bool = False
    again: bool = False
    """It held quota before; its topology is new (second pass)."""
    proven: bool = False
    """Whether places for its pods were found on known nodes."""


class Preempted(msgspec.Struct, frozen=True):
    workload: str
    beneficiary: str
    reason: Yield


class Stopped(msgspec.Struct, frozen=True):
    """A workload is stopped without a preemptor: a timeout, a check, a drained queue, a failed node."""

    workload: str
    reason: str
    message: str = ""
    requeue_at_s: float = 0.0
    requeues: int = 0
    deactivate: bool = False
    """It is not tried again until it is activated."""


class StillWaiting(msgspec.Struct, frozen=True):
    workload: str
    queue: str
    state: PendingState
    why: Wait
    message: str = ""


@dataclass(slots=True)
class Decisions:
    """One cycle. `waiting` names the heads that were looked at and not admitted."""

    admitted: list[Admitted] = field(default_factory=list)
    preempted: list[Preempted] = field(default_factory=list)
    stopped: list[Stopped] = field(default_factory=list)
    waiting: list[StillWaiting] = field(default_factory=list)
    unplaced: dict[str, str] = field(default_factory=dict)
    """Workloads that hold quota and need domains, and why a second pass found none."""
    skips: dict[str, int] = field(default_factory=dict)
    """Cluster queue -> preemptions that were skipped in favour of others of this cycle."""

    @property
    def is_quiet(self) -> bool:
        return not (self.admitted or self.preempted or self.stopped)
