"""Which pods form gangs, from group objects, from the pods' own words, and from the controllers that made them.

A group object says most and wins. Without one, a controller may be marked as a gang (Volcano's and KAI's minimum
annotations, Kueue's queue and placement annotations), and pods may carry the minimum themselves. Pods that name a group
of which nothing else is known form a gang without facts: they wait, and are told so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec import structs

from shoal.api.groups.coscheduling import CoschedulingPodGroup
from shoal.api.groups.kai import SUB_GROUP_LABEL, KaiPodGroup
from shoal.api.groups.kubernetes import PodGroup, SchedulingPolicy, Workload
from shoal.api.groups.volcano import VolcanoPodGroup
from shoal.api.pod import Pod
from shoal.engine.from_api import (
    GangReader,
    Priorities,
    Topologies,
    check_kai_part,
    least_of_label,
    volcano_part,
    volcano_queue,
)
from shoal.engine.from_api.membership import whole_number, workload_gang
from shoal.engine.groups import GroupFacts, Wish
from shoal.engine.who import Who
from shoal.store.inventory import Inventory, Placed
from shoal.store.replicas import KUEUE_QUEUE_LABEL, Maker, makers, name_of
from shoal.units.errors import Where

VOLCANO_MINIMUM = "scheduling.volcano.sh/group-min-member"
KAI_MINIMUM = "kai.scheduler/batch-min-member"

Owner = tuple[str, str, str]
"""(namespace, kind, name)."""


@dataclass(slots=True)
class Member:
    """A pod and its standing, which is completed here."""

    placed: Placed[Pod]
    who: Who


@dataclass(slots=True)
class Gangs:
    """What came of it."""

    facts: list[GroupFacts] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def gangs_of(inventory: Inventory, members: list[Member], priorities: Priorities, topologies: Topologies) -> Gangs:
    """The gangs; the standings of their pods are completed with part, queue and group."""
    return _Gatherer(inventory, members, priorities, topologies).gather()


class _Gatherer:
    def __init__(
        self, inventory: Inventory, members: list[Member], priorities: Priorities, topologies: Topologies
    ) -> None:
        self._inventory = inventory
        self._members = members
        self._reader = GangReader(priorities, topologies)
        self._topologies = topologies
        self._makers = {_owner(placed.value): placed for placed in makers(inventory)}
        self._of: dict[str, list[Member]] = {}
        self._found = Gangs()
        self._known: set[str] = set()

    def gather(self) -> Gangs:
        self._join_by_owner()
        for member in self._members:
            if member.who.group:
                self._of.setdefault(member.who.group, []).append(member)
        self._objects()
        self._workloads()
        self._without_object()
        return self._found

    # -- group objects ---------------------------------------------------------------------------------------

    def _objects(self) -> None:
        for volcano in self._inventory.of(VolcanoPodGroup):
            group = volcano.value
            members = self._of.get(group.metadata.key, [])
            pods = [member.placed.value for member in members]
            queue = volcano_queue(group.spec.queue)
            for member in members:
                part = volcano_part(group, member.placed.value)
                member.who = structs.replace(member.who, part=part, queue=member.who.queue or queue)
            self._add(self._reader.volcano(group, pods, volcano.where), volcano.where, "spec.minMember")
        for kai in self._inventory.of(KaiPodGroup):
            for member in self._of.get(kai.value.metadata.key, []):
                place = member.placed.at(f"metadata.labels[{SUB_GROUP_LABEL}]")
                check_kai_part(kai.value, member.who.part, place)
                member.who = structs.replace(member.who, queue=member.who.queue or kai.value.spec.queue)
            self._add(self._reader.kai(kai.value, kai.where), kai.where, "spec.minMember")
        for plain in self._inventory.of(PodGroup):
            where = plain.where
            facts = self._reader.kubernetes(plain.value, where)
            if facts.minimum or not facts.wish.is_empty:
                self._add(facts, where, "spec.schedulingPolicy.gang.minCount")
            else:
                self._dissolve(facts.name)
        for light in self._inventory.of(CoschedulingPodGroup):
            self._add(self._reader.coscheduling(light.value), light.where, "spec.minMember")

    def _add(self, facts: GroupFacts, where: Where, path: str) -> None:
        members = self._of.get(facts.name, [])
        self._known.add(facts.name)
        if facts.wish.is_empty:
            facts = structs.replace(facts, wish=self._wish_of_pods(members))
        self._found.facts.append(facts)
        if not members:
            self._found.warnings.append(f"{where}: no pod belongs to it")
        elif facts.minimum > len(members):
            self._found.warnings.append(
                f"{where.with_path(path)}: needs {facts.minimum} pods, and only {len(members)} of its pods are there"
            )

    def _dissolve(self, name: str) -> None:
        """A group that promises nothing about its pods: each goes its own way."""
        self._known.add(name)
        for member in self._of.get(name, []):
            member.who = structs.replace(member.who, group="", part="")

    def _workloads(self) -> None:
        policies: dict[str, tuple[SchedulingPolicy, Where]] = {}
        for workload in self._inventory.of(Workload):
            for index, group in enumerate(workload.value.spec.pod_groups):
                key = f"{workload.value.metadata.key}/{group.name}"
                policies[key] = group.policy, workload.where.with_path(f"spec.podGroups[{index}]")
        for name, members in self._of.items():
            reference = members[0].placed.value.spec.workload_ref
            if reference is None or name in self._known:
                continue
            namespace = members[0].placed.value.metadata.namespace
            found = policies.get(f"{namespace}/{reference.name}/{reference.pod_group}")
            if found is None or name != f"{namespace}/{workload_gang(reference)}":
                continue
            policy, where = found
            if policy.min_count():
                self._add(
                    GroupFacts(name=name, minimum=policy.min_count()), where, f"{where.path}.policy.gang.minCount"
                )
            else:
                self._dissolve(name)

    # -- gangs without an object -----------------------------------------------------------------------------

    def _without_object(self) -> None:
        for name, members in self._of.items():
            if name in self._known:
                continue
            first = members[0].placed
            least = least_of_label(first.value, first.where)
            if least is not None:
                self._add(GroupFacts(name=name, minimum=least), first.where, "metadata")

    def _join_by_owner(self) -> None:
        """Pods that name no group may have an owner who does, or be marked as one pod set by their annotations."""
        together: dict[Owner, list[Member]] = {}
        for member in self._members:
            pod = member.placed.value
            if member.who.group:
                continue
            owner = self._top_owner(pod)
            if owner is not None:
                together.setdefault(owner, []).append(member)
        for owner, members in together.items():
            self._join(owner, members)

    def _join(self, owner: Owner, members: list[Member]) -> None:
        maker = self._makers.get(owner)
        minimum = self._minimum(maker, owner[1], members)
        if minimum is None:
            return
        name = f"{owner[0]}/{owner[2]}"
        wish = self._wish_of_pods(members)
        if wish.is_empty and maker is not None:
            wish = self._wish(maker.value.metadata.annotations, maker.where.with_path("metadata.annotations"))
        for member in members:
            member.who = structs.replace(member.who, group=name)
        self._known.add(name)
        self._found.facts.append(GroupFacts(name=name, minimum=minimum, wish=wish))
        where = maker.where if maker is not None else members[0].placed.where
        if minimum > len(members):
            self._found.warnings.append(f"{where}: needs {minimum} pods, and only {len(members)} of its pods are there")

    def _minimum(self, maker: Placed[Maker] | None, kind: str, members: list[Member]) -> int | None:
        """How many must start together; None where nobody says that any should."""
        if maker is not None:
            annotations = maker.value.metadata.annotations
            where = maker.where.with_path("metadata.annotations")
            for key in (VOLCANO_MINIMUM, KAI_MINIMUM):
                if key in annotations and (key is VOLCANO_MINIMUM or kind == "Job"):
                    return whole_number(annotations[key], where.key(key))
            if kind == "Job" and KUEUE_QUEUE_LABEL in maker.value.metadata.labels:
                return len(members)
            if not self._wish(annotations, where).is_empty:
                return len(members)
        return None if self._wish_of_pods(members).is_empty else len(members)

    def _top_owner(self, pod: Pod) -> Owner | None:
        reference = pod.metadata.controller()
        if reference is None:
            return None
        namespace = pod.metadata.namespace
        owner = namespace, reference.kind, reference.name
        maker = self._makers.get(owner)
        above = maker.value.metadata.controller() if maker is not None else None
        return owner if above is None else (namespace, above.kind, above.name)

    def _wish_of_pods(self, members: list[Member]) -> Wish:
        for member in members:
            annotations = member.placed.value.metadata.annotations
            if annotations:
                wish = self._wish(annotations, member.placed.at("metadata.annotations"))
                if not wish.is_empty:
                    return wish
        return Wish()

    def _wish(self, annotations: Mapping[str, str], where: Where) -> Wish:
        if not annotations:
            return Wish()
        wish = self._topologies.kueue_wish(annotations, where)
        return self._topologies.kai_annotations_wish(annotations, where) if wish.is_empty else wish


def _owner(maker: Maker) -> Owner:
    return maker.metadata.namespace, type(maker).__name__, name_of(maker)
