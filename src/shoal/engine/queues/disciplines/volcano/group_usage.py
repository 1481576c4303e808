"""Tracks what groups use of their queues: the requests of their pods in the scheduling loop's facts.

A pod is charged from the moment it may be placed, so that the placed pods never exceed what a queue may use, however
many are decided at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from shoal.engine.queues.disciplines.volcano.amounts import Amounts, add
from shoal.engine.queues.disciplines.volcano.group_phases import GroupRefusal
from shoal.engine.queues.disciplines.volcano.objects import GroupPod, QueuedPodGroup
from shoal.engine.queues.disciplines.volcano.queue_tree import QueueTree, Usage


class GroupUsage:
    def __init__(self, queue_of: Callable[[str], str]) -> None:
        """`queue_of`: the queue of a group, empty if unknown."""
        self._queue_of = queue_of
        self._charged: dict[str, dict[str, dict[str, int]]] = {}
        """Group -> pod in the facts -> its requests."""
        self._totals: dict[str, dict[str, int]] = {}
        self._group_of: dict[str, str] = {}

    def group_of(self, pod: str) -> str:
        """The group of a charged pod, else an empty string."""
        return self._group_of.get(pod, "")

    def __contains__(self, pod: str) -> bool:
        return pod in self._group_of

    def charge(self, group: str, pod: str, amounts: dict[str, int]) -> None:
        self.release(pod)
        self._group_of[pod] = group
        self._charged.setdefault(group, {})[pod] = amounts
        add(self._totals.setdefault(group, {}), amounts)

    def release(self, pod: str) -> None:
        group = self._group_of.pop(pod, None)
        if group is None:
            return
        add(self._totals[group], self._charged[group].pop(pod), -1)
        if not self._charged[group]:
            del self._charged[group], self._totals[group]

    def clear(self) -> None:
        for known in (self._charged, self._totals, self._group_of):
            known.clear()

    def pods(self, group: str) -> Iterable[str]:
        return tuple(self._charged.get(group, ()))

    def amounts(self, group: str) -> Mapping[str, dict[str, int]]:
        """The requests of each charged pod of a group."""
        return self._charged.get(group, {})

    def groups(self) -> Iterable[str]:
        return tuple(self._charged)

    def usage(self, tree: QueueTree) -> Usage:
        found: Usage = {}
        for group, total in self._totals.items():
            tree.charge(found, self._queue_of(group), total)
        return found


def choose_pods(
    tree: QueueTree, group: QueuedPodGroup, pods: Sequence[GroupPod], active: int, usage: Usage
) -> tuple[list[GroupPod], GroupRefusal | None]:
    """Chooses the pods that may be scheduled, charges them to `usage`, and returns why the others may not. No pod is
    chosen if the group would not reach its minimum. `active`: the number of its pods in the facts."""
    queue = group.queue
    chosen: list[GroupPod] = []
    charged: list[Amounts] = []
    refusal: GroupRefusal | None = None
    for pod in required_pods_first(group, pods):
        asked = pod.requests()
        found = tree.over_capability(queue, asked, usage)
        if found is not None:
            refusal = refusal or found
            continue
        tree.charge(usage, queue, asked)
        chosen.append(pod)
        charged.append(asked)
    if refusal is not None and active + len(chosen) < group.spec.min_member:
        for amounts in charged:
            tree.charge(usage, queue, amounts, -1)
        return [], refusal
    return chosen, refusal


def required_pods_first(group: QueuedPodGroup, pods: Sequence[GroupPod]) -> list[GroupPod]:
    """Orders the pods that each role needs before the others."""
    left: dict[str, int] = group.spec.role_minima()
    first: list[GroupPod] = []
    others: list[GroupPod] = []
    for pod in sorted(pods, key=lambda one: one.metadata.name):
        if left.get(pod.role, 0) > 0:
            left[pod.role] -= 1
            first.append(pod)
        else:
            others.append(pod)
    return first + others
