"""Decides how the pods of a group are queued: as one workload, which pods it counts, and how few of them it may start
with.

The group's own minimum is the gang, whatever ecosystem wrote it; further pods are elastic. So the workload counts all
pods that exist and may be admitted with fewer, but never without the pods that the gang needs: quota and gang are one
decision, and two groups can never hold one half each of what one of them needs.

Guarantees: the same pods and group give the same workload, for a live cluster and for manifests; a workload that is
admitted with its least counts has every pod that the gang needs.

Rejected: one workload for each pod, and a rule that admits those of a group together. Preemption, requeueing and
topology would have to know the rule as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from shoal.engine.gangs.next_pods import PodsToPlace, minimum
from shoal.engine.gangs.shortage import Shortage, shortage_of
from shoal.engine.gangs.teams import Roster
from shoal.engine.groups import GroupFacts, parts_fault
from shoal.engine.pod_identity import PodIdentity

MOST_SHAPES = 18
"""Kueue's limit for the pod sets of a Workload."""
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"


class QueuedMember(msgspec.Struct, frozen=True):
    """A pod of the group that has not ended."""

    name: str
    queue: str
    shape: str
    """Pods of one shape are one pod set."""
    who: PodIdentity = PodIdentity()
    runs: bool = False
    """It is admitted already."""


class GroupPodSet(msgspec.Struct, frozen=True):
    shape: str
    count: int
    least: int
    """The pods without which the gang cannot run."""


class GroupWorkload(msgspec.Struct, frozen=True):
    """The one workload of a group."""

    queue: str
    pod_sets: tuple[GroupPodSet, ...]
    """In the order of their oldest pods."""
    order: tuple[str, ...]
    """The names of the pods, in the order in which they are admitted: those that the gang needs first."""

    @property
    def elastic(self) -> str:
        """The pod set that may start with fewer pods: the one with the most to spare, because Kueue allows only one;
        empty if there is none."""
        spare = {each.shape: each.count - each.least for each in self.pod_sets}
        chosen = max(spare, key=lambda shape: spare[shape])
        return chosen if spare[chosen] else ""

    def least_of(self, shape: str) -> int | None:
        """The `minCount` of the pod set; None where all pods are needed."""
        found = next((each for each in self.pod_sets if each.shape == shape), None)
        return max(found.least, 1) if found is not None and shape == self.elastic else None


class GroupRefusal(msgspec.Struct, frozen=True):
    """Why the group cannot be queued now."""

    message: str
    lacks_pods: bool = False
    """Further pods would help."""


def is_one_by_one(facts: GroupFacts) -> bool:
    """Whether no minimum ties its pods together: each of them is a workload of its own."""
    if facts.unreadable:
        return False
    return facts.minimum <= 1 and not facts.roles and not facts.parts


def is_complete(facts: GroupFacts) -> bool:
    """Whether the gang needs no pod any more. `facts`: less what has succeeded."""
    parents = {part.parent for part in facts.parts}
    return (
        facts.minimum <= 0
        and not facts.roles
        and not any(part.minimum > 0 for part in facts.parts if part.name not in parents)
    )


def group_workload(
    name: str, facts: GroupFacts | None, members: Sequence[QueuedMember]
) -> GroupWorkload | GroupRefusal:
    """`members`: oldest first, at least one. `facts`: less what has succeeded; None where the group does not exist."""
    group = f"pod group {name}"
    if facts is None:
        return GroupRefusal(f"{group} not found: its pods are queued once it exists")
    if fault := facts.unreadable or parts_fault(facts.parts):
        return GroupRefusal(f"{group} cannot be read: {fault}")
    first = members[0]
    other = next((one for one in members if one.queue != first.queue), None)
    if other is not None:
        return GroupRefusal(
            f"pods {first.name} and {other.name} of {group} name different queues, {first.queue or 'none'} and "
            f"{other.queue or 'none'}: give all pods of the group the same label {QUEUE_LABEL}"
        )
    needed = _needed(facts, members)
    if isinstance(needed, Shortage):
        return GroupRefusal(_lacking(group, needed), lacks_pods=True)
    counts = Counter(one.shape for one in members)
    if len(counts) > MOST_SHAPES:
        return GroupRefusal(
            f"the pods of {group} have {len(counts)} shapes, and a Workload has at most {MOST_SHAPES} pod sets: give "
            "more of them equal requests and constraints"
        )
    least = Counter(one.shape for one in members if one.name in needed)
    return GroupWorkload(
        first.queue,
        tuple(GroupPodSet(shape, count, least[shape]) for shape, count in counts.items()),
        tuple(one.name for one in sorted(members, key=lambda one: (not one.runs, one.name not in needed))),
    )


def _needed(facts: GroupFacts, members: Sequence[QueuedMember]) -> frozenset[str] | Shortage:
    """The pods that the gang needs, those that run first and then the oldest; or what it lacks."""
    in_turn = {one.name: one.who for one in sorted(members, key=lambda one: not one.runs)}
    roster = Roster(facts, in_turn, {})
    if roster.is_met:
        return frozenset()
    want = minimum(roster)
    return shortage_of(roster) if want is None else frozenset(_first_choice(want))


def _first_choice(want: PodsToPlace) -> list[str]:
    found = [pod for demand in want.demands for pod in demand.pods[: demand.need]]
    for part in want.parts[: want.least]:
        found += _first_choice(part)
    return found


def _lacking(group: str, lack: Shortage) -> str:
    of = f"role {lack.role} of " if lack.role else f"subgroup {lack.part} of " if lack.part else ""
    more = lack.needs - lack.exist
    return (
        f"{of}{group} has {lack.exist} of the {lack.needs} pods that it needs: it is queued once {more} more "
        f"{'exists' if more == 1 else 'exist'}"
    )
