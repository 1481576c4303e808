"""Tracks which pods form gangs, as pods, group objects and their controllers change.

Pods are indexed by the group that they name, or by their owner. When a group of pods changes, only that group is read
again, by the code that reads gangs from manifests. Where pods only joined, they are read with one earlier member; if
that gives another gang, all members are read.

Guarantees: pods of a plain owner cost a look-up; a pod that starts to run changes nothing of its gang; an object that
cannot be read is reported, and its pods wait.

Rejected: reading all pods of a group for every pod that joins it. A gang whose thousand pods arrive over a hundred
cycles would be read a hundred times.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

import msgspec
from msgspec import structs

from shoal.engine.events import Event, GroupGone, GroupSeen
from shoal.engine.from_api import Priorities, Topologies
from shoal.engine.groups import GroupFacts
from shoal.engine.pod_identity import PodIdentity, PodLabels
from shoal.store.gangs import GangMember
from shoal.store.object_faults import ObjectFaults
from shoal.store.pod_makers import Owner
from shoal.store.watched.gang_reading import GangReaderByName
from shoal.store.watched.group_objects import GangObjects, GroupObjects
from shoal.store.watched.pod_states import PodState
from shoal.store.watched.pods import Pods
from shoal.store.watched.tolerant_reading import read_each

_MOST_SIGNS = 16_384
_Membership = tuple[str, str, str]
"""(group, part, queue)."""


class _Sign(NamedTuple):
    """The parts of a pod from which its gang is read."""

    traits: PodLabels
    group: str
    part: str
    role: str
    queue: str
    has_group_annotations: bool
    has_ended: bool


class _Unit(msgspec.Struct):
    """One company."""

    members: dict[str, _Sign] = msgspec.field(default_factory=dict)
    fresh: dict[str, None] = msgspec.field(default_factory=dict)
    """Members that are not yet read."""
    is_old: bool = False
    """Whether all members must be read."""
    membership: dict[str, _Membership] = msgspec.field(default_factory=dict)
    """The identities of members, completed by the gang."""
    reported: GroupFacts | None = None


class WatchedGangs:
    def __init__(self, pods: Pods, objects: GroupObjects, troubles: ObjectFaults) -> None:
        self._pods = pods
        self._objects = objects
        self._reader = GangReaderByName(pods, objects, troubles)
        self._units: dict[GangObjects, _Unit] = {}
        self._gang_of: dict[str, GangObjects] = {}
        self._dirty: dict[GangObjects, None] = {}
        self._signs: dict[_Sign, _Sign] = {}
        self._unmoved: dict[Owner, Owner | None] = {}
        self._unchanged: dict[GangObjects, None] = {}
        """Changes that could not be applied."""
        self._moved: dict[str, None] = {}
        """Pods that left a gang without a change of their own."""

    # -- queries -----------------------------------------------------------------------------------------------------

    def who(self, key: str, state: PodState) -> PodIdentity:
        """The identity of the pod, completed by its gang."""
        gang = self._gang_of.get(key)
        membership = None if gang is None else self._units[gang].membership.get(key)
        # Pods of a gang are tried by age; those of one second, in the order of arrival.
        age = int(state.created_s)
        if membership is None:
            return structs.replace(state.who, order=age) if state.who.group else state.who
        group, part, queue = membership
        return structs.replace(state.who, group=group, part=part, queue=queue, order=age)

    def is_unread(self, key: str) -> bool:
        """Whether the pod's company could not be read at the last drain."""
        return bool(self._dirty) and self._gang_of.get(key) in self._dirty

    # -- updates -------------------------------------------------------------------------------------------------

    def heed_kueue(self, *, admits: bool) -> None:
        """Kueue's groups are not gangs while Kueue itself runs: when it starts or stops, all groups are read again."""
        if admits != self._reader.kueue_admits:
            self._reader.kueue_admits = admits
            self.all_dirty()

    def all_dirty(self) -> None:
        """The objects that determine all gangs have changed."""
        for gang in self._units:
            self._make_old(gang)

    def _make_old(self, gang: GangObjects) -> None:
        unit = self._units.get(gang)
        if unit is None:
            if not gang.group or not self._objects.is_there(gang):
                return
            unit = self._units[gang] = _Unit()
        if self._matters(gang, unit) or any(sign.has_group_annotations for sign in unit.members.values()):
            unit.is_old = True
            self._dirty[gang] = None

    def drain(
        self, pods: Iterable[str], priorities: Priorities, topologies: Topologies
    ) -> tuple[list[Event], list[str]]:
        """The events of changed gangs, given the changed pods; and the pods whose identity changed."""
        moved = self._unmoved | self._objects.take_moved()
        self._unmoved = {
            owner: moved[owner] for owner in read_each("owner", moved, lambda owner: self._move(owner, moved[owner]))
        }
        changed = self._unchanged | dict.fromkeys(self._objects.take_changed())
        self._unchanged = read_each("company", changed, self._make_old)
        for key in read_each("pod", pods, lambda key: self._sort_in(key, self._pods.get(key))):
            self._pods.touch(key)
        dirty, self._dirty = self._dirty, {}
        events: list[Event] = []
        others, self._moved = list(self._moved), {}

        def renew(gang: GangObjects) -> None:
            unit = self._units.get(gang)
            if unit is None:
                return
            others.extend(self._renew(gang, unit, priorities, topologies, events))
            if not unit.members and unit.reported is None and not self._objects.is_there(gang):
                del self._units[gang]
                self._objects.forget(gang)

        self._dirty |= read_each("company", dirty, renew)
        return events, others

    @property
    def is_quiet(self) -> bool:
        return not (self._dirty or self._unmoved or self._unchanged)

    def _move(self, owner: Owner, above: Owner | None) -> None:
        """The owner's own owner has changed: its pods may belong to another gang."""
        for place in (owner, above):
            unit = self._units.get(GangObjects(owner=place)) if place is not None else None
            for key in list(unit.members) if unit is not None else ():
                state = self._pods.get(key)
                if state is not None and state.owner == owner:
                    self._sort_in(key, state)

    def _sort_in(self, key: str, state: PodState | None) -> None:
        before = self._gang_of.get(key)
        after = None if state is None else self._objects_of(state)
        if before is not None and before != after:
            unit = self._units[before]
            del self._gang_of[key], unit.members[key]
            unit.fresh.pop(key, None)
            if unit.membership.pop(key, None) is not None:
                self._moved[key] = None
            if self._matters(before, unit):
                unit.is_old = True
                self._dirty[before] = None
        if after is None or state is None:
            return
        unit = self._units.get(after) or self._units.setdefault(after, _Unit())
        who = state.who
        sign = _Sign(
            who.traits, who.group, who.part, who.role, who.queue, state.has_group_annotations, state.is_finished
        )
        sign = self._shared(sign)
        known = unit.members.get(key)
        if known == sign:
            return
        unit.members[key] = sign
        unit.fresh[key] = None
        unit.is_old |= known is not None
        self._gang_of[key] = after
        if state.has_group_annotations or self._matters(after, unit):
            self._dirty[after] = None

    def _shared(self, sign: _Sign) -> _Sign:
        if len(self._signs) >= _MOST_SIGNS:
            self._signs.clear()
        return self._signs.setdefault(sign, sign)

    def _objects_of(self, state: PodState) -> GangObjects | None:
        if state.fault or (state.is_finished and not state.has_succeeded):
            return None
        if state.who.group:
            return GangObjects(state.who.group)
        return GangObjects(owner=self._objects.top(state.owner)) if state.owner is not None else None

    def _matters(self, gang: GangObjects, unit: _Unit) -> bool:
        """Whether the number of pods matters to the gang."""
        return bool(gang.group) or unit.reported is not None or self._objects.is_marked(gang.owner)

    # -- reading ----------------------------------------------------------------------------------------------------

    def _renew(
        self, gang: GangObjects, unit: _Unit, priorities: Priorities, topologies: Topologies, events: list[Event]
    ) -> list[str]:
        """Read a company, or what is new of it; its pods whose standing has changed."""
        fresh = unit.fresh
        is_old = unit.is_old or unit.reported is None or bool(unit.reported.unreadable)
        # Until it has been read, all members must be read.
        unit.fresh, unit.is_old = {}, True
        if not is_old:
            one_before = [key for key in islice(unit.members, 1) if key not in fresh]
            members, facts = self._reader.read(gang, [*one_before, *fresh], priorities, topologies)
            if facts == unit.reported:
                unit.is_old = False
                return self._stand(unit, members)
        members, facts = self._reader.read(gang, list(unit.members), priorities, topologies)
        if facts != unit.reported:
            self._report(unit, facts, events)
        unit.is_old = False
        return self._stand(unit, members)

    def _report(self, unit: _Unit, facts: GroupFacts | None, events: list[Event]) -> None:
        if unit.reported is not None and (facts is None or facts.name != unit.reported.name):
            events.append(GroupGone(unit.reported.name))
        if facts is not None:
            events.append(GroupSeen(facts))
        unit.reported = facts

    def _stand(self, unit: _Unit, members: Iterable[GangMember]) -> list[str]:
        changed = []
        for member in members:
            key, who = member.placed.value.metadata.key, member.who
            sign, before = unit.members[key], unit.membership.get(key)
            membership = (who.group, who.part, who.queue)
            if membership != (sign.group, sign.part, sign.queue):
                unit.membership[key] = membership
            else:
                unit.membership.pop(key, None)
            if before != unit.membership.get(key):
                changed.append(key)
        return changed
