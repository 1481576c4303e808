"""Writes the allocation of devices to claims, and the pods that a claim is reserved for.

It needs few writes: the finalizer, which only the main resource accepts, and then allocation and reservation together;
for an allocated claim, the reservation alone.
"""

from __future__ import annotations

import logging
import random
import uuid
from collections.abc import Callable

import msgspec

from shoal.api.slices import Reach
from shoal.api.wire import enc_hook
from shoal.client.context import Context
from shoal.client.item import Key, Obj
from shoal.client.kind import DEVICE_CLASSES, RESOURCE_CLAIMS, Kind
from shoal.client.refusals import StaleError
from shoal.controllers.bind_preparation.users import User
from shoal.engine.dra.devices import Binding
from shoal.engine.dra.requests import Pick, Picks
from shoal.units.errors import ConflictError, ShoalError
from shoal.units.quantity import Quantity

_log = logging.getLogger("shoal.controllers")
_TRIES = 16
FINALIZER = "resource.kubernetes.io/delete-protection"
Asks = dict[str, Obj]
"""The requests of a claim, by each name that a result may have."""
Reached = Callable[[Picks], list[Reach]]
"""Returns the nodes on which devices can be used."""
Bindings = Callable[[str], Binding | None]
"""Returns the binding conditions of a device."""


class ClaimWriter:
    def __init__(
        self,
        context: Context,
        reach: Reached,
        claims: Kind = RESOURCE_CLAIMS,
        classes: Kind = DEVICE_CLASSES,
        binding: Bindings = lambda _: None,
    ) -> None:
        """`claims` and `classes`: these kinds in the served version."""
        self._api = context.api
        self._clock = context.clock
        self._draw: random.Random = context.draw
        self._kind = claims
        self._classes = context.informers.of(classes)
        self._reach = reach
        self._binding = binding

    async def reserve(self, key: Key, user: User, picks: Picks, node: str) -> None:
        """Write the allocation, if there is none yet, and add the pod to those that the claim is reserved for.

        An allocation of other devices that is reserved for this pod only is removed: it belongs to an attempt that did
        not end in a binding. An allocation that other pods may use means that the decision was based on outdated facts.
        """
        for _ in range(_TRIES):
            try:
                await self._reserve(key, user, picks, node)
            except StaleError:
                # Many pods of one claim may be bound at the same time; the decision stays valid.
                continue
            return
        raise ConflictError(f'resourceclaim "{key[0]}/{key[1]}" is written by others all the time')

    async def _reserve(self, key: Key, user: User, picks: Picks, node: str) -> None:
        obj = (await self._api.get(self._kind, *key)).obj()
        found = _allocated(obj)
        if found is not None and picks and found != _devices(picks):
            if not _is_alone(obj, user):
                raise ConflictError(f'resourceclaim "{key[0]}/{key[1]}" was allocated otherwise meanwhile')
            for field in ("allocation", "reservedFor", "devices"):
                obj["status"].pop(field, None)
            obj = (await self._api.update(self._kind, obj, "status")).obj()
        await self._write(obj, user, picks, node)

    async def release(self, key: Key, user: User) -> None:
        """Remove the pod from a claim, and the allocation if no other pod uses it, as far as this can be written. The
        next decision starts from the result.
        """
        try:
            obj = (await self._api.get(self._kind, *key)).obj()
            status = obj.get("status") or {}
            users = status.get("reservedFor") or []
            kept = [one for one in users if one["uid"] != user.uid]
            if len(kept) == len(users):
                return
            status["reservedFor"] = kept
            if not kept and FINALIZER in (obj["metadata"].get("finalizers") or ()):
                for field in ("allocation", "reservedFor", "devices"):
                    status.pop(field, None)
            await self._api.update(self._kind, obj, "status")
        except ShoalError as error:
            _log.info("resourceclaim %s/%s keeps its reservation: %s", *key, error)

    async def free(self, key: Key, user: User) -> None:
        """Remove an allocation that is for this pod alone, which is on no node: it was for a node that the pod did not
        get, and it restricts the pod to that node.
        """
        obj = (await self._api.get(self._kind, *key)).obj()
        status = obj.get("status") or {}
        if "allocation" not in status or not _is_alone(obj, user):
            return
        owners = obj["metadata"].get("ownerReferences") or ()
        if not status.get("reservedFor") and all(one["uid"] != user.uid for one in owners):
            # Reserved for no pod: the allocation may be intended.
            return
        for field in ("allocation", "reservedFor", "devices"):
            status.pop(field, None)
        await self._api.update(self._kind, obj, "status")

    async def _write(self, obj: Obj, user: User, picks: Picks, node: str) -> None:
        status = obj.setdefault("status", {})
        if "allocation" not in status:
            if not picks and obj["spec"].get("devices", {}).get("requests"):
                name = obj["metadata"]["name"]
                raise ConflictError(f'resourceclaim "{user.namespace}/{name}" is not allocated any more')
            finalizers = obj["metadata"].setdefault("finalizers", [])
            if FINALIZER not in finalizers:
                finalizers.append(FINALIZER)
                obj = (await self._api.update(self._kind, obj)).obj()
                status = obj.setdefault("status", {})
            status["allocation"] = self._allocation(obj, picks, node)
        users = status.setdefault("reservedFor", [])
        if any(one["uid"] == user.uid for one in users):
            return
        users.append({"resource": "pods", "name": user.name, "uid": user.uid})
        await self._api.update(self._kind, obj, "status")

    def _allocation(self, claim: Obj, picks: Picks, node: str) -> Obj:
        asks = _asks(claim)
        config = self._config(claim, {name: ask for name, ask in asks.items() if any(p.request == name for p in picks)})
        results = [self._result(pick, asks.get(pick.request, {})) for pick in picks]
        devices: Obj = {"results": results} | ({"config": config} if config else {})
        found: Obj = {"devices": devices, "allocationTimestamp": self._clock.text()}
        is_tied = any(binding.to_node for pick in picks if (binding := self._binding(pick.device)) is not None)
        selector = _selector(self._reach(picks), node, is_tied=is_tied)
        return found | ({"nodeSelector": selector} if selector is not None else {})

    def _config(self, claim: Obj, asks: Asks) -> list[Obj]:
        """The configuration of the classes first, then of the claim, in the order in which drivers read it."""
        found: list[Obj] = []
        for name, ask in asks.items():
            item = self._classes.get("", ask["deviceClassName"])
            configs = item.obj()["spec"].get("config", ()) if item is not None else ()
            found += [{"source": "FromClass", "requests": [name], **config} for config in configs]
        own = claim["spec"].get("devices", {}).get("config", ())
        return found + [{"source": "FromClaim", **config} for config in own]

    def _result(self, pick: Pick, ask: Obj) -> Obj:
        driver, pool, device = _address(pick.device)
        found: Obj = {"request": pick.request, "driver": driver, "pool": pool, "device": device}
        if pick.admin:
            found["adminAccess"] = True
        if ask.get("tolerations"):
            found["tolerations"] = ask["tolerations"]
        if pick.share:
            found["shareID"] = str(uuid.UUID(int=self._draw.getrandbits(128), version=4))
            found["consumedCapacity"] = {name: str(Quantity(nano)) for name, nano in pick.share}
        binding = self._binding(pick.device)
        if binding is not None and binding.wanted:
            found["bindingConditions"] = list(binding.wanted)
        if binding is not None and binding.failing:
            found["bindingFailureConditions"] = list(binding.failing)
        return found


