"""Reads what queues need of a pod group: its minima, and the part and role of each of its pods.

The code that reads gangs for the scheduler reads them here too, so that both count the same pods. Priority classes and
topologies are left out: whether they exist is the scheduler's concern, and a queue counts pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shoal.api.decode import Document
from shoal.api.pod import Pod
from shoal.engine.from_api import Priorities, Topologies
from shoal.engine.from_api.membership import KUEUE_GROUP_LABEL, group_of
from shoal.engine.from_api.pod_identity import who_of_pod
from shoal.engine.from_api.priorities import Rank
from shoal.engine.groups import GroupFacts, TopologyRequirement
from shoal.engine.pod_identity import PodIdentity
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


_PRIORITIES, _TOPOLOGIES = _AnyPriorities(), _NoTopologies()


def queue_group_of(pod: Pod) -> str:
    """The pod group with which the pod is queued, as namespace/name; empty for a pod on its own, and for the pod groups
    of Kueue, which have rules of their own. Raises UserError if the pod names two groups."""
    if KUEUE_GROUP_LABEL in pod.metadata.labels:
        return ""
    return group_of(pod, Where(obj=f"Pod {pod.metadata.key}"))


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
