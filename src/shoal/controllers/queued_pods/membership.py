"""Determines for pod groups which pods are members, excess or replaced, and how many are missing.

All functions are pure. Older pods are kept before newer ones, and running pods before held ones. A failed pod is kept
until another pod replaces it, so that the outcome of the group can be determined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from shoal.client.item import Item
from shoal.controllers.queued_pods.kueue_names import FAST, RETRIABLE, SERVING, TOTAL
from shoal.controllers.queued_pods.pod_view import QueuedPod
from shoal.controllers.queued_pods.roles import role_of
from shoal.units.numbers import whole_of

Member = tuple[Item, QueuedPod]
Pods = Sequence[Member]


class GroupError(Exception):
    """No Workload can be made from these pods; the message says why."""


class GroupMembers(msgspec.Struct, frozen=True, eq=False):
    kept: Pods
    excess: Pods
    replaced: Pods
    """Pods that have ended and have a replacement."""
    absent: int
    has_other_roles: bool
    """The pods have roles that the Workload does not have."""


def total_of(pods: Pods, group: str) -> int:
    """The size of the group according to all pods. Raises GroupError."""
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
        reason = "group total count should be greater than zero"
        raise GroupError(f"incorrect annotation value '{TOTAL}={text}': {reason}")
    return total


def total_or_none(pods: Pods) -> int | None:
    try:
        return _total(pods[0][1])
    except GroupError:
        return None


def present(pods: Pods) -> Pods:
    """Pods that count for a pod group of another project: those that run or wait, and those that succeeded."""
    return [one for one in pods if not one[1].is_lost() and (not one[1].is_terminating() or one[1].is_finished())]


def is_serving(pods: Pods) -> bool:
    return any(pod.metadata.annotations.get(SERVING) == "true" for _, pod in pods)


def is_unretriable(pods: Pods) -> bool:
    return any(pod.metadata.annotations.get(RETRIABLE) == "false" for _, pod in pods)


def first_members(pods: Pods, total: int) -> tuple[Pods, Pods]:
    """Members and excess pods of a group without a Workload."""
    runnable = sorted((one for one in pods if not one[1].is_lost()), key=_retention_order)
    return runnable[:total], runnable[total:]


def members_of(pods: Pods, counts: Mapping[str, int]) -> GroupMembers:
    """Members of a group whose Workload has these counts by role."""
    by_role: dict[str, list[Member]] = {}
    for one in pods:
        by_role.setdefault(role_of(one[0]), []).append(one)
    kept: list[Member] = []
    excess: list[Member] = []
    replaced: list[Member] = []
    absent = 0
    for role, count in counts.items():
        of_role = by_role.pop(role, [])
        active = sorted((one for one in of_role if not one[1].is_lost()), key=_retention_order)
        lost = sorted((one for one in of_role if one[1].is_lost()), key=lambda one: one[1].age(), reverse=True)
        absent += max(count - len(active), 0)
        kept += active[:count]
        excess += active[count:]
        remembered = max(count - len(active), 0)
        kept += lost[:remembered]
        replaced += lost[remembered:]
    strangers = [one for others in by_role.values() for one in others]
    has_other_roles = any(not pod.is_lost() for _, pod in strangers)
    replaced += [one for one in strangers if one[1].is_lost()]
    return GroupMembers(kept, excess, replaced, absent, has_other_roles)


def counts_of(pods: Pods, total: int) -> dict[str, int]:
    """Number of pods by role, in the order of the roles' names; missing pods count for the role of the oldest."""
    counts = Counter(role_of(item) for item, _ in pods)
    counts[role_of(pods[0][0])] += max(total - len(pods), 0)
    return dict(sorted(counts.items()))


def _retention_order(one: Member) -> tuple[bool, bool, tuple[float, str]]:
    pod = one[1]
    return (not pod.has_finalizer(), pod.is_held(), pod.age())
