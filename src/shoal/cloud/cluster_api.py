"""Implements the port of clouds with Cluster API: more and fewer replicas of MachineDeployments and MachinePools.

Works on every cloud that Cluster API covers. The groups are those of the named cluster with the annotations that
Cluster Autoscaler reads: each is one offering. A launch is a change of `spec.replicas` at the version that was read,
with the account of it in an annotation (machine_groups.py), so a repeated request changes nothing. To delete a machine
marks it with `cluster.x-k8s.io/delete-machine` first, so that Cluster API removes this one and no other.

A machine has no provider id until its infrastructure exists. Until then `instances` lists it without one, and `create`
leaves it out; callers repeat the request. Rejected: Machines without a group. Their bootstrap and infrastructure would
have to be cloned from templates, which differ by provider.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from shoal.autoscale.nodes.instance_types import InstanceType
from shoal.autoscale.nodes.pools import NodePool
from shoal.client.clock import Clock
from shoal.client.kind import Kind
from shoal.client.port import Api, Patch, Select
from shoal.client.refusals import NotFoundError
from shoal.client.served import answering
from shoal.cloud.cluster_api_settings import ClusterApiSettings
from shoal.cloud.group_offers import (
    GroupOffer,
    GroupReports,
    GroupSize,
    group_with_room,
    launch_of,
    offering_of,
    types_of,
)
from shoal.cloud.launch_account import Place, instances_of, place_text
from shoal.cloud.machine_groups import (
    LAUNCHES,
    PLACE,
    MachineGroup,
    ManagedMachine,
    group_of,
    machine_of,
    new_places,
)
from shoal.cloud.port import CloudInstance, InstanceRequest, InstanceState, ThrottledError
from shoal.units.errors import ConflictError, UserError

_GROUP: Final = "cluster.x-k8s.io"
_DELETE: Final = "cluster.x-k8s.io/delete-machine"
_CLUSTER_LABEL: Final = "cluster.x-k8s.io/cluster-name"
_POOLS: Final = "machinepools"
_GROUPS: Final = ("machinedeployments", _POOLS)
_MACHINES: Final = "machines"
_KNOWN_S: Final = 300.0
_AGAIN_S: Final = 1.0
_BOOT_S: Final = 600.0


class ClusterApiCloud:
    def __init__(self, api: Api, clock: Clock, settings: ClusterApiSettings) -> None:
        """`api`: of the management cluster."""
        self.name = "cluster-api"
        # A machine without an operating system takes this long until its infrastructure exists.
        self.launch_limit_s = 1200.0
        self._api = api
        self._clock = clock
        self._settings = settings
        self._kinds: dict[str, Kind] = {}
        self._kinds_s = float("-inf")
        self._reports = GroupReports()

    async def instance_types(self, pool: NodePool) -> tuple[InstanceType, ...]:
        return types_of(self._reports.usable(await self._offers(), {*pool.taints, *pool.startup_taints}), pool)

    async def create(self, request: InstanceRequest) -> tuple[CloudInstance, ...]:
        groups = await self._groups()
        group = next((each for each in groups if request.token in each.launches), None)
        if group is None:
            group = await self._launch(groups, request)
        listed = await self._instances_of(group, await self._machines())
        own = f"{group.id}/{request.token}"
        return tuple(each for each in listed if each.id.rpartition("/")[0] == own and each.provider_id)

    async def instances(self) -> tuple[CloudInstance, ...]:
        machines = await self._machines()
        found = [each for group in await self._groups() for each in await self._instances_of(group, machines)]
        return tuple(sorted(found, key=lambda each: each.id))

    async def delete(self, ids: Sequence[str]) -> None:
        """A machine that does not exist yet is left, because Cluster API might remove another one in its place; so is
        one of a group whose machines are being replaced. The caller asks again. Where no machine came at all, there is
        no other one.
        """
        wanted = frozenset(ids)
        machines = await self._machines()
        for each in await self._groups():
            group = each
            if group.is_rolling_out:
                continue
            places = await self._places_of(group, machines)
            has_none = not places and not group.outside
            for token, launch in each.launches.items():
                is_late = self._clock.seconds() - launch.created_s > self.launch_limit_s
                for number in launch.places:
                    machine = places.get((token, number))
                    if _id(group, (token, number)) not in wanted:
                        continue
                    if machine is not None:
                        group = await self._delete(group, (token, number), machine)
                    elif has_none and is_late:
                        group = await self._write(group.without_place((token, number)))

    def boot_s(self, _instance_type: str, /) -> float:
        return _BOOT_S

    # -- reading ------------------------------------------------------------------------------------------------------

    async def _groups(self) -> list[MachineGroup]:
        """Raises UserError if the account of a group cannot be read: its machines must not count as gone."""
        found: list[MachineGroup] = []
        for plural in _GROUPS:
            kind = (await self._served()).get(plural)
            if kind is None:
                continue
            for item in (await self._api.list(kind, self._settings.namespace)).items:
                raw = item.obj()
                if (raw.get("spec") or {}).get("clusterName") != self._settings.cluster:
                    continue
                group = group_of(kind, raw)
                if group is not None:
                    self._reports.say(group.name, group.problem)
                    found.append(group)
        return sorted(found, key=lambda each: (each.namespace, each.name))

    async def _offers(self) -> list[GroupOffer]:
        groups = await self._groups()
        return self._offers_of(groups, await self._machines())

    def _offers_of(self, groups: Sequence[MachineGroup], machines: Sequence[ManagedMachine]) -> list[GroupOffer]:
        with_machines = {(each.namespace, each.group) for each in machines}
        found = []
        for group in groups:
            if group.offer is None:
                continue
            if group.kind.plural == _POOLS and group.replicas and (group.namespace, group.name) not in with_machines:
                self._reports.say(
                    group.name, "its provider makes no Machine objects, so no machine of it can be removed"
                )
                continue
            found.append(group.offer)
        return found

    async def _machines(self) -> list[ManagedMachine]:
        kind = (await self._served()).get(_MACHINES)
        if kind is None:
            raise UserError(
                "the management cluster does not serve Machines of Cluster API",
                fix="install Cluster API there, or name the management cluster with --cloud-kubeconfig",
            )
        select = Select(labels=f"{_CLUSTER_LABEL}={self._settings.cluster}")
        return [machine_of(each.obj()) for each in (await self._api.list(kind, self._settings.namespace, select)).items]

    async def _served(self) -> dict[str, Kind]:
        """The kinds in the version that the server prefers; looked for again now and then, because of upgrades."""
        if not self._kinds or self._clock.seconds() - self._kinds_s >= _KNOWN_S:
            served = await answering(self._api)
            self._kinds = {
                each.kind.plural: each.kind
                for each in served
                if each.kind.group == _GROUP and each.kind.plural in {*_GROUPS, _MACHINES}
            }
            self._kinds_s = self._clock.seconds()
        return self._kinds

    async def _places_of(self, group: MachineGroup, machines: Sequence[ManagedMachine]) -> dict[Place, ManagedMachine]:
        """The machines of launches by their places; new machines take theirs."""
        own = [each for each in machines if (each.namespace, each.group) == (group.namespace, group.name)]
        taken = {each.place: each for each in own if each.place is not None}
        by_name = {each.name: each for each in own}
        kind = (await self._served())[_MACHINES]
        for name, place in new_places(group, own).items():
            body = {"metadata": {"annotations": {PLACE: place_text(place)}}}
            try:
                await self._api.patch(kind, group.namespace, name, Patch("merge", body))
            except NotFoundError:
                continue
            taken[place] = replace(by_name[name], place=place)
        return taken

    async def _instances_of(self, group: MachineGroup, machines: Sequence[ManagedMachine]) -> list[CloudInstance]:
        places = await self._places_of(group, machines)
        left = group.without_lost(places)
        if left != group:
            self._reports.say(group.name, "its replicas were lowered by others below the machines of Shoal")
            group = await self._write(left)

        def found(place: Place) -> tuple[str, InstanceState]:
            machine = places.get(place)
            if machine is None or not machine.provider_id:
                return "", "pending"
            return machine.provider_id, "stopping" if machine.is_deleting else "running"

        return instances_of(group.launches, found, lambda place: _id(group, place))

    # -- writing ------------------------------------------------------------------------------------------------------

    async def _launch(self, groups: Sequence[MachineGroup], request: InstanceRequest) -> MachineGroup:
        offers = self._reports.usable(self._offers_of(groups, await self._machines()), request.taints)
        named = {each.group for each in offers if each.offering == offering_of(request)}
        fitting = {each.id: each for each in groups if each.id in named}
        sizes = [GroupSize(each.id, each.name, each.replicas, each.most) for each in fitting.values()]
        group = fitting[group_with_room(request, sizes, "MachineDeployment or MachinePool")]
        return await self._write(group.with_launch(request.token, launch_of(request, self._clock.seconds())))

    async def _delete(self, group: MachineGroup, place: Place, machine: ManagedMachine) -> MachineGroup:
        kind = (await self._served())[_MACHINES]
        mark = {"metadata": {"annotations": {_DELETE: "true"}}}
        try:
            await self._api.patch(kind, machine.namespace, machine.name, Patch("merge", mark))
        except NotFoundError:
            # It ended by itself: Cluster API replaces it, and the replacement takes this place.
            return group
        return await self._write(group.without_place(place))

    async def _write(self, group: MachineGroup) -> MachineGroup:
        """Replicas and account together, at the version that was read."""
        body = {
            "metadata": {"resourceVersion": str(group.version), "annotations": {LAUNCHES: group.launches_text()}},
            "spec": {"replicas": group.replicas},
        }
        try:
            item = await self._api.patch(group.kind, group.namespace, group.name, Patch("merge", body))
        except ConflictError as error:
            raise ThrottledError(f"{group.kind.name} {group.name} was changed meanwhile", _AGAIN_S) from error
        return replace(group, version=item.version)


def _id(group: MachineGroup, place: Place) -> str:
    return f"{group.id}/{place_text(place)}"
