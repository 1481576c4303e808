"""Reads what queues need of a pod group: its minima, and the part and role of each of its pods.

The code that reads gangs for the scheduler reads them here too, so that both count the same pods. Priority classes and
topologies are left out: whether they exist is the scheduler's concern, and a queue counts pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha1
from typing import Any

from msgspec import structs

from shoal.api.decode import Document
from shoal.api.pod import Pod, PodStatus
from shoal.engine.from_api import Priorities, Topologies
from shoal.engine.from_api.membership import KUEUE_GROUP_LABEL, group_of
from shoal.engine.from_api.pod_identity import who_of_pod
from shoal.engine.from_api.priorities import Rank
from shoal.engine.groups import GroupFacts, TopologyRequirement
from shoal.engine.pod_identity import PodIdentity
from shoal.engine.queues.pod_groups import is_one_by_one
from shoal.store.gangs import GangMember, gangs_of, unreadable_gang
from shoal.store.inventory import Inventory, Placed
from shoal.units.errors import UserError, Where


@dataclass(frozen=True, slots=True)
class QueuedGroupFacts:
    """A group, for its queue."""

    facts: GroupFacts | None
    """Less the pods that succeeded; None where the group does not exist."""
    members: Mapping[str, PodIdentity]
    """By the keys of its pods that have not succeeded."""
    is_gang: bool = True
    """Whether the group ties its pods together at all."""


class _AnyPriorities(Priorities):
    def has(self, *_: Any) -> bool:
        return True

    def named(self, *_: Any) -> Rank:
        return Rank()


class _NoTopologies(Topologies):
    def kueue_wish(self, *_: Any) -> TopologyRequirement:
        return TopologyRequirement()

    def kai_annotations_requirement(self, *_: Any) -> TopologyRequirement:
        return TopologyRequirement()

    def kai_requirement(self, *_: Any) -> TopologyRequirement:
        return TopologyRequirement()

    def volcano_requirement(self, *_: Any) -> TopologyRequirement:
        return TopologyRequirement()


_HASHED = 5
_PRIORITIES, _TOPOLOGIES = _AnyPriorities(), _NoTopologies()


def queue_group_of(pod: Pod) -> str:
    """The pod group with which the pod is queued, as namespace/name; empty for a pod on its own, and for the pod groups
    of Kueue, which have rules of their own. Raises UserError if the pod names two groups."""
    if KUEUE_GROUP_LABEL in pod.metadata.labels:
        return ""
    return group_of(pod, Where(obj=f"Pod {pod.metadata.key}"))


def group_workload_name(group: str) -> str:
    """The name of the Workload of a group. A group inside a Workload of Kubernetes has a name of several words."""
    name = group.partition("/")[2]
    if "/" not in name:
        return name
    return f"{name.replace('/', '-')}-{sha1(name.encode(), usedforsecurity=False).hexdigest()[:_HASHED]}"


def ties_together(group: str, objects: Iterable[Document], placed: Placed[Pod]) -> bool:
    """Whether the group ties the pod to others; also while the group does not exist. A pod that has succeeded leaves
    its group no smaller: the Workload of the group is still its own."""
    pod = structs.replace(placed.value, status=PodStatus())
    read = group_facts(group, objects, [Placed(pod, placed.where)])
    return read.is_gang and (read.facts is None or not is_one_by_one(read.facts))


def group_facts(name: str, objects: Iterable[Document], pods: Sequence[Placed[Pod]]) -> QueuedGroupFacts:
    """`objects`: the group objects of that name. `pods`: those that name the group, without those that failed."""
    try:
        found = [GangMember(placed, who_of_pod(placed.value, Rank())) for placed in pods]
        ended = [one for one in found if one.placed.value.has_succeeded()]
        members = [one for one in found if not one.placed.value.has_succeeded()]
        gangs = gangs_of(Inventory(objects), members, _PRIORITIES, _TOPOLOGIES, ended)
    except UserError as error:
        return QueuedGroupFacts(
            unreadable_gang(name, error), {placed.value.metadata.key: PodIdentity() for placed in pods}
        )
    identities = {one.placed.value.metadata.key: one.who for one in members}
    is_gang = not members or any(who.group == name for who in identities.values())
    facts = next((each for each in gangs.facts if each.name == name), None)
    return QueuedGroupFacts(facts, identities, is_gang)
