"""Counts the pods of one group by state and by role."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec
from msgspec import field

from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.engine.queues.disciplines.volcano.objects import GroupPod, Key, QueuedPodGroup


class GroupPodCounts(msgspec.Struct, frozen=True):
    by_state: Mapping[str, int] = field(default_factory=dict)
    """By Volcano's task status: Pending, Bound, Running, Releasing, Succeeded, Failed, Unknown."""
    by_role: Mapping[str, int] = field(default_factory=dict)
    """Pods that have not failed and are not being deleted, by role."""
    placed_by_role: Mapping[str, int] = field(default_factory=dict)
    unschedulable: int = 0
    """The number of pending pods for which the scheduler found no node."""

    def of(self, *states: str) -> int:
        return sum(self.by_state.get(state, 0) for state in states)

    @property
    def total(self) -> int:
        return sum(self.by_state.values())

    @property
    def valid(self) -> int:
        """Members that count towards the minimum."""
        return self.of("Pending", "Bound", "Running", "Succeeded")

    @property
    def ready(self) -> int:
        """Members that have a node or have succeeded."""
        return self.of("Bound", "Running", "Succeeded")

    def are_roles_ready(self, minima: Mapping[str, int]) -> bool:
        return all(self.placed_by_role.get(role, 0) >= least for role, least in minima.items())


class CountedGroup(msgspec.Struct, frozen=True):
    """A group with the counts of its pods."""

    group: QueuedPodGroup
    counts: GroupPodCounts

    @property
    def key(self) -> Key:
        return self.group.metadata.key


def count_pods(pods: Iterable[GroupPod]) -> GroupPodCounts:
    by_state: Counter[str] = Counter()
    by_role: Counter[str] = Counter()
    placed: Counter[str] = Counter()
    unschedulable = 0
    for pod in pods:
        state = state_of(pod)
        by_state[state] += 1
        if state in ("Pending", "Bound", "Running", "Succeeded"):
            by_role[pod.role] += 1
        if state in ("Bound", "Running", "Succeeded"):
            placed[pod.role] += 1
        if state == "Pending":
            unschedulable += is_unschedulable(pod)
    return GroupPodCounts(dict(by_state), dict(by_role), dict(placed), unschedulable)


def state_of(pod: GroupPod) -> str:
    phase = pod.status.phase
    if phase in TERMINAL_PHASES:
        return phase
    if pod.is_terminating:
        return "Releasing"
    if phase == "Running":
        return "Running"
    if phase == "Unknown":
        return "Unknown"
    return "Bound" if pod.spec.node_name else "Pending"


def is_unschedulable(pod: GroupPod) -> bool:
    return any(
        one.type == "PodScheduled" and one.status == "False" and one.reason == "Unschedulable"
        for one in pod.status.conditions
    )
