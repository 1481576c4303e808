"""The requests of an installation: each is repeated while the server is busy; objects are found by their address."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from shoal.client.clock import Clock
from shoal.client.item import Item
from shoal.client.kind import Kind
from shoal.client.port import Api, Deletion, Patch, Select
from shoal.client.refusals import ForbiddenError, NotFoundError
from shoal.install.kinds import KINDS, InstalledKind, installed_kind
from shoal.install.manifest import Address, address_of
from shoal.units.errors import ConflictError, TemporaryError

Obj = dict[str, Any]
T = TypeVar("T")
_TRIES = 6
_WAIT_S = 1.0
_SERVED_TRIES = 30
"""A kind is served some seconds after its definition is established."""


def request_kind(kind: InstalledKind) -> Kind:
    return Kind(kind.group, kind.version, kind.plural, kind.name, is_namespaced=kind.is_namespaced)


class ClusterWriter:
    def __init__(self, api: Api, clock: Clock) -> None:
        self.api = api
        self.clock = clock

    async def apply(self, obj: Obj) -> Item:
        """Server-side apply. Fields of other managers are taken over: the objects belong to the release."""
        address = address_of(obj)
        kind = _kind(address)
        patch = Patch("apply", obj, force=True)
        return await self.patiently(
            lambda: self.api.patch(kind, address.namespace, address.name, patch),
            waits_for_kind=kind.group == "nvidia.com",
        )

    async def find(self, address: Address) -> Obj | None:
        kind = _kind(address)
        try:
            return (await self.patiently(lambda: self.api.get(kind, address.namespace, address.name))).obj()
        except NotFoundError:
            return None

    async def delete(self, address: Address, uid: str = "") -> bool:
        """True if it existed."""
        kind = _kind(address)
        how = Deletion(policy="Background", uid=uid)
        try:
            await self.patiently(lambda: self.api.delete(kind, address.namespace, address.name, how))
        except NotFoundError:
            return False
        return True

    async def labelled(self, selector: str) -> list[tuple[Address, Obj]]:
        """All objects of the kinds of installations with these labels; kinds that are not served have none."""
        found: list[tuple[Address, Obj]] = []
        for kind in KINDS:
            for obj in await self.all(request_kind(kind), selector):
                meta = obj["metadata"]
                address = Address(kind.api_version, kind.name, meta.get("namespace", ""), meta["name"])
                found.append((address, obj))
        return found

    async def all(self, kind: Kind, selector: str = "", namespace: str = "") -> list[Obj]:
        """Empty if the kind is not served."""
        try:
            listed = await self.patiently(lambda: self.api.list(kind, namespace, Select(labels=selector)))
        except NotFoundError:
            return []
        return [{"apiVersion": kind.api_version, "kind": kind.name, **item.obj()} for item in listed.items]

    async def labels(self, addresses: Iterable[Address]) -> dict[Address, dict[str, str]]:
        """Of those that exist and may be read."""
        found: dict[Address, dict[str, str]] = {}
        for address in addresses:
            try:
                obj = await self.find(address)
            except ForbiddenError:
                continue
            if obj is not None:
                found[address] = dict(obj["metadata"].get("labels") or {})
        return found

    async def patiently(self, call: Callable[[], Awaitable[T]], *, waits_for_kind: bool = False) -> T:
        """Repeats the call after a conflict, or while the server is busy. `waits_for_kind`: also while it does not
        serve the kind yet."""
        tries = _SERVED_TRIES if waits_for_kind else _TRIES
        for _ in range(tries - 1):
            try:
                return await call()
            except ConflictError:
                continue
            except TemporaryError as error:
                await self.clock.sleep(max(error.delay_s, _WAIT_S))
            except NotFoundError:
                if not waits_for_kind:
                    raise
                await self.clock.sleep(_WAIT_S)
        return await call()


def _kind(address: Address) -> Kind:
    return request_kind(installed_kind(address.api_version, address.kind))
