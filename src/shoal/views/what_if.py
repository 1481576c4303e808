"""Compares what becomes of the pods that wait now with what would become of them under a proposal."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.views.decision import Decision
from shoal.views.queue_diff import Comparison


class Proposal(msgspec.Struct, frozen=True):
    """Another quota, more nodes, or both."""

    queue: str = ""
    """The ClusterQueue whose quota is another."""
    flavor: str = ""
    resource: str = ""
    quota: str = ""
    """As a quantity: `16`."""
    nodes: str = ""
    """As for `shoal up --nodes`: `2xp5.48xlarge`."""

    @property
    def is_empty(self) -> bool:
        return not self.quota and not self.nodes


class PodChange(msgspec.Struct, frozen=True):
    """A pod or a gang that waits now."""

    name: str
    now: str
    proposed: str

    @property
    def namespace(self) -> str:
        return self.name.partition("/")[0]


class WhatIfAnswer(msgspec.Struct, frozen=True):
    queues: Comparison | None
    """As `shoal queue diff` prints it; None for a cluster without queues of Kueue."""
    pods: Sequence[PodChange]
    """Those whose place or reason would be another."""
    unchanged: int
    added_nodes: int = 0
    command: str = ""
    """What would change the quota."""
    notes: Sequence[str] = ()


def pod_changes(now: Decision, proposed: Decision) -> tuple[list[PodChange], int]:
    """The changes, and how many pods and gangs have none: both run on some node, or wait for equal reasons."""
    before, after = _outcomes(now), _outcomes(proposed)
    names = sorted(before.keys() | after.keys())
    changes = [
        PodChange(name, before.get(name, _ABSENT)[1], after.get(name, _ABSENT)[1])
        for name in names
        if before.get(name, _ABSENT)[0] != after.get(name, _ABSENT)[0]
    ]
    return changes, len(names) - len(changes)


_ABSENT = ("", "is not created")


def _outcomes(decision: Decision) -> dict[str, tuple[str, str]]:
    """The last that is known of each pod: what is compared, and the words for it."""
    found: dict[str, tuple[str, str]] = {}
    for told in decision.rounds:
        found |= {one.pod: ("evicted", f"gives way to {one.beneficiary}") for one in told.evicted}
        found |= {one.pod: ("moved", f"moves to {one.target}") for one in told.moved}
        found |= {one.pod: ("runs", f"runs on {one.node}") for one in told.placed}
    if decision.rounds:
        last = decision.rounds[-1]
        found |= {one.pod: ("nominated", f"gets room on {one.node}") for one in last.nominated}
        found |= {one.name: (one.reason.code, f"waits: {one.reason.message}") for one in last.refused if one.name}
    return found