def _asks(claim: Obj) -> Asks:
    """The requests by the names in results; older versions of the API have the fields of an exact request in the
    request itself.
    """
    found: Asks = {}
    for request in claim["spec"].get("devices", {}).get("requests", ()):
        name = request["name"]
        options = request.get("firstAvailable")
        if options:
            found |= {f"{name}/{one['name']}": one for one in options}
        else:
            found[name] = request.get("exactly") or request
    return found


_Devices = list[tuple[str, str]]


def _allocated(claim: Obj) -> _Devices | None:
    """Request and device of each result of an allocated claim."""
    allocation = (claim.get("status") or {}).get("allocation")
    if allocation is None:
        return None
    results = (allocation.get("devices") or {}).get("results") or ()
    return sorted((one["request"], "/".join((one["driver"], one["pool"], one["device"]))) for one in results)


def _devices(picks: Picks) -> _Devices:
    return sorted((pick.request, pick.device) for pick in picks)


def _is_alone(claim: Obj, user: User) -> bool:
    return all(one["uid"] == user.uid for one in claim["status"].get("reservedFor") or ())


def _address(device: str) -> tuple[str, str, str]:
    """Driver, pool and name; the name of a pool may contain slashes."""
    pool, _, name = device.rpartition("/")
    driver, _, pool = pool.partition("/")
    return driver, pool, name


def _selector(reaches: list[Reach], node: str, *, is_tied: bool) -> Obj | None:
    """The node selector of all devices together; None: every node."""
    if is_tied or any(reach.node_name for reach in reaches):
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        return {"nodeSelectorTerms": [{"matchFields": [field]}]}
    term: Obj = {}
    for reach in reaches:
        for one in reach.node_selector.node_selector_terms if reach.node_selector is not None else ():
            plain: Obj = msgspec.json.decode(msgspec.json.encode(one, enc_hook=enc_hook))
            for name, requirements in plain.items():
                term.setdefault(name, []).extend(requirements)
    return {"nodeSelectorTerms": [term]} if term else None
