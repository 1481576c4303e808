"""Declares proposals, and compares what becomes of the pods that wait now with what would become of them under one."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import get_args, get_type_hints

import msgspec

from shoal.api.kueue.cluster_queues import ClusterQueuePreemption, ClusterQueueSpec
from shoal.views.decision import Decision
from shoal.views.queue_diff import Comparison

QUEUE_POLICIES: Mapping[str, tuple[str, ...]] = {
    "queueingStrategy": get_args(get_type_hints(ClusterQueueSpec)["queueing_strategy"]),
    "preemption.withinClusterQueue": get_args(get_type_hints(ClusterQueuePreemption)["within_cluster_queue"]),
    "preemption.reclaimWithinCohort": get_args(get_type_hints(ClusterQueuePreemption)["reclaim_within_cohort"]),
    "fairSharing.weight": (),
}
"""Field of a ClusterQueue's spec -> the values that it may have; none are listed for a number."""


class QueuePolicyChange(msgspec.Struct, frozen=True):
    """Another value of a field of a ClusterQueue that decides who goes first."""

    queue: str
    field: str
    """One of `QUEUE_POLICIES`."""
    value: str


class Proposal(msgspec.Struct, frozen=True):
    """Another quota, more nodes, another policy, or several of these."""

    queue: str = ""
    """The ClusterQueue whose quota is another."""
    flavor: str = ""
    resource: str = ""
    quota: str = ""
    """As a quantity: `16`."""
    nodes: str = ""
    """As for `shoal up --nodes`: `2xp5.48xlarge`."""
    policies: tuple[QueuePolicyChange, ...] = ()
    fair_sharing: str = ""
    """`on` or `off`: whether Kueue's fair sharing decides; empty for no change."""
    placement: str = ""
    """The policy that places pods, as for `shoal decide --policy`."""
    discipline: str = ""
    """Whose queues decide, as for `shoal decide --discipline`."""

    @property
    def is_empty(self) -> bool:
        return self == Proposal(self.queue, self.flavor, self.resource)


def proposal_command(proposal: Proposal) -> str:
    """The command that prints the answer, with all that is proposed in its flags."""
    words = ["shoal", "what-if"]
    if proposal.quota:
        words += ["--quota", f"{proposal.queue}/{proposal.flavor}/{proposal.resource}={proposal.quota}"]
    if proposal.nodes:
        words += ["--add-nodes", proposal.nodes]
    for one in proposal.policies:
        words += ["--queue-policy", f"{one.queue}:{one.field}={one.value}"]
    for flag, value in (
        ("--fair-sharing", proposal.fair_sharing),
        ("--placement", proposal.placement),
        ("--discipline", proposal.discipline),
    ):
        words += [flag, value] if value else []
    return shlex.join(words)


class PodChange(msgspec.Struct, frozen=True):
    """A pod or a gang that waits now."""

    name: str
    now: str
    proposed: str

    @property
    def namespace(self) -> str:
        return self.name.partition("/")[0]

    def masked(self, seen: Collection[str]) -> PodChange:
        """For a user who may see these namespaces: the pod that it gives way to may be of another one."""
        now, proposed = (_masked(words, seen) for words in (self.now, self.proposed))
        return PodChange(self.name, now, proposed)


class WhatIfAnswer(msgspec.Struct, frozen=True, rename="camel"):
    queues: Comparison | None
    """As `shoal queue diff` prints it; None for a cluster without queues of Kueue."""
    pods: Sequence[PodChange]
    """Those whose place or reason would be another."""
    unchanged: int
    added_nodes: int = 0
    commands: Sequence[str] = ()
    """What would change the queues so."""
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
_GIVES_WAY = "gives way to "


def _masked(words: str, seen: Collection[str]) -> str:
    namespace, slash, _ = words.removeprefix(_GIVES_WAY).partition("/")
    if not words.startswith(_GIVES_WAY) or (slash and namespace in seen):
        return words
    return f"{_GIVES_WAY}a pod of another namespace"


def _outcomes(decision: Decision) -> dict[str, tuple[str, str]]:
    """The last that is known of each pod: what is compared, and the words for it."""
    found: dict[str, tuple[str, str]] = {}
    for told in decision.rounds:
        found |= {one.pod: ("evicted", f"{_GIVES_WAY}{one.beneficiary}") for one in told.evicted}
        found |= {one.pod: ("moved", f"moves to {one.target}") for one in told.moved}
        found |= {one.pod: ("runs", f"runs on {one.node}") for one in told.placed}
    if decision.rounds:
        last = decision.rounds[-1]
        found |= {one.pod: ("nominated", f"gets room on {one.node}") for one in last.nominated}
        found |= {one.name: (one.reason.code, f"waits: {one.reason.message}") for one in last.refused if one.name}
    return found
