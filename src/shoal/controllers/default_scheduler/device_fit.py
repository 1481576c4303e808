"""Whether a pod's device claims (dynamic resource allocation) can be served on a node, and by which devices.

The search for devices and the meaning of selectors are the engine's and the store's: counts, all of a kind,
alternatives, constraints, shared and partitioned devices, taints. What is known of devices is read anew when a slice or
a class changes, which is seldom.

Left out: extended resources that are served by claims, binding conditions of devices, and taking back allocations that
nobody uses in favour of a pod that waits.
"""

from __future__ import annotations

import msgspec
import numpy as np

from shoal.api.claims import ResourceClaim
from shoal.api.device_classes import DeviceClass
from shoal.api.slices import Reach, ResourceSlice
from shoal.api.wire import dec_hook
from shoal.controllers.default_scheduler.asks import PodFacts
from shoal.controllers.default_scheduler.company import Verdicts
from shoal.controllers.default_scheduler.fleet import Flags, Fleet
from shoal.controllers.default_scheduler.reasons import DEVICES_ELSEWHERE, NO_DEVICES
from shoal.engine.dra.pools import Pools
from shoal.engine.dra.requests import ClaimAsk, Picks
from shoal.engine.dra.search import find
from shoal.engine.dra.trial import Stock
from shoal.engine.dra.usage import Usage
from shoal.engine.labels import Labels
from shoal.store.dra.facts import claim_ask, claim_facts, slice_facts
from shoal.store.dra.sets import DeviceSets
from shoal.store.live.informer import Informer
from shoal.store.live.item import Item, Key

_claims = msgspec.json.Decoder(ResourceClaim, dec_hook=dec_hook)
_slices = msgspec.json.Decoder(ResourceSlice, dec_hook=dec_hook)
_classes = msgspec.json.Decoder(DeviceClass, dec_hook=dec_hook)
Given = dict[Key, Picks]
"""Devices by claim."""
_MOST_USERS = 256


class DeviceFit:
    def __init__(self, fleet: Fleet, claims: Informer, slices: Informer, classes: Informer) -> None:
        self._fleet = fleet
        self._claim_items, self._slice_items, self._class_items = claims, slices, classes
        self._claims: dict[Key, ResourceClaim] = {}
        self._promised: Given = {}
        self._is_fresh = False
        self._epoch = -1
        claims.on_change(self._claim_changed)
        for informer in (slices, classes):
            informer.on_change(lambda *_: self._forget())

    def trouble(self, pod: PodFacts) -> str:
        """Why there is no use in looking at nodes; empty where there is."""
        for key in pod.ask.device_claims:
            claim = self._claims.get(key)
            if claim is None:
                return f'resourceclaim "{key[1]}" not found'
            if claim.metadata.deletion_timestamp is not None:
                return f'resourceclaim "{key[1]}" is being deleted'
            if claim.is_allocated():
                if not self._has_room(claim, pod.uid):
                    return f'resourceclaim "{key[1]}" in use'
                continue
            fault = claim_ask(claim.spec.devices, self._read()[2])[1]
            if fault:
                return fault
        return ""

    def verdicts(self, pod: PodFacts) -> Verdicts:
        """What the claims say of every row."""
        fleet, keys = self._fleet, pod.ask.device_claims
        reached: Flags = np.ones(fleet.size, np.bool_)
        served: Flags = np.ones(fleet.size, np.bool_)
        for name, row in fleet.row_of.items():
            for key in keys:
                claim = self._claims[key]
                selector = claim.status.allocation.node_selector if claim.status.allocation is not None else None
                if selector is not None and not selector.matches(name, fleet.labels(row)):
                    reached[row] = False
            served[row] = self.given(pod, row) is not None
        return [(reached, DEVICES_ELSEWHERE), (served, NO_DEVICES)]

    def given(self, pod: PodFacts, row: int) -> Given | None:
        """Devices of this row for the claims that have none yet; None when they cannot all be served."""
        keys = [key for key in pod.ask.device_claims if not self._claims[key].is_allocated()]
        pools, usage, sets = self._read()
        meant = {event.name: event.devices for event in sets.events()}
        asks: list[ClaimAsk] = [claim_ask(self._claims[key].spec.devices, sets)[0] for key in keys]
        meant |= {event.name: event.devices for event in sets.events()}
        found = find(asks, Stock(pools.on(row), usage, meant, not pools.is_unfinished(row))).picks
        return None if found is None else dict(zip(keys, found, strict=True))

    def promise(self, given: Given) -> None:
        """The devices are not given to others until the allocation is written, or `withdraw`."""
        self._promised |= given
        self._is_fresh = False

    def withdraw(self, given: Given) -> None:
        for key in given:
            self._promised.pop(key, None)
        self._is_fresh = False

    def withdraw_all(self) -> None:
        self._promised.clear()
        self._is_fresh = False

    def claim(self, key: Key) -> ResourceClaim | None:
        return self._claims.get(key)

    def reach(self, picks: Picks) -> list[Reach]:
        """Where these devices can be used."""
        pools = self._read()[0]
        devices = [pools.find(pick.device) for pick in picks]
        return list(dict.fromkeys(device.facts.reach for device in devices if device is not None))

    def _has_room(self, claim: ResourceClaim, uid: str) -> bool:
        users = claim.status.reserved_for
        return len(users) < _MOST_USERS or any(user.uid == uid for user in users)

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
        """All devices, what is taken of them, and what requests mean."""
        fleet = self._fleet
        if self._epoch != fleet.static_epoch:
            self._epoch = fleet.static_epoch
            self._pools, self._sets = self._read_devices()
            self._is_fresh = False
        if not self._is_fresh:
            self._usage = Usage(self._pools)
            for key, claim in self._claims.items():
                if claim.is_allocated():
                    self._usage.take(claim_facts(claim, self._sets).allocation or ())
                elif key in self._promised:
                    self._usage.take(self._promised[key])
            self._is_fresh = True
        return self._pools, self._usage, self._sets

    def _read_devices(self) -> tuple[Pools, DeviceSets]:
        fleet = self._fleet
        labels = Labels()
        labels.grow(fleet.size)
        for row, place in enumerate(fleet.places):
            if place is not None:
                labels.put(row, place.labels)
        pools = Pools([place.name if place is not None else "" for place in fleet.places], labels)
        pieces = [slice_facts(_slices.decode(item.data)) for item in self._slice_items]
        for piece in pieces:
            pools.put(piece)
        return pools, DeviceSets([_classes.decode(item.data) for item in self._class_items], pieces)
