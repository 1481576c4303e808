"""Reads which devices claims have: the slices of drivers name the devices, the allocation of a claim its share of them.

A device with a UUID is a GPU, or a MIG instance of its parent. Devices that a claim may only administer are not held. A
claim that several pods use is divided among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from shoal.client.item import Item
from shoal.cost.device_shares import mig_shares
from shoal.cost.records import FULL_SHARE, DeviceShare
from shoal.data.gpus import read_product
from shoal.data.mig import layout_of_product
from shoal.store.history.node_rows import NodeDeviceNames

ClaimedDevice = tuple[str, str, str]
"""Driver, pool, name."""


class _SliceDevice(msgspec.Struct, frozen=True):
    name: str = ""
    attributes: dict[str, dict[str, Any]] = {}

    def text(self, key: str) -> str:
        """An attribute by its name without the domain of its driver."""
        for name, value in self.attributes.items():
            if name.rpartition("/")[2] == key:
                return str(value.get("string", ""))
        return ""


class _SlicePool(msgspec.Struct, frozen=True):
    name: str = ""


class _SliceSpec(msgspec.Struct, rename="camel", frozen=True):
    driver: str = ""
    pool: _SlicePool = _SlicePool()
    node_name: str = ""
    devices: tuple[_SliceDevice, ...] = ()


class _RecordedSlice(msgspec.Struct, frozen=True):
    spec: _SliceSpec = _SliceSpec()


class _Result(msgspec.Struct, rename="camel", frozen=True):
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None


class _Results(msgspec.Struct, frozen=True):
    results: tuple[_Result, ...] = ()


class _ClaimAllocation(msgspec.Struct, frozen=True):
    devices: _Results = _Results()


class _User(msgspec.Struct, frozen=True):
    resource: str = ""
    uid: str = ""


class _ClaimStatus(msgspec.Struct, rename="camel", frozen=True):
    allocation: _ClaimAllocation | None = None
    reserved_for: tuple[_User, ...] = ()


class _RecordedClaim(msgspec.Struct, frozen=True):
    status: _ClaimStatus = msgspec.field(default_factory=_ClaimStatus)


class SliceReading(msgspec.Struct, frozen=True):
    node: str
    shares: dict[ClaimedDevice, DeviceShare]
    gpus: tuple[str, ...]
    """The UUIDs of the GPUs, in the order of the slice."""
    product: str


def read_slice(item: Item) -> SliceReading | None:
    """None for a slice that belongs to no node or has no GPUs. Raises msgspec.DecodeError."""
    spec = item.read(_RecordedSlice).spec
    shares: dict[ClaimedDevice, DeviceShare] = {}
    gpus: dict[str, None] = {}
    product = ""
    for device in spec.devices:
        uuid = device.text("uuid")
        if not uuid:
            continue
        product = device.text("productName") or product
        parent, profile = device.text("parentUUID"), device.text("profile")
        gpu = parent or uuid
        gpus.setdefault(gpu)
        share, compute = _shares(product, profile) if parent else (FULL_SHARE, 0)
        shares[spec.driver, spec.pool.name, device.name] = DeviceShare(gpu, share, uuid if parent else "", compute)
    if not spec.node_name or not gpus:
        return None
    return SliceReading(spec.node_name, shares, tuple(gpus), product.replace(" ", "-"))


def claimed_shares(item: Item, known: Mapping[ClaimedDevice, DeviceShare]) -> tuple[DeviceShare, ...]:
    """What each of the pods that use the claim has. Raises msgspec.DecodeError."""
    status = item.read(_RecordedClaim).status
    if status.allocation is None:
        return ()
    users = max(1, sum(1 for user in status.reserved_for if user.resource == "pods"))
    found = [
        known.get((one.driver, one.pool, one.device))
        for one in status.allocation.devices.results
        if not one.admin_access
    ]
    return tuple(
        one if users == 1 else DeviceShare(one.device, one.share // users, one.part, one.compute // users)
        for one in found
        if one is not None
    )


def users_of(item: Item) -> Sequence[str]:
    """The uids of the pods that use the claim."""
    return [user.uid for user in item.read(_RecordedClaim).status.reserved_for if user.resource == "pods"]


def with_slices(names: NodeDeviceNames, slices: Sequence[SliceReading]) -> NodeDeviceNames:
    """The devices of a node of which only a driver for claims reports them."""
    gpus = tuple(dict.fromkeys(gpu for one in slices for gpu in one.gpus))
    if not gpus or set(gpus) <= set(names.devices):
        return names
    product = names.product or next((one.product for one in slices if one.product), "")
    shares = {gpu: DeviceShare(gpu) for gpu in gpus}
    return NodeDeviceNames((*names.devices, *(gpu for gpu in gpus if gpu not in names.devices)), shares, {}, product)


def _shares(product: str, profile: str) -> tuple[int, int]:
    layout = layout_of_product(read_product(product.replace(" ", "-")).name)
    return mig_shares(layout, profile, FULL_SHARE // 8)
