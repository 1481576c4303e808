"""Decides which devices of this node a claim's allocation gives to it, and whether they can be prepared.

Rules: only results of this driver and this node's pool count; a device that another claim holds is refused unless the
result has `adminAccess`; a configuration of the claim replaces that of the class. A refusal is a `UserError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from shoal.api.claims import AllocatedConfig, AllocatedDevice, ResourceClaim
from shoal.devices.claim_config import ClaimableConfig, DeviceType, check_supported, read_claim_config
from shoal.devices.claim_sharing import DeviceSharing, sharing_of
from shoal.devices.claimable_devices import CLAIM_DRIVER, ClaimableDevice
from shoal.units.errors import UserError, Where


class ClaimName(msgspec.Struct, frozen=True):
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"ResourceClaim {self.namespace}/{self.name}"


class PreparedDevice(msgspec.Struct, frozen=True):
    requests: tuple[str, ...]
    """The requests of the claim that have this device; without the names of alternatives."""
    pool: str
    device: str
    uuid: str
    is_exclusive: bool = True
    """False: with `adminAccess`."""
    sharing: DeviceSharing | msgspec.UnsetType = msgspec.UNSET
    """How the configuration of the claim shares it. It is not written where there is none, so that records of former
    versions keep their checksum."""


class PreparedClaim(msgspec.Struct, frozen=True):
    claim: ClaimName
    devices: tuple[PreparedDevice, ...]


def devices_of_claim(
    asked: ClaimName, claim: ResourceClaim | None, node: str, present: Mapping[str, ClaimableDevice]
) -> tuple[PreparedDevice, ...]:
    """`present`: the devices of this node by name. Raises `UserError`."""
    where = Where(obj=str(asked))
    if claim is None:
        raise UserError("there is no such claim in the cluster", where=where)
    if claim.metadata.uid != asked.uid:
        what = f"the claim was replaced: its uid is {claim.metadata.uid}, the kubelet asks for {asked.uid}"
        raise UserError(what, where=where)
    if claim.status.allocation is None:
        raise UserError("the claim is not allocated", where=where.below("status.allocation"))
    allocated = claim.status.allocation.devices
    found: dict[str, PreparedDevice] = {}
    configured: dict[str, _Configured] = {}
    for index, result in enumerate(allocated.results):
        if result.driver != CLAIM_DRIVER or result.pool != node:
            continue
        here = where.below(f"status.allocation.devices.results[{index}]")
        device = present.get(result.device)
        if device is None:
            raise UserError(f"this node has no device {result.device}", where=here.below("device"))
        config = _config(allocated.config, result, device, where.below("status.allocation.devices.config"))
        if config is not None:
            configured.setdefault(str(config[1]), _Configured(*config)).devices.append(result.device)
        before = found.get(result.device)
        requests = (*(before.requests if before is not None else ()), result.request.partition("/")[0])
        found[result.device] = PreparedDevice(
            tuple(dict.fromkeys(requests)),
            result.pool,
            result.device,
            device.uuid,
            is_exclusive=not result.admin_access or (before is not None and before.is_exclusive),
        )
    if not found:
        what = f"the allocation has no device of {CLAIM_DRIVER} on node {node}"
        raise UserError(what, where=where.below("status.allocation.devices.results"))
    return tuple(_shared(found, configured.values()).values())


class _Configured(msgspec.Struct):
    """A configuration, and the devices to which it applies."""

    config: ClaimableConfig
    where: Where
    devices: list[str] = []


def _shared(found: Mapping[str, PreparedDevice], configured: Iterable[_Configured]) -> Mapping[str, PreparedDevice]:
    shared = dict(found)
    for one in configured:
        names = list(dict.fromkeys(one.devices))
        sharing = sharing_of(one.config, [found[name].uuid for name in names], one.where)
        for name in names:
            own = sharing.get(found[name].uuid)
            if own is None or own == DeviceSharing(interval="Default"):
                continue
            if not found[name].is_exclusive:
                what = f"{name} is allocated with adminAccess, and its sharing is that of the claim that uses it"
                raise UserError(what, where=one.where.below("sharing"), fix="leave sharing out")
            shared[name] = msgspec.structs.replace(found[name], sharing=own)
    return shared


def check_not_held(wanted: PreparedClaim, held: Mapping[str, PreparedClaim]) -> None:
    """Raises `UserError` if another claim has one of the devices."""
    for device in wanted.devices:
        if not device.is_exclusive:
            continue
        for other in held.values():
            if other.claim.uid == wanted.claim.uid:
                continue
            if any(one.device == device.device and one.is_exclusive for one in other.devices):
                fix = "it is free again when the kubelet has unprepared that claim"
                what = f"device {device.device} is prepared for {other.claim} (uid {other.claim.uid})"
                raise UserError(what, where=Where(obj=str(wanted.claim)), fix=fix)


def _config(
    configs: tuple[AllocatedConfig, ...], result: AllocatedDevice, device: ClaimableDevice, where: Where
) -> tuple[ClaimableConfig, Where] | None:
    """The configuration that applies to the device."""
    kind = device.described.attributes["type"].value()
    type_: DeviceType = "mig" if kind == "mig" else "gpu"
    last: tuple[ClaimableConfig, Where] | None = None
    # Those of the class come first, and the last one counts.
    for index, one in sorted(enumerate(configs), key=lambda pair: pair[1].source != "FromClass"):
        names = {result.request, result.request.partition("/")[0]}
        if one.opaque.driver != CLAIM_DRIVER or (one.requests and not names & {*one.requests}):
            continue
        here = where.below(f"[{index}].opaque.parameters")
        last = read_claim_config(one.opaque.parameters, here), here
    if last is not None:
        check_supported(last[0], type_, last[1])
    return last
