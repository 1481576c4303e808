"""Publishes the devices of a node as ResourceSlices.

Guarantees: only slices of this driver on this node are changed or deleted; nothing is written while they are as they
should be, also after a restart of the agent; each change has a higher generation, so schedulers never mix old and new
slices. A pass that fails midway is completed by the next one. The slices belong to the Node and are deleted with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.client.item import Obj
from shoal.client.kind import NODES, RESOURCE_SLICES
from shoal.client.port import Api, Select
from shoal.client.refusals import NotFoundError
from shoal.devices.claimable_devices import CLAIM_DRIVER
from shoal.devices.resource_slices import Published, slice_specs
from shoal.units.errors import UserError

_LONGEST_PREFIX = 200
"""The server adds a suffix, and a name has at most 253 characters."""


class SlicePublisher:
    def __init__(self, api: Api, node: str) -> None:
        self._api, self._node = api, node

    async def publish(self, content: Published) -> bool:
        """Whether something has changed. Raises the refusals of the API, and `UserError` if there is no such Node."""
        before = await self._own()
        generation = max((one["spec"]["pool"].get("generation", 0) for one in before), default=0)
        if _compared([one["spec"] for one in before]) == _compared(slice_specs(self._node, content, generation)):
            return False
        wanted = slice_specs(self._node, content, generation + 1)
        owner = await self._owner()
        for old, spec in zip(before, wanted, strict=False):
            await self._api.update(RESOURCE_SLICES, {**old, "spec": _with_times(spec, old["spec"])})
        for number, spec in enumerate(wanted[len(before) :], start=len(before)):
            # Schedulers read the slices of a pool by name, and so in the order of the GPUs.
            prefix = f"{self._node[:_LONGEST_PREFIX]}-{CLAIM_DRIVER}-{number:02d}-"
            metadata = {"generateName": prefix, "ownerReferences": [owner]}
            await self._api.create(RESOURCE_SLICES, {"metadata": metadata, "spec": spec})
        for old in before[len(wanted) :]:
            try:
                await self._api.delete(RESOURCE_SLICES, "", old["metadata"]["name"])
            except NotFoundError:
                continue
        return True

    async def _own(self) -> list[Obj]:
        fields = f"spec.nodeName={self._node},spec.driver={CLAIM_DRIVER}"
        listed = await self._api.list(RESOURCE_SLICES, select=Select(fields=fields))
        found = (item.obj() for item in listed.items)
        # A slice of another pool cannot be changed to one of this pool.
        return sorted((one for one in found if _is_own(one, self._node)), key=lambda one: one["metadata"]["name"])

    async def _owner(self) -> Obj:
        try:
            node = (await self._api.get(NODES, "", self._node)).obj()
        except NotFoundError as error:
            fix = "name the Node of this machine with --node"
            raise UserError(f"the cluster has no node {self._node}", fix=fix) from error
        found = {"apiVersion": "v1", "kind": "Node", "name": self._node, "uid": node["metadata"]["uid"]}
        return {**found, "controller": True}


def _is_own(piece: Obj, node: str) -> bool:
    spec = piece["spec"]
    return (spec.get("driver"), spec.get("nodeName"), spec["pool"].get("name")) == (CLAIM_DRIVER, node, node)


def _compared(specs: Sequence[Obj]) -> list[bytes]:
    """In any order, because the server chooses names, and without the times of taints, which the server adds."""
    plain = [{**spec, "devices": [_without_times(one) for one in spec.get("devices") or ()]} for spec in specs]
    filled = ({key: value for key, value in spec.items() if value} for spec in plain)
    return sorted(msgspec.json.encode(spec, order="deterministic") for spec in filled)


def _without_times(device: Obj) -> Obj:
    taints = [{key: value for key, value in one.items() if key != "timeAdded"} for one in device.get("taints") or ()]
    return {**device, "taints": taints} if taints else {key: one for key, one in device.items() if key != "taints"}


def _with_times(spec: Obj, before: Obj) -> Obj:
    """A taint that remains keeps the time since which it is there."""
    times = {
        (device["name"], one.get("key"), one.get("value", ""), one.get("effect")): one["timeAdded"]
        for device in before.get("devices") or ()
        for one in device.get("taints") or ()
        if "timeAdded" in one
    }
    devices = []
    for device in spec.get("devices") or ():
        taints = []
        for one in device.get("taints") or ():
            added = times.get((device["name"], one["key"], one.get("value", ""), one["effect"]))
            taints.append(one if added is None else {**one, "timeAdded": added})
        devices.append({**device, "taints": taints} if taints else device)
    return {**spec, "devices": devices} if devices else spec
