"""Checks whether the device claims of a pod (dynamic resource allocation) fit a node, and chooses devices.

The search for devices and the selectors are those of the engine: counts, all devices of a class, alternatives,
constraints, shared and partitioned devices, taints. All devices are read again when a slice or a class changes, which
is rare.

Left out: extended resources backed by claims, binding conditions of devices, and deallocation of unused claims for a
waiting pod.
"""

from __future__ import annotations

import msgspec
import numpy as np

from shoal.api.claims import ResourceClaim
from shoal.api.device_classes import DeviceClass
from shoal.api.slices import Reach, ResourceSlice
from shoal.api.wire import dec_hook
from shoal.client.informer import Informer
from shoal.client.item import Item, Key
from shoal.embedded.scheduler.node_columns import Flags, NodeColumns
from shoal.embedded.scheduler.pod_affinity import FilterVerdicts
from shoal.embedded.scheduler.pod_info import PodInfo
from shoal.embedded.scheduler.reasons import DEVICES_ELSEWHERE, NO_DEVICES
from shoal.engine.dra.pools import Pools
from shoal.engine.dra.requests import ClaimAsk, Picks
from shoal.engine.dra.search import find
from shoal.engine.dra.trial import Stock
from shoal.engine.dra.usage import Usage
from shoal.engine.labels import Labels
from shoal.store.dra.facts import claim_ask, claim_facts, slice_facts
from shoal.store.dra.sets import DeviceSets

_claims = msgspec.json.Decoder(ResourceClaim, dec_hook=dec_hook)
_slices = msgspec.json.Decoder(ResourceSlice, dec_hook=dec_hook)
_classes = msgspec.json.Decoder(DeviceClass, dec_hook=dec_hook)
ClaimDevices = dict[Key, Picks]
"""Devices by claim."""
_MAX_USERS = 256


class DeviceFit:
    def __init__(self, columns: NodeColumns, claims: Informer, slices: Informer, classes: Informer) -> None:
        self._columns = columns
        self._claim_items, self._slice_items, self._class_items = claims, slices, classes
        self._claims: dict[Key, ResourceClaim] = {}
        self._nominated: ClaimDevices = {}
        self._is_fresh = False
        self._epoch = -1
        claims.on_change(self._claim_changed)
        for informer in (slices, classes):
            informer.on_change(lambda *_: self._forget())

    def prefilter_error(self, pod: PodInfo) -> str:
        """Why no node can be feasible, or empty."""
        for key in pod.request.device_claims:
            claim = self._claims.get(key)
            if claim is None:
                return f'resourceclaim "{key[1]}" not found'
            if claim.metadata.deletion_timestamp is not None:
                return f'resourceclaim "{key[1]}" is being deleted'
            if claim.is_allocated():
                if not self._has_capacity(claim, pod.uid):
                    return f'resourceclaim "{key[1]}" in use'
                continue
            fault = claim_ask(claim.spec.devices, self._read()[2])[1]
            if fault:
                return fault
        return ""

    def filter_rows(self, pod: PodInfo) -> FilterVerdicts:
        """The filter results of the claims for all rows."""
        columns, keys = self._columns, pod.request.device_claims
        reached: Flags = np.ones(columns.size, np.bool_)
        served: Flags = np.ones(columns.size, np.bool_)
        for name, row in columns.row_of.items():
            for key in keys:
                claim = self._claims[key]
                selector = claim.status.allocation.node_selector if claim.status.allocation is not None else None
                if selector is not None and not selector.matches(name, columns.labels(row)):
                    reached[row] = False
            served[row] = self.devices_for(pod, row) is not None
        return [(reached, DEVICES_ELSEWHERE), (served, NO_DEVICES)]

    def devices_for(self, pod: PodInfo, row: int) -> ClaimDevices | None:
        """Devices of this row for the unallocated claims; None if some claim cannot be allocated."""
        keys = [key for key in pod.request.device_claims if not self._claims[key].is_allocated()]
        pools, usage, sets = self._read()
        meant = {event.name: event.devices for event in sets.events()}
        asks: list[ClaimAsk] = [claim_ask(self._claims[key].spec.devices, sets)[0] for key in keys]
        meant |= {event.name: event.devices for event in sets.events()}
        found = find(asks, Stock(pools.on(row), usage, meant, not pools.is_unfinished(row))).picks
        return None if found is None else dict(zip(keys, found, strict=True))

    def reserve(self, devices_for: ClaimDevices) -> None:
        """Reserves the devices until the allocation is written, or `unreserve`."""
        self._nominated |= devices_for
        self._is_fresh = False

    def unreserve(self, devices_for: ClaimDevices) -> None:
        for key in devices_for:
            self._nominated.pop(key, None)
        self._is_fresh = False

    def unreserve_all(self) -> None:
        self._nominated.clear()
        self._is_fresh = False

    def claim(self, key: Key) -> ResourceClaim | None:
        return self._claims.get(key)

    def reach(self, picks: Picks) -> list[Reach]:
        """The nodes on which the devices can be used."""
        pools = self._read()[0]
        devices = [pools.find(pick.device) for pick in picks]
        return list(dict.fromkeys(device.facts.reach for device in devices if device is not None))

    def _has_capacity(self, claim: ResourceClaim, uid: str) -> bool:
        users = claim.status.reserved_for
        return len(users) < _MAX_USERS or any(user.uid == uid for user in users)

    # -- facts ------------------------------------------------------------------------------------------------------

    def _forget(self) -> None:
        self._is_fresh = False
        self._epoch = -1

    def _claim_changed(self, before: Item | None, after: Item | None) -> None:
        if after is not None:
            self._claims[after.key] = _claims.decode(after.data)
        elif before is not None:
            self._claims.pop(before.key, None)
        self._is_fresh = False

    def _read(self) -> tuple[Pools, Usage, DeviceSets]:
        """All devices, their usage, and the resolved requests."""
        columns = self._columns
        if self._epoch != columns.static_epoch:
            self._epoch = columns.static_epoch
            self._pools, self._sets = self._read_devices()
            self._is_fresh = False
        if not self._is_fresh:
            self._usage = Usage(self._pools)
            for key, claim in self._claims.items():
                if claim.is_allocated():
                    self._usage.take(claim_facts(claim, self._sets).allocation or ())
                elif key in self._nominated:
                    self._usage.take(self._nominated[key])
            self._is_fresh = True
        return self._pools, self._usage, self._sets

    def _read_devices(self) -> tuple[Pools, DeviceSets]:
        columns = self._columns
        labels = Labels()
        labels.grow(columns.size)
        for row, place in enumerate(columns.places):
            if place is not None:
                labels.put(row, place.labels)
        pools = Pools([place.name if place is not None else "" for place in columns.places], labels)
        pieces = [slice_facts(_slices.decode(item.data)) for item in self._slice_items]
        for piece in pieces:
            pools.put(piece)
        return pools, DeviceSets([_classes.decode(item.data) for item in self._class_items], pieces)
