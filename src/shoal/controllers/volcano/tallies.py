"""What the pods of one group come to: how many are where on their way, and what they hold of their queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec
from msgspec import field

from shoal.controllers.volcano.amounts import add
from shoal.controllers.volcano.sights import GroupPod


class Tally(msgspec.Struct, frozen=True):
    by_state: Mapping[str, int] = field(default_factory=dict)
    """In Volcano's words: Pending, Bound, Running, Releasing, Succeeded, Failed, Unknown."""
    by_role: Mapping[str, int] = field(default_factory=dict)
    """Pods that can still come to something or have, by role."""
    placed_by_role: Mapping[str, int] = field(default_factory=dict)
    unplaceable: int = 0
    """Of those that wait: pods that the scheduler found no node for."""
    allocated: Mapping[str, int] = field(default_factory=dict)

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
        """Members that have their place, or had it and made something of it."""
        return self.of("Bound", "Running", "Succeeded")

    def are_roles_ready(self, minima: Mapping[str, int]) -> bool:
        return all(self.placed_by_role.get(role, 0) >= least for role, least in minima.items())


def tally(pods: Iterable[GroupPod]) -> Tally:
    by_state: Counter[str] = Counter()
    by_role: Counter[str] = Counter()
    placed: Counter[str] = Counter()
    allocated: dict[str, int] = {}
    unplaceable = 0
    for pod in pods:
        state = state_of(pod)
        by_state[state] += 1
        if state in ("Pending", "Bound", "Running", "Succeeded"):
            by_role[pod.role] += 1
        if state in ("Bound", "Running", "Succeeded"):
            placed[pod.role] += 1
        if state == "Pending":
            unplaceable += is_unplaceable(pod)
        if pod.spec.node_name and not pod.has_ended:
            add(allocated, pod.requests())
    return Tally(dict(by_state), dict(by_role), dict(placed), unplaceable, allocated)


def state_of(pod: GroupPod) -> str:
    phase = pod.status.phase
    if phase in ("Succeeded", "Failed"):
        return phase
    if pod.is_leaving:
        return "Releasing"
    if phase == "Running":
        return "Running"
    if phase == "Unknown":
        return "Unknown"
    return "Bound" if pod.spec.node_name else "Pending"


def is_unplaceable(pod: GroupPod) -> bool:
    return any(
        one.type == "PodScheduled" and one.status == "False" and one.reason == "Unschedulable"
        for one in pod.status.conditions
    )
