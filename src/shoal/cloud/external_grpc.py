"""Implements the port of clouds with the gRPC interface of Cluster Autoscaler's external providers, as its client.

A node group is one offering. Its machine is described by the provider's template of a Node, its price by the provider,
or by Shoal's table of instance types. The provider has no tokens, so an account of launches (external_grpc_account.py)
is written before each request: the target size then tells whether the request was carried out. Users and
other programs must not change the size of a group while machines of a launch are in it.

A launch of which the provider reports an instance as failed is taken back as a whole.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from shoal.api.taints import Taint
from shoal.autoscale.nodes.gpu_instances import type_named
from shoal.autoscale.nodes.instance_reading import instance_type_of
from shoal.autoscale.nodes.instance_types import ON_DEMAND, InstanceType
from shoal.autoscale.nodes.pools import NodePool
from shoal.autoscale.requirements.labels import CAPACITY_TYPE_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL
from shoal.client.clock import Clock
from shoal.client.item import Item
from shoal.client.kind import CONFIG_MAPS
from shoal.client.port import Api, Patch
from shoal.client.refusals import NotFoundError
from shoal.cloud.external_grpc_account import (
    KEY,
    NAME,
    NAMESPACE,
    Accounts,
    GroupAccount,
    accounts_text,
    read_accounts,
)
from shoal.cloud.external_grpc_calls import ExternalGrpcCalls, RefusedByProviderError
from shoal.cloud.launch_account import Launch, Place, place_text
from shoal.cloud.port import CloudInstance, InstanceRequest, NoCapacityError, ThrottledError
from shoal.cloud.protos import externalgrpc_pb2 as pb
from shoal.units.errors import ConflictError, UserError, Where

_log = logging.getLogger("shoal.nodes")
_BOOT_S: Final = 300.0
_KNOWN_S: Final = 300.0
_AGAIN_S: Final = 1.0
_ANY_ZONE: Final = "default"
DecodeNode = Callable[[bytes], Mapping[str, Any]]
"""The object in the encoding of Kubernetes; raises ValueError."""


class _Group(NamedTuple):
    id: str
    most: int
    type: InstanceType
    taints: tuple[Taint, ...]

    @property
    def offering(self) -> tuple[str, str, str]:
        (one,) = self.type.offerings
        return self.type.name, one.zone, one.capacity_type


class ExternalGrpcCloud:
    def __init__(self, calls: ExternalGrpcCalls, api: Api, clock: Clock, decode_node: DecodeNode) -> None:
        self.name = "external-grpc"
        # Cluster Autoscaler's default of --max-node-provision-time.
        self.launch_limit_s = 900.0
        self._calls = calls
        self._api = api
        self._clock = clock
        self._decode_node = decode_node
        self._groups: list[_Group] = []
        self._groups_s = float("-inf")
        self._reported: dict[str, str] = {}

    async def instance_types(self, pool: NodePool) -> tuple[InstanceType, ...]:
        zones = pool.requirements.get(ZONE_LABEL)
        tolerated = {*pool.taints, *pool.startup_taints}
        found: dict[str, InstanceType] = {}
        for group in await self._known_groups():
            (offering,) = group.type.offerings
            if not zones.has(offering.zone) or not tolerated.issuperset(group.taints):
                continue
            known = found.get(group.type.name)
            if known is None:
                found[group.type.name] = group.type
            elif known.capacity == group.type.capacity:
                others = tuple(each for each in known.offerings if each != offering)
                found[group.type.name] = replace(known, offerings=(*others, offering))
            else:
                self._report(group.id, f"its machines differ from others of type {group.type.name}: it is left out")
        return tuple(found.values())

    async def create(self, request: InstanceRequest) -> tuple[CloudInstance, ...]:
        item, accounts = await self._accounts()
        id_ = next((key for key, each in accounts.items() if request.token in each.launches), None)
        if id_ is None:
            id_, account = await self._chosen(accounts, request)
            item = await self._write(item, accounts | {id_: account})
            accounts[id_] = account
        account = accounts[id_]
        missing = account.wanted - await self._calls.target_size(id_)
        if missing > 0:
            try:
                await self._calls.increase(id_, missing)
            except RefusedByProviderError as error:
                await self._take_back(item, accounts, id_, request.token)
                raise NoCapacityError(str(error)) from error
        item, account, instances = await self._seated(item, accounts, id_)
        failed = self._failure(account, instances, request.token)
        if failed:
            await self._take_back(item, accounts, id_, request.token)
            raise NoCapacityError(failed)
        listed = await self._listed(id_, account, instances)
        return tuple(each for each in listed if each.id.rpartition("/")[0] == request.token and each.provider_id)

    async def instances(self) -> tuple[CloudInstance, ...]:
        await self._calls.refresh()
        item, accounts = await self._accounts()
        found: list[CloudInstance] = []
        for id_ in list(accounts):
            item, account, instances = await self._seated(item, accounts, id_)
            await self._finish(id_, account, instances)
            found += await self._listed(id_, account, instances)
        return tuple(sorted(found, key=lambda each: each.id))

    async def delete(self, ids: Sequence[str]) -> None:
        """Decided in the account first, so that no other machine is requested in their place."""
        wanted = frozenset(ids)
        item, accounts = await self._accounts()
        for id_ in list(accounts):
            item, account, _ = await self._seated(item, accounts, id_)
            places = [
                (token, number)
                for token, launch in account.launches.items()
                for number in launch.places
                if place_text((token, number)) in wanted
            ]
            if places:
                item = await self._end(item, accounts, id_, places)

    def boot_s(self, _instance_type: str, /) -> float:
        return _BOOT_S

    # -- groups -------------------------------------------------------------------------------------------------------

    async def _known_groups(self) -> list[_Group]:
        """Read again now and then, because prices and groups change."""
        if self._clock.seconds() - self._groups_s >= _KNOWN_S:
            found = []
            for raw in await self._calls.groups():
                try:
                    found.append(await self._group(raw))
                except UserError as error:
                    self._report(raw.id, str(error))
            self._groups, self._groups_s = found, self._clock.seconds()
        return self._groups

    async def _group(self, raw: pb.NodeGroup) -> _Group:
        """Raises UserError if it is not known what its machines are, or what they cost."""
        where = Where(obj=f"node group {raw.id}")
        encoded = await self._calls.template(raw.id)
        try:
            node = {} if encoded is None else self._decode_node(encoded)
        except ValueError as error:
            raise UserError(f"the provider's template is no Node: {error}", where=where) from error
        metadata, status = node.get("metadata") or {}, node.get("status") or {}
        labels: dict[str, str] = dict(metadata.get("labels") or {})
        name = labels.get(INSTANCE_TYPE_LABEL) or raw.id
        zone, kind = labels.get(ZONE_LABEL) or _ANY_ZONE, labels.get(CAPACITY_TYPE_LABEL) or ON_DEMAND
        known = type_named(name, (zone,))
        if not status.get("capacity") and known is None:
            fix = "let the provider answer NodeGroupTemplateNodeInfo"
            raise UserError("it is not known what its machines have", where=where, fix=fix)
        price = await self._calls.hourly_price(labels, self._clock.seconds())
        if price is None and known is not None:
            price = next((each.price for each in known.offerings if each.capacity_type == kind), None)
        if price is None:
            fix = f"let the provider answer PricingNodePrice, or label its template with a known {INSTANCE_TYPE_LABEL}"
            raise UserError("the price of its machines is not known", where=where, fix=fix)
        offering = {"zone": zone, "capacityType": kind, "price": price}
        if status.get("capacity"):
            one = instance_type_of(
                {"name": name, "capacity": status["capacity"], "labels": labels, "offerings": [offering]}, where
            )
            kept = instance_type_of({"name": name, "capacity": status.get("allocatable") or {}}, where).capacity
            overhead = {
                key: amount - kept[key] for key, amount in one.capacity.items() if kept.get(key, amount) < amount
            }
            one = replace(one, overhead=overhead)
        else:
            assert known is not None  # noqa: S101 - see above
            one = replace(known, offerings=instance_type_of({"name": name, "offerings": [offering]}, where).offerings)
        taints = (node.get("spec") or {}).get("taints") or ()
        return _Group(
            str(raw.id),
            int(raw.maxSize),
            one,
            tuple(Taint(each["key"], each["effect"], str(each.get("value") or "")) for each in taints),
        )

    async def _chosen(self, accounts: Accounts, request: InstanceRequest) -> tuple[str, GroupAccount]:
        """The group for a new launch, and its account with the launch."""
        offering = request.instance_type, request.zone, request.capacity_type
        fitting = [each for each in await self._known_groups() if each.offering == offering]
        full: list[str] = []
        for group in fitting:
            target = await self._calls.target_size(group.id)
            account = accounts.get(group.id, GroupAccount())
            if max(target, account.wanted) + request.count > group.most:
                full.append(f"{group.id} has {target} of at most {group.most}")
                continue
            instances = [str(each.id) for each in await self._calls.instances(group.id)]
            launch = Launch(request.count, self._clock.seconds(), dict(request.tags))
            return group.id, account.with_launch(request.token, launch, instances, target)
        words = "/".join(offering)
        if not fitting:
            raise NoCapacityError(f"no node group of the provider offers {words}")
        raise NoCapacityError(f"no room for {request.count} x {words}: {', '.join(full)}")

    # -- machines -----------------------------------------------------------------------------------------------------

    async def _seated(
        self, item: Item, accounts: Accounts, id_: str
    ) -> tuple[Item, GroupAccount, dict[str, pb.Instance]]:
        """The account once new instances have taken their places, and the instances by id."""
        instances = {str(each.id): each for each in await self._calls.instances(id_)}
        account = accounts[id_].with_instances(list(instances))
        if account != accounts[id_]:
            item = await self._write(item, accounts | {id_: account})
            accounts[id_] = account
        return item, account, instances

    async def _listed(
        self, id_: str, account: GroupAccount, instances: Mapping[str, pb.Instance]
    ) -> list[CloudInstance]:
        group = next((each for each in await self._known_groups() if each.id == id_), None)
        instance_type, zone, capacity_type = group.offering if group is not None else (id_, _ANY_ZONE, ON_DEMAND)
        by_place = account.by_place()
        found = []
        for token, launch in account.launches.items():
            for number in launch.places:
                name = by_place.get((token, number), "")
                is_running = bool(name) and instances[name].status.instanceState == pb.InstanceStatus.instanceRunning
                found.append(
                    CloudInstance(
                        id=place_text((token, number)),
                        provider_id=name,
                        instance_type=instance_type,
                        zone=zone,
                        capacity_type=capacity_type,
                        state="running" if is_running else "pending",
                        created_s=launch.created_s,
                        tags=launch.tags,
                    )
                )
        return found

    def _failure(self, account: GroupAccount, instances: Mapping[str, pb.Instance], token: str) -> str:
        """What the provider says of an instance of the launch that cannot be had; empty if there is none."""
        for (owner, _), name in sorted(account.by_place().items()):
            error = instances[name].status.errorInfo
            if owner == token and error.errorCode:
                return f"the provider could not create {name}: {error.errorCode}: {error.errorMessage[:500]}"
        return ""

    async def _take_back(self, item: Item, accounts: Accounts, id_: str, token: str) -> None:
        """A launch that is not granted as a whole."""
        places = [(token, number) for number in accounts[id_].launches[token].places]
        await self._end(item, accounts, id_, places)

    async def _end(self, item: Item, accounts: Accounts, id_: str, places: Sequence[Place]) -> Item:
        account = accounts[id_].without(places)
        item = await self._write(item, accounts | {id_: account})
        accounts[id_] = account
        await self._finish(id_, account, {str(each.id): each for each in await self._calls.instances(id_)})
        return item

    async def _finish(self, id_: str, account: GroupAccount, instances: Mapping[str, pb.Instance]) -> None:
        """Deletes what the account no longer has; again, if the process was killed or the answer was lost."""
        deleting = pb.InstanceStatus.instanceDeleting
        present = [name for name, each in instances.items() if each.status.instanceState != deleting]
        ending = [name for name in account.ending if name in present]
        if ending:
            await self._calls.delete(id_, ending)
        # A machine that is deleted counts no more in the target.
        unmade = await self._calls.target_size(id_) - max(account.wanted, len(present) - len(ending))
        if unmade > 0:
            await self._calls.decrease(id_, unmade)

    # -- the account --------------------------------------------------------------------------------------------------

    async def _accounts(self) -> tuple[Item, Accounts]:
        try:
            item = await self._api.get(CONFIG_MAPS, NAMESPACE, NAME)
        except NotFoundError as error:
            raise UserError(
                f"the ConfigMap {NAME} for the account of launches is missing",
                fix=f"kubectl create configmap {NAME} --namespace {NAMESPACE}",
            ) from error
        return item, read_accounts((item.obj().get("data") or {}).get(KEY) or "")

    async def _write(self, item: Item, accounts: Accounts) -> Item:
        """At the version that was read."""
        body = {"metadata": {"resourceVersion": str(item.version)}, "data": {KEY: accounts_text(accounts)}}
        try:
            return await self._api.patch(CONFIG_MAPS, NAMESPACE, NAME, Patch("merge", body))
        except ConflictError as error:
            raise ThrottledError(f"the ConfigMap {NAME} was changed meanwhile", _AGAIN_S) from error

    def _report(self, name: str, words: str) -> None:
        """Once for each state."""
        if self._reported.get(name) != words:
            self._reported[name] = words
            _log.warning("node group %s: %s", name, words)
