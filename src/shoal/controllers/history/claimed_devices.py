"""Follows the ResourceClaims and ResourceSlices of a server that serves them, for the recorder."""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from shoal.client.context import Context
from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.client.kind import RESOURCE_CLAIMS, RESOURCE_SLICES, Kind
from shoal.client.served import Served
from shoal.cost.records import DeviceShare
from shoal.store.history.claim_rows import (
    ClaimedDevice,
    SliceReading,
    claimed_shares,
    read_slice,
    users_of,
    with_slices,
)
from shoal.store.history.node_rows import NodeDeviceNames
from shoal.store.history.pod_rows import RecordedPod

_log = logging.getLogger("shoal.history")


class ClaimedDevices:
    """`node_again` and `pod_again`: called with the name of a node and the uid of a pod that have to be read again."""

    def __init__(
        self,
        context: Context,
        served: Served | None,
        node_again: Callable[[str], None],
        pod_again: Callable[[str], None],
    ) -> None:
        self._context = context
        self._node_again = node_again
        self._pod_again = pod_again
        self._slices: dict[str, SliceReading] = {}
        """By uid."""
        self._shares: dict[ClaimedDevice, DeviceShare] = {}
        self._claims: Informer | None = None
        if served is not None:
            served.when_there(RESOURCE_SLICES, self._follow_slices)
            served.when_there(RESOURCE_CLAIMS, self._follow_claims)

    def extend(self, node: str, names: NodeDeviceNames) -> NodeDeviceNames:
        return with_slices(names, [one for one in self._slices.values() if one.node == node])

    def of_pod(self, pod: RecordedPod) -> tuple[DeviceShare, ...]:
        if self._claims is None:
            return ()
        found: list[DeviceShare] = []
        for name in pod.claims():
            item = self._claims.get(pod.metadata.namespace, name)
            if item is not None:
                found += _read(item, self._shares)
        return tuple(found)

    def _follow_slices(self, kind: Kind) -> None:
        self._context.informers.of(kind).on_change(self._slice_changed)

    def _follow_claims(self, kind: Kind) -> None:
        self._claims = self._context.informers.of(kind)
        self._claims.on_change(self._claim_changed)

    def _slice_changed(self, before: Item | None, after: Item | None) -> None:
        if before is not None and (after is None or after.uid != before.uid):
            self._slices.pop(before.uid, None)
        if after is None:
            return
        try:
            found = read_slice(after)
        except msgspec.DecodeError as error:
            _log.warning("ResourceSlice %s is not recorded: %s", after.name, error)
            return
        if found is not None:
            self._slices[after.uid] = found
            self._shares |= found.shares
            self._node_again(found.node)

    def _claim_changed(self, _: Item | None, after: Item | None) -> None:
        if after is None:
            return
        try:
            users = users_of(after)
        except msgspec.DecodeError:
            return
        for uid in users:
            self._pod_again(uid)


def _read(item: Item, known: dict[ClaimedDevice, DeviceShare]) -> tuple[DeviceShare, ...]:
    try:
        return claimed_shares(item, known)
    except msgspec.DecodeError as error:
        _log.warning("ResourceClaim %s/%s is not recorded: %s", item.namespace, item.name, error)
        return ()
