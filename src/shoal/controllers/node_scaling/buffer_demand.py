"""The present demand of a namespace for GPUs, which CapacityBuffers compare with their forecast.

Pods, nodes, claims and slices are listed before it is asked: a planning depends on them too.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import msgspec

from shoal.client.context import Context
from shoal.client.item import Item
from shoal.client.kind import NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from shoal.client.served import Served
from shoal.cost.records import DeviceShare
from shoal.store.history.claim_rows import ClaimedDevice, claimed_shares, read_slice
from shoal.store.history.present_demand import present_gpus


class BufferDemand:
    def __init__(self, context: Context, served: Served) -> None:
        self._context = context
        self._served = served
        self._slices: WeakKeyDictionary[Item, dict[ClaimedDevice, DeviceShare]] = WeakKeyDictionary()

    def gpus(self, namespace: str) -> float:
        """Of the pods that are there, placed or not."""
        of = self._context.informers.of
        pods = [each for each in of(PODS) if each.namespace == namespace]
        devices: dict[ClaimedDevice, DeviceShare] = {}

        def shares_of(owner: str, name: str) -> tuple[DeviceShare, ...]:
            kind = self._served.find(RESOURCE_CLAIMS)
            item = None if kind is None else of(kind).get(owner, name)
            if item is None:
                return ()
            if not devices:
                devices.update(self._claimable())
            try:
                return claimed_shares(item, devices)
            except msgspec.DecodeError:
                return ()

        return present_gpus(pods, lambda name: of(NODES).get("", name), shares_of, self._context.clock.now())

    def _claimable(self) -> dict[ClaimedDevice, DeviceShare]:
        """The devices of all slices."""
        kind = self._served.find(RESOURCE_SLICES)
        found: dict[ClaimedDevice, DeviceShare] = {}
        for item in () if kind is None else self._context.informers.of(kind):
            if item not in self._slices:
                self._slices[item] = _shares(item)
            found |= self._slices[item]
        return found


def _shares(item: Item) -> dict[ClaimedDevice, DeviceShare]:
    try:
        reading = read_slice(item)
    except msgspec.DecodeError:
        return {}
    return {} if reading is None else reading.shares
