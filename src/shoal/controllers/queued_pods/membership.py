"""Who is in a pod group, who is one too many, who was replaced, and how many are missing: values in, values out.

Pods that came first stay, those that run before those that wait. A pod that failed is kept until another takes its
place, so that what became of the group can be told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from shoal.controllers.queued_pods.pod_sight import QueuedPod
from shoal.controllers.queued_pods.roles import role_of
from shoal.controllers.queued_pods.words import FAST, RETRIABLE, SERVING, TOTAL
from shoal.store.live.item import Item
from shoal.units.numbers import whole_of

Member = tuple[Item, QueuedPod]
Pods = Sequence[Member]


class GroupError(Exception):
    """Why no Workload can be made of these pods."""


class Members(msgspec.Struct, frozen=True, eq=False):
    kept: Pods
    excess: Pods
    replaced: Pods
    """Over, and somebody is there in their place."""
    absent: int
    is_another: bool
    """There are roles, or more pods of one, that the Workload does not have."""


def total_of(pods: Pods, group: str) -> int:
    """How many there are to be, as all pods say. Raises GroupError."""
    first = pods[0][1].metadata
    total = _total(pods[0][1])
    for _, pod in pods[1:]:
        if pod.is_lost():
            continue
        if pod.queue != pods[0][1].queue:
            both = f"{pods[0][1].queue}!={pod.queue}"
            raise GroupError(f"pods '{first.name}' and '{pod.metadata.name}' has different queue names: {both}")
        other = _total(pod)
        if other != total:
            names = f"'{first.name}' and '{pod.metadata.name}'"
            raise GroupError(f"pods {names} has different '{TOTAL}' values: {total}!={other}")
    is_fast = FAST in first.annotations
    present = sum(not pod.is_lost() for _, pod in pods)
    if present < total and not is_fast:
        raise GroupError(f"'{group}' group has fewer runnable pods than expected")
    return total


def _total(pod: QueuedPod) -> int:
    text = pod.metadata.annotations.get(TOTAL)
    if text is None:
        raise GroupError(f"failed to extract '{TOTAL}' annotation from the pod '{pod.metadata.name}'")
    total = whole_of(text)
    if not total:
        words = "group total count should be greater than zero"
        raise GroupError(f"incorrect annotation value '{TOTAL}={text}': {words}")
    return total


def total_or_none(pods: Pods) -> int | None:
    try:
        return _total(pods[0][1])
    except GroupError:
        return None


def is_serving(pods: Pods) -> bool:
    return any(pod.metadata.annotations.get(SERVING) == "true" for _, pod in pods)


def is_unretriable(pods: Pods) -> bool:
    return any(pod.metadata.annotations.get(RETRIABLE) == "false" for _, pod in pods)


def first_members(pods: Pods, total: int) -> tuple[Pods, Pods]:
    """Of a group without a Workload: those that are in it, and those that are too many."""
    runnable = sorted((one for one in pods if not one[1].is_lost()), key=_staying)
    return runnable[:total], runnable[total:]


def members_of(pods: Pods, counts: Mapping[str, int]) -> Members:
    """Of a group that has a Workload with so many pods of each role."""
    by_role: dict[str, list[Member]] = {}
    for one in pods:
        by_role.setdefault(role_of(one[0]), []).append(one)
    kept: list[Member] = []
    excess: list[Member] = []
    replaced: list[Member] = []
    absent = 0
    for role, count in counts.items():
        of_role = by_role.pop(role, [])
        active = sorted((one for one in of_role if not one[1].is_lost()), key=_staying)
        lost = sorted((one for one in of_role if one[1].is_lost()), key=lambda one: one[1].age(), reverse=True)
        absent += max(count - len(active), 0)
        kept += active[:count]
        excess += active[count:]
        remembered = max(count - len(active), 0)
        kept += lost[:remembered]
        replaced += lost[remembered:]
    strangers = [one for others in by_role.values() for one in others]
    is_another = any(not pod.is_lost() for _, pod in strangers)
    replaced += [one for one in strangers if one[1].is_lost()]
    return Members(kept, excess, replaced, absent, is_another)


def counts_of(pods: Pods, total: int) -> dict[str, int]:
    """Pods by role, in the order of their names; those that are not there yet are like the oldest."""
    counts = Counter(role_of(item) for item, _ in pods)
    counts[role_of(pods[0][0])] += max(total - len(pods), 0)
    return dict(sorted(counts.items()))


def _staying(one: Member) -> tuple[bool, bool, tuple[float, str]]:
    pod = one[1]
    return (not pod.has_finalizer(), pod.is_held(), pod.age())
