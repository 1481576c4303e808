"""Reads the gang of one group of pods with the code that reads gangs from manifests."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from shoal.api.decode import Document
from shoal.client.kind import PODS
from shoal.engine.from_api import Priorities, Topologies
from shoal.engine.groups import GroupFacts
from shoal.store.gangs import GangMember, gangs_of, unreadable_gang
from shoal.store.inventory import Inventory, Placed
from shoal.store.object_faults import UNREADABLE, ObjectFault, ObjectFaults, message_of
from shoal.store.watched.group_objects import GangObjects, GroupObjects
from shoal.store.watched.pod_annotations import pod_of
from shoal.store.watched.pod_heads import head_of
from shoal.store.watched.pods import Pods
from shoal.units.errors import UserError, Where


class GangReaderByName:
    def __init__(self, pods: Pods, objects: GroupObjects, troubles: ObjectFaults) -> None:
        self.kueue_admits = False
        """Whether Kueue itself runs in the cluster."""
        self._pods = pods
        self._objects = objects
        self._troubles = troubles

    def read(
        self, group: GangObjects, keys: Iterable[str], priorities: Priorities, topologies: Topologies
    ) -> tuple[list[GangMember], GroupFacts | None]:
        found = [member for key in keys if (member := self._member(key)) is not None]
        members = [member for member in found if not member.placed.value.has_succeeded()]
        ended = [member for member in found if member.placed.value.has_succeeded()]
        try:
            documents = self._documents(group, found)
            inventory = Inventory(documents)
            while True:
                try:
                    gangs = gangs_of(inventory, members, priorities, topologies, ended, kueue_admits=self.kueue_admits)
                except UserError as error:
                    members = self._without_culprit(members, error)
                else:
                    break
        except UserError as error:
            self._objects.complain(error)
            name = group.group or f"{group.owner[0]}/{group.owner[2]}"
            return [_waiting(name, member) for member in members], unreadable_gang(name, error)
        for fault in gangs.faults:
            self._objects.complain(fault)
        if not gangs.faults:
            self._objects.praise(documents)
        return members, gangs.facts[0] if gangs.facts else None

    def _documents(self, group: GangObjects, members: list[GangMember]) -> list[Document]:
        if group.group:
            reference = members[0].placed.value.spec.workload_ref if members else None
            return self._objects.groups(group, reference)
        states = [self._pods.get(member.placed.value.metadata.key) for member in members]
        owners = {state.owner: None for state in states if state is not None and state.owner is not None}
        return self._objects.makers(owners | {group.owner: None})

    def _without_culprit(self, members: list[GangMember], error: UserError) -> list[GangMember]:
        """An invalid pod must not prevent the reading of the others; faults of the gang itself are raised."""
        left = [member for member in members if member.placed.where.obj != error.where.obj]
        if len(left) == len(members):
            raise error
        key = error.where.obj.removeprefix("Pod ")
        state = self._pods.get(key)
        if state is not None:
            self._troubles.put(ObjectFault(PODS, key, state.uid, UNREADABLE, message_of(error)))
        return left

    def _member(self, key: str) -> GangMember | None:
        state, item = self._pods.get(key), self._pods.item(key)
        if state is None or item is None:
            return None
        pod = pod_of(item, head_of(item))
        return GangMember(Placed(pod, Where(obj=f"Pod {key}")), state.who)


def _waiting(name: str, member: GangMember) -> GangMember:
    """A member of a gang whose definition is invalid; it waits until that is corrected."""
    return GangMember(member.placed, structs.replace(member.who, group=name))
