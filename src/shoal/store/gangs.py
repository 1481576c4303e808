"""Groups pods to gangs, from group objects, from the pods' own labels and annotations, and from their controllers.

A group object has the most information and takes precedence. Without one, a controller may be marked as a gang (our own
annotation, Volcano's and KAI's minimum annotations, Kueue's queue and placement annotations), and pods may carry the
minimum themselves. Pods that name an unknown group form a gang without facts: they wait, and the reason is reported on
them.

A pod group of Kueue needs the number of pods that it declares. It is no gang where Kueue lets its pods start one by one
(fast admission, serving), nor while Kueue itself runs in the cluster: Kueue has admitted the group as a whole then, and
replaces pods that cannot be placed. With `shoal.dev/gang: "true"` on its pods it is a gang even then.

The number of pods that a controller's gang needs comes from its specification, not from the number of existing pods.
Each pod that succeeded reduces it by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import structs

from shoal.api.groups.coscheduling import CoschedulingPodGroup
from shoal.api.groups.kai import SUB_GROUP_LABEL, KaiPodGroup
from shoal.api.groups.kubernetes import PodGroup, SchedulingPolicy, Workload
from shoal.api.groups.shoal import RENDEZVOUS
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
from shoal.engine.from_api.membership import is_in_kueue_group_only, is_one_by_one, workload_gang
from shoal.engine.groups import GroupFacts, TopologyRequirement
from shoal.engine.pod_identity import PodIdentity
from shoal.store.ended_members import less_those_that_ended
from shoal.store.impossible_gangs import why_impossible
from shoal.store.inventory import Inventory, Placed
from shoal.store.object_faults import message_of
from shoal.store.pod_makers import GANG, Owner, PodMaker, makers_of, top_owner
from shoal.units.errors import UserError, Where, excerpt


@dataclass(slots=True)
class GangMember:
    """A pod and its identity for the engine, which is completed here."""

    placed: Placed[Pod]
    who: PodIdentity


@dataclass(slots=True)
class Gangs:
    """The gangs of a set of pods."""

    facts: list[GroupFacts] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    faults: list[UserError] = field(default_factory=list)
    """Warnings about controllers whose pods can never form the declared gang."""


def unreadable_gang(name: str, error: UserError) -> GroupFacts:
    """Gangs with an invalid definition; they wait until it is corrected."""
    about = f"{error.where.obj}: " if error.where.obj else ""
    return GroupFacts(name, unreadable=f"{about}{message_of(error)}".removesuffix("."))


def gangs_of(
    inventory: Inventory,
    members: list[GangMember],
    priorities: Priorities,
    topologies: Topologies,
    ended: Sequence[GangMember] = (),
    *,
    kueue_admits: bool = False,
) -> Gangs:
    """The gangs; the identities of their pods are completed with part, queue and group. `ended` are pods that
    succeeded. `kueue_admits`: Kueue itself runs in the cluster.
    """
    gatherer = _Gatherer(inventory, members, ended, GangReader(priorities, topologies), topologies)
    gatherer.kueue_admits = kueue_admits
    return gatherer.gather()


class _Gatherer:
    def __init__(
        self,
        inventory: Inventory,
        members: list[GangMember],
        ended: Sequence[GangMember],
        reader: GangReader,
        topologies: Topologies,
    ) -> None:
        self._inventory = inventory
        self._members = members
        self._ended = ended
        self._reader = reader
        self._topologies = topologies
        self.kueue_admits = False
        self._makers = makers_of(inventory)
        self._of: dict[str, list[GangMember]] = {}
        self._ended_of: dict[str, list[GangMember]] = {}
        self._found = Gangs()
        self._known: set[str] = set()

    def gather(self) -> Gangs:
        self._join_by_owner()
        for member in self._members:
            if member.who.group:
                self._of.setdefault(member.who.group, []).append(member)
        for member in self._ended:
            if member.who.group:
                self._ended_of.setdefault(member.who.group, []).append(member)
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
            for member in (*members, *self._ended_of.get(group.metadata.key, ())):
                part = volcano_part(group, member.placed.value)
                member.who = structs.replace(member.who, part=part, queue=member.who.queue or queue)
            self._add(self._reader.volcano(group, pods, volcano.where), volcano.where, "spec.minMember")
            name = group.spec.priority_class_name
            if name and not self._reader.knows_class(group):
                missing = f"PriorityClass {excerpt(name)} not found: the group has priority 0"
                self._found.warnings.append(f"{volcano.at('spec.priorityClassName')}: {missing}")
        for kai in self._inventory.of(KaiPodGroup):
            for member in self._of.get(kai.value.metadata.key, []):
                place = member.placed.at(f"metadata.labels[{SUB_GROUP_LABEL}]")
                check_kai_part(kai.value, member.who.part, place)
                member.who = structs.replace(member.who, queue=member.who.queue or kai.value.spec.queue)
            self._add(self._reader.kai(kai.value, kai.where), kai.where, "spec.minMember")
        for plain in self._inventory.of(PodGroup):
            where = plain.where
            facts = self._reader.kubernetes(plain.value, where)
            if facts.minimum or not facts.requirement.is_empty:
                self._add(facts, where, "spec.schedulingPolicy.gang.minCount")
            else:
                self._dissolve(facts.name)
        for light in self._inventory.of(CoschedulingPodGroup):
            self._add(self._reader.coscheduling(light.value), light.where, "spec.minMember")

    def _add(self, facts: GroupFacts, where: Where, path: str) -> None:
        members = self._of.get(facts.name, [])
        self._known.add(facts.name)
        if facts.requirement.is_empty:
            facts = structs.replace(facts, requirement=self._requirement_of_pods(members))
        facts = less_those_that_ended(facts, [member.who for member in self._ended_of.get(facts.name, ())])
        self._found.facts.append(facts)
        if not members:
            self._found.warnings.append(f"{where}: no pod belongs to it")
        elif facts.minimum > len(members):
            self._found.warnings.append(
                f"{where.with_path(path)}: needs {facts.minimum} pods, and only {len(members)} of its pods exist"
            )

    def _dissolve(self, name: str) -> None:
        """A group without a minimum: its pods are scheduled independently."""
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
                    GroupFacts(name=name, minimum=policy.min_count(), has_fixed_minimum=True),
                    where,
                    f"{where.path}.policy.gang.minCount",
                )
            else:
                self._dissolve(name)

    # -- gangs without an object -----------------------------------------------------------------------------

    def _without_object(self) -> None:
        for name, members in self._of.items():
            if name in self._known:
                continue
            if self.kueue_admits and _is_kueues_alone(members):
                self._dissolve(name)
                continue
            said = [(least_of_label(one.placed.value, one.placed.where), one.placed.where) for one in members]
            # The numbers on its pods may differ while they are being changed: the largest one counts.
            least, where = max(said, key=lambda one: -1 if one[0] is None else one[0])
            if least is not None:
                self._add(GroupFacts(name=name, minimum=least), where, "metadata")

    def _join_by_owner(self) -> None:
        """Pods that name no group may have an owner that does, or annotations that mark them as one pod set."""
        together: dict[Owner, tuple[list[GangMember], list[GangMember]]] = {}
        for at, members in enumerate((self._members, self._ended)):
            for member in members:
                owner = None if member.who.group else self._top_owner(member.placed.value)
                if owner is not None:
                    together.setdefault(owner, ([], []))[at].append(member)
        for owner, (members, ended) in together.items():
            if members:
                self._join(owner, members, ended)

    def _join(self, owner: Owner, members: list[GangMember], ended: list[GangMember]) -> None:
        maker = self._makers.get(owner)
        minimum = self._minimum(maker, members, ended)
        if minimum is None:
            return
        name = f"{owner[0]}/{owner[2]}"
        requirement = self._requirement_of_pods(members)
        if requirement.is_empty and maker is not None:
            requirement = self._requirement(maker.annotations, maker.at_annotations)
        for member in members:
            member.who = structs.replace(member.who, group=name)
        self._known.add(name)
        fault = why_impossible(minimum, owner, self._inventory) if minimum > len(members) else None
        if fault is not None:
            self._found.faults.append(fault)
            self._found.facts.append(unreadable_gang(name, fault))
            return
        self._found.facts.append(GroupFacts(name=name, minimum=minimum, requirement=requirement))
        where = maker.where if maker is not None else members[0].placed.where
        if minimum > len(members):
            self._found.warnings.append(f"{where}: needs {minimum} pods, and only {len(members)} of its pods exist")

    def _minimum(self, maker: PodMaker | None, members: list[GangMember], ended: list[GangMember]) -> int | None:
        """The number of pods that must start together; None if no number is given."""
        is_apart = any(is_one_by_one(member.placed.value) for member in members)
        if maker is None:
            return None if is_apart or self._requirement_of_pods(members).is_empty else len(members)
        said = maker.said_minimum()
        if said is not None:
            return max(said - len(ended), 0)
        if maker.is_no_gang:
            return None
        is_one = maker.is_all_or_nothing or any(map(_meets, members))
        if not is_one and (is_apart or not self._wishes(maker, members)):
            return None
        expected = maker.expected(len(ended))
        return len(members) if expected is None else expected

    def _wishes(self, maker: PodMaker, members: list[GangMember]) -> bool:
        """Whether the controller or the pods have placement annotations."""
        of_maker = self._requirement(maker.annotations, maker.at_annotations)
        return not (of_maker.is_empty and self._requirement_of_pods(members).is_empty)

    def _top_owner(self, pod: Pod) -> Owner | None:
        reference = pod.metadata.controller()
        if reference is None:
            return None
        return top_owner((pod.metadata.namespace, reference.kind, reference.name), self._makers)

    def _requirement_of_pods(self, members: list[GangMember]) -> TopologyRequirement:
        for member in members:
            annotations = member.placed.value.metadata.annotations
            if annotations:
                requirement = self._requirement(annotations, member.placed.at("metadata.annotations"))
                if not requirement.is_empty:
                    return requirement
        return TopologyRequirement()

    def _requirement(self, annotations: Mapping[str, str], where: Where) -> TopologyRequirement:
        if not annotations:
            return TopologyRequirement()
        requirement = self._topologies.kueue_wish(annotations, where)
        return self._topologies.kai_annotations_requirement(annotations, where) if requirement.is_empty else requirement


def _is_kueues_alone(members: list[GangMember]) -> bool:
    """Whether these pods form a group only for Kueue, and none of them requests a gang."""
    return all(is_in_kueue_group_only(one.placed.value) and not _asks_for_a_gang(one) for one in members)


def _asks_for_a_gang(member: GangMember) -> bool:
    return member.placed.value.metadata.annotations.get(GANG) == "true"


def _meets(member: GangMember) -> bool:
    """Whether the pod gets the addresses of its gang, and waits for the other pods when it starts."""
    return member.placed.value.metadata.annotations.get(RENDEZVOUS) == "true"
