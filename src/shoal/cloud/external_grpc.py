"""Implements the port of clouds with the gRPC interface of Cluster Autoscaler's external providers, as its client.

A node group is one offering. Its machine is described by the provider's template of a Node, its price by the provider,
or by Shoal's table of instance types. The provider has no tokens, so an account of launches (external_grpc_account.py)
is written before each request: the target size then tells whether the request was carried out. Users and
other programs must not change the size of a group while machines of a launch are in it.

A launch of which the provider reports an instance as failed is taken back as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from shoal.api.taints import Taint
from shoal.autoscale.nodes.gpu_instances import type_named
from shoal.autoscale.nodes.instance_reading import instance_type_of
from shoal.autoscale.nodes.instance_types import ON_DEMAND, InstanceType, Offering
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
from shoal.cloud.port import (
    ANY_ZONE,
    CloudInstance,
    InstanceRequest,
    InstanceState,
    NoCapacityError,
    ThrottledError,
)
from shoal.cloud.protos import externalgrpc_pb2 as pb
from shoal.units.errors import ConflictError, TemporaryError, UserError, Where
from shoal.units.visible_text import visible

_BOOT_S: Final = 300.0
_KNOWN_S: Final = 300.0
_AGAIN_S: Final = 1.0
_UNCERTAIN_S: Final = 120.0
_MOST_PRICE: Final = 1e6
DecodeNode = Callable[[bytes], Mapping[str, Any]]
"""The object in the encoding of Kubernetes; raises ValueError."""


class _Group(NamedTuple):
    offer: GroupOffer
    most: int


class _Books:
    """The accounts of all groups, as the ConfigMap has them."""

    def __init__(self, api: Api, item: Item) -> None:
        self._api = api
        self._item = item
        self.accounts: Accounts = read_accounts((item.obj().get("data") or {}).get(KEY) or "")

    def group_of(self, token: str) -> str | None:
        return next((key for key, each in self.accounts.items() if token in each.launches), None)

    async def put(self, id_: str, account: GroupAccount) -> None:
        """At the version that was read."""
        if self.accounts.get(id_) == account:
            return
        accounts = self.accounts | {id_: account}
        body = {"metadata": {"resourceVersion": str(self._item.version)}, "data": {KEY: accounts_text(accounts)}}
        try:
            self._item = await self._api.patch(CONFIG_MAPS, NAMESPACE, NAME, Patch("merge", body))
        except ConflictError as error:
            raise ThrottledError(f"the ConfigMap {NAME} was changed meanwhile", _AGAIN_S) from error
        self.accounts = accounts


Instances = Mapping[str, pb.Instance]
"""By id."""


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
        self._uncertain_s: dict[str, float] = {}
        """Until when a request without an answer may still be carried out, by group."""
        self._reports = GroupReports()

    async def instance_types(self, pool: NodePool) -> tuple[InstanceType, ...]:
        return types_of(await self._usable({*pool.taints, *pool.startup_taints}), pool)

    async def create(self, request: InstanceRequest) -> tuple[CloudInstance, ...]:
        books = await self._read()
        id_ = books.group_of(request.token)
        try:
            if id_ is None:
                id_, account = await self._chosen(books, request)
                await books.put(id_, account)
            await self._increase(books, id_)
            instances = await self._seated(books, id_)
        except RefusedByProviderError as error:
            if id_ is not None and request.token in books.accounts[id_].launches:
                await self._take_back(books, id_, request.token)
            raise NoCapacityError(str(error)) from error
        failed = _failure(books.accounts[id_], instances, request.token)
        if failed:
            await self._take_back(books, id_, request.token)
            raise NoCapacityError(failed)
        listed = _listed(books.accounts[id_], instances)
        return tuple(each for each in listed if each.id.rpartition("/")[0] == request.token and each.provider_id)

    async def instances(self) -> tuple[CloudInstance, ...]:
        await self._calls.refresh()
        books = await self._read()
        found: list[CloudInstance] = []
        for id_ in list(books.accounts):
            try:
                instances = await self._seated(books, id_)
                await self._finish(books, id_, instances)
            except RefusedByProviderError as error:
                # What it has is not known: its machines must not count as gone.
                self._reports.say(id_, str(error))
                found += _listed(books.accounts[id_], None)
                continue
            found += _listed(books.accounts[id_], instances)
        return tuple(sorted(found, key=lambda each: each.id))

    async def delete(self, ids: Sequence[str]) -> None:
        """Decided in the account first, so that no other machine is requested in their place."""
        wanted = frozenset(ids)
        books = await self._read()
        for id_, account in list(books.accounts.items()):
            places = [
                (token, number)
                for token, launch in account.launches.items()
                for number in launch.places
                if place_text((token, number)) in wanted
            ]
            if places:
                await self._end(books, id_, places)

    def boot_s(self, _instance_type: str, /) -> float:
        return _BOOT_S

    # -- groups -------------------------------------------------------------------------------------------------------

    async def _usable(self, taints: Collection[Taint]) -> list[GroupOffer]:
        return self._reports.usable((each.offer for each in await self._known_groups()), taints)

    async def _known_groups(self) -> list[_Group]:
        """Read again now and then, because prices and groups change."""
        if self._clock.seconds() - self._groups_s >= _KNOWN_S:
            found = []
            for raw in await self._calls.groups():
                try:
                    found.append(_Group(await self._offer(raw), int(raw.maxSize)))
                except (UserError, RefusedByProviderError) as error:
                    self._reports.say(raw.id, str(error))
            self._groups, self._groups_s = found, self._clock.seconds()
        return self._groups

    async def _offer(self, raw: pb.NodeGroup) -> GroupOffer:
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
        zone, kind = labels.get(ZONE_LABEL) or ANY_ZONE, labels.get(CAPACITY_TYPE_LABEL) or ON_DEMAND
        known = type_named(name, (zone,))
        one = _type(name, labels, status, where) if status.get("capacity") else known
        if one is None:
            fix = "let the provider answer NodeGroupTemplateNodeInfo"
            raise UserError("it is not known what its machines have", where=where, fix=fix)
        price = await self._calls.hourly_price(labels, self._clock.seconds())
        if price is None and known is not None:
            price = next((each.price for each in known.offerings if each.capacity_type == kind), None)
        if price is None or not 0 <= price < _MOST_PRICE:
            fix = f"let the provider answer PricingNodePrice, or label its template with a known {INSTANCE_TYPE_LABEL}"
            raise UserError("the price of its machines is not known", where=where, fix=fix)
        taints = (node.get("spec") or {}).get("taints") or []
        try:
            read = msgspec.convert([{"value": "", **each} for each in taints], tuple[Taint, ...])
        except (msgspec.ValidationError, TypeError) as error:
            raise UserError(f"a taint of the provider's template is wrong: {error}", where=where) from error
        return GroupOffer(str(raw.id), replace(one, offerings=(Offering(zone, kind, price),)), read)

    async def _chosen(self, books: _Books, request: InstanceRequest) -> tuple[str, GroupAccount]:
        """The group for a new launch, and its account with the launch."""
        most = {each.offer.group: each.most for each in await self._known_groups()}
        fitting = [each.group for each in await self._usable(request.taints) if each.offering == offering_of(request)]
        targets = {group: await self._calls.target_size(group) for group in fitting}
        accounts = {group: books.accounts.get(group, GroupAccount()) for group in fitting}
        sizes = [GroupSize(each, each, max(targets[each], accounts[each].wanted), most[each]) for each in fitting]
        group = group_with_room(request, sizes, "node group of the provider")
        instances = [str(each.id) for each in await self._calls.instances(group)]
        launch = launch_of(request, self._clock.seconds())
        return group, accounts[group].with_launch(request.token, launch, instances, targets[group])

    # -- machines -----------------------------------------------------------------------------------------------------

    async def _increase(self, books: _Books, id_: str) -> None:
        """Requests what is missing of the target. A request without an answer is not repeated at once: it may still be
        carried out.
        """
        account = books.accounts[id_]
        missing = account.expected - await self._calls.target_size(id_)
        if missing <= 0:
            await books.put(id_, replace(account, asked=0))
            return
        now_s = self._clock.seconds()
        if account.asked and now_s < self._uncertain_s.get(id_, now_s):
            raise ThrottledError(f"a request for {account.asked} machines of {id_} has no answer yet", _UNCERTAIN_S / 4)
        await books.put(id_, account.asking(missing, now_s + self.launch_limit_s))
        try:
            await self._calls.increase(id_, missing)
        except TemporaryError:
            self._uncertain_s[id_] = now_s + _UNCERTAIN_S
            raise
        except RefusedByProviderError:
            await books.put(id_, replace(books.accounts[id_], asked=0))
            raise
        await books.put(id_, replace(books.accounts[id_], asked=0))

    async def _seated(self, books: _Books, id_: str) -> Instances:
        """The instances of the group; new ones have taken their places."""
        instances = {str(each.id): each for each in await self._calls.instances(id_)}
        await books.put(id_, books.accounts[id_].with_instances(list(instances)))
        return instances

    async def _take_back(self, books: _Books, id_: str, token: str) -> None:
        """A launch that is not granted as a whole."""
        await self._end(books, id_, [(token, number) for number in books.accounts[id_].launches[token].places])

    async def _end(self, books: _Books, id_: str, places: Sequence[Place]) -> None:
        try:
            await self._seated(books, id_)
            await books.put(id_, books.accounts[id_].without(places))
            await self._finish(books, id_, await self._seated(books, id_))
        except RefusedByProviderError as error:
            self._reports.say(id_, str(error))
            await books.put(id_, books.accounts[id_].without(_left(books.accounts[id_], places)))

    async def _finish(self, books: _Books, id_: str, instances: Instances) -> None:
        """Deletes what the account gave up. What was accepted is not requested again: a provider that lists an instance
        for a while after that may lower its target for each request.
        """
        account = books.accounts[id_]
        gone = {
            name for name, each in instances.items() if each.status.instanceState == pb.InstanceStatus.instanceDeleting
        }
        asked = [name for name in account.ending if name in instances and name not in gone]
        if asked:
            try:
                await self._calls.delete(id_, asked)
            except RefusedByProviderError as error:
                self._reports.say(id_, str(error))
                asked = []
        accepted = {*asked, *(name for name in account.ending if name in gone)}
        account = replace(
            account,
            ending=tuple(name for name in account.ending if name not in accepted),
            deleted=tuple(dict.fromkeys((*account.deleted, *sorted(accepted)))),
        )
        await books.put(id_, account)
        if account.unmade or account.doubted or (account.asked and not account.launches):
            await self._lower(books, id_, len(instances.keys() - gone - {*account.deleted}))

    async def _lower(self, books: _Books, id_: str, present: int) -> None:
        """The target by machines that were given up, or requested twice, and have no instance."""
        account = books.accounts[id_]
        target = await self._calls.target_size(id_)
        needed = max(account.wanted + len(account.ending), present)
        excess = min(account.unmade + account.doubted, target - needed)
        if excess > 0:
            try:
                await self._calls.decrease(id_, excess)
            except RefusedByProviderError as error:
                self._reports.say(id_, str(error))
                return
        await books.put(id_, account.lowered(max(excess, 0), self._clock.seconds()))

    # -- the account --------------------------------------------------------------------------------------------------

    async def _read(self) -> _Books:
        try:
            return _Books(self._api, await self._api.get(CONFIG_MAPS, NAMESPACE, NAME))
        except NotFoundError as error:
            raise UserError(
                f"the ConfigMap {NAME} for the account of launches is missing",
                fix=f"kubectl create configmap {NAME} --namespace {NAMESPACE}",
            ) from error


def _type(name: str, labels: Mapping[str, str], status: Mapping[str, Any], where: Where) -> InstanceType:
    """As the provider's template describes it."""
    one = instance_type_of({"name": name, "capacity": status["capacity"], "labels": labels}, where)
    kept = instance_type_of({"name": name, "capacity": status.get("allocatable") or {}}, where).capacity
    overhead = {key: amount - kept.get(key, amount) for key, amount in one.capacity.items()}
    return replace(one, overhead={key: amount for key, amount in overhead.items() if amount > 0})


def _left(account: GroupAccount, places: Sequence[Place]) -> list[Place]:
    return [
        (token, number)
        for token, number in places
        if token in account.launches and number in account.launches[token].places
    ]


def _listed(account: GroupAccount, instances: Instances | None) -> list[CloudInstance]:
    """`instances`: None if the provider does not tell them."""
    by_place = account.by_place()

    def found(place: Place) -> tuple[str, InstanceState]:
        name = by_place.get(place, "")
        if not name or instances is None:
            return name, "pending"
        match instances[name].status.instanceState:
            case pb.InstanceStatus.instanceRunning:
                return name, "running"
            case pb.InstanceStatus.instanceDeleting:
                return name, "stopping"
            case _:
                return name, "pending"

    return instances_of(account.launches, found, place_text)


def _failure(account: GroupAccount, instances: Instances, token: str) -> str:
    """What the provider says of an instance of the launch that cannot be had; empty if there is none."""
    for (owner, _), name in sorted(account.by_place().items()):
        error = instances[name].status.errorInfo
        if owner == token and error.errorCode:
            words = visible(f"{error.errorCode}: {error.errorMessage}")[:500]
            return f"the provider could not create {visible(name)}: {words}"
    return ""
