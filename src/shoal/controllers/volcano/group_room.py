"""What groups hold of their queues in the brain's facts: pods that have a place, and pods that are looking for one.

Pods count from the moment they may be placed, so that what is placed never exceeds what a queue may take, however many
are decided at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from shoal.controllers.volcano.amounts import Amounts, add
from shoal.controllers.volcano.phases import Refusal
from shoal.controllers.volcano.queue_tree import QueueTree, Usage
from shoal.controllers.volcano.sights import GroupPod, PodGroup


class GroupRoom:
    def __init__(self, queue_of: Callable[[str], str]) -> None:
        """`queue_of`: a group's queue, empty where nobody knows it."""
        self._queue_of = queue_of
        self._held: dict[str, dict[str, dict[str, int]]] = {}
        """Group -> pods in the facts -> what they ask for."""
        self._totals: dict[str, dict[str, int]] = {}
        self._group_of: dict[str, str] = {}

    def group_of(self, pod: str) -> str:
        """Empty for a pod that holds nothing here."""
        return self._group_of.get(pod, "")

    def __contains__(self, pod: str) -> bool:
        return pod in self._group_of

    def hold(self, group: str, pod: str, amounts: dict[str, int]) -> None:
        self.leave(pod)
        self._group_of[pod] = group
        self._held.setdefault(group, {})[pod] = amounts
        add(self._totals.setdefault(group, {}), amounts)

    def leave(self, pod: str) -> None:
        group = self._group_of.pop(pod, None)
        if group is None:
            return
        add(self._totals[group], self._held[group].pop(pod), -1)
        if not self._held[group]:
            del self._held[group], self._totals[group]

    def clear(self) -> None:
        for known in (self._held, self._totals, self._group_of):
            known.clear()

    def pods(self, group: str) -> Iterable[str]:
        return tuple(self._held.get(group, ()))

    def amounts(self, group: str) -> Mapping[str, dict[str, int]]:
        """What each of them asks for."""
        return self._held.get(group, {})

    def groups(self) -> Iterable[str]:
        return tuple(self._held)

    def usage(self, tree: QueueTree) -> Usage:
        found: Usage = {}
        for group, total in self._totals.items():
            tree.charge(found, self._queue_of(group), total)
        return found


def choose(
    tree: QueueTree, group: PodGroup, pods: Sequence[GroupPod], there: int, usage: Usage
) -> tuple[list[GroupPod], Refusal | None]:
    """Which of the pods may look for a place, charged to `usage`; and what keeps the others. A group that would not
    come to its minimum gets none. `there`: how many of it are in the facts already."""
    queue = group.queue
    chosen: list[GroupPod] = []
    charged: list[Amounts] = []
    refusal: Refusal | None = None
    for pod in minimum_first(group, pods):
        asked = pod.requests()
        found = tree.full(queue, asked, usage)
        if found is not None:
            refusal = refusal or found
            continue
        tree.charge(usage, queue, asked)
        chosen.append(pod)
        charged.append(asked)
    if refusal is not None and there + len(chosen) < group.spec.min_member:
        for given in charged:
            tree.charge(usage, queue, given, -1)
        return [], refusal
    return chosen, refusal


def minimum_first(group: PodGroup, pods: Sequence[GroupPod]) -> list[GroupPod]:
    """Those that each role needs go before what it has beyond."""
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
