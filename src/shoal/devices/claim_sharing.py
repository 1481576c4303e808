"""Computes how a claim's configuration shares its GPUs between containers: time slices, and the claim's MPS daemon.

A daemon serves the GPUs of its claim only, and numbers them in the order of the allocation. Memory limits of an MPS
configuration name a GPU by its UUID, or by its position among the devices that the configuration applies to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from shoal.devices.cdi_spec import CdiMount, ContainerEdits
from shoal.devices.claim_config import ClaimableConfig, GpuConfig, Interval, MpsConfig
from shoal.devices.claimable_devices import CLAIM_DRIVER
from shoal.devices.mps_daemons import MpsDaemon, MpsFolders, MpsGpu
from shoal.units.errors import UserError, Where
from shoal.units.quantity import NANO, Quantity

PIPE_INSIDE = "/tmp/nvidia-mps"  # noqa: S108 - where NVIDIA's driver for claims has it in containers
_SHARED_INSIDE = "/dev/shm"  # noqa: S108 - a folder of the container
_MIB, _WHOLE = 2**20, 100
_OPTIONS = ("rw", "nosuid", "nodev", "bind")


class DeviceSharing(msgspec.Struct, frozen=True):
    interval: Interval | None = None
    """The time slice; None: it is left as it is."""
    has_mps: bool = False
    thread_percent: int = _WHOLE
    """The part of the multiprocessors that each client of MPS can use."""
    client_mib: int = 0
    """The memory that each client can allocate; 0: without limit."""


def sharing_of(config: ClaimableConfig, uuids: Sequence[str], where: Where) -> dict[str, DeviceSharing]:
    """By UUID, of the devices to which a supported configuration applies. Raises `UserError` for a limit of a GPU that
    is not among them.
    """
    sharing = config.sharing if isinstance(config, GpuConfig) else None
    if sharing is None:
        return {}
    if sharing.strategy == "TimeSlicing":
        interval = sharing.time_slicing_config.interval if sharing.time_slicing_config is not None else None
        return {uuid: DeviceSharing(interval=interval or "Default") for uuid in uuids}
    mps = sharing.mps_config or MpsConfig()
    limits = _limits(mps, uuids, where.below("sharing.mpsConfig"))
    percent = mps.default_active_thread_percentage
    percent = _WHOLE if percent is None else percent
    return {uuid: DeviceSharing(has_mps=True, thread_percent=percent, client_mib=limits.get(uuid, 0)) for uuid in uuids}


def claim_daemon(uid: str, shared: Mapping[str, DeviceSharing], root: str) -> MpsDaemon | None:
    """The daemon of a claim; None if MPS shares none of its devices. `shared`: by UUID. Raises `UserError` if its
    devices have different shares of the multiprocessors, because a daemon has one.
    """
    found = {uuid: one for uuid, one in shared.items() if one.has_mps}
    percents = {one.thread_percent for one in found.values()}
    if not found:
        return None
    if len(percents) > 1:
        what = f"the devices of one claim have different defaultActiveThreadPercentage: {sorted(percents)}"
        raise UserError(what, fix="use one value, or a claim for each")
    gpus = tuple(MpsGpu(index, uuid, one.client_mib) for index, (uuid, one) in enumerate(found.items()))
    return MpsDaemon(MpsFolders(root, f"{CLAIM_DRIVER}/claim-{uid}"), gpus, percents.pop(), is_alone=True)


def mps_edits(folders: MpsFolders) -> ContainerEdits:
    """What a container of the claim needs to be a client of its daemon."""
    return ContainerEdits(
        env=(f"CUDA_MPS_PIPE_DIRECTORY={PIPE_INSIDE}",),
        mounts=(
            CdiMount(folders.shared_memory, _SHARED_INSIDE, _OPTIONS),
            CdiMount(folders.pipe, PIPE_INSIDE, _OPTIONS),
        ),
    )


def _limits(mps: MpsConfig, uuids: Sequence[str], where: Where) -> dict[str, int]:
    found: dict[str, int] = {}
    text = mps.default_pinned_device_memory_limit
    if text is not None:
        limit = _mib(text, where.below("defaultPinnedDeviceMemoryLimit"))
        found = dict.fromkeys(uuids, limit)
    there = where.below("defaultPerDevicePinnedMemoryLimit")
    for key, text in mps.default_per_device_pinned_memory_limit.items():
        here = there.key(key)
        if key in uuids:
            uuid = key
        elif key.isdecimal() and int(key) < len(uuids):
            uuid = uuids[int(key)]
        else:
            what = f"is neither a position nor a UUID of the {len(uuids)} devices that the configuration applies to"
            raise UserError(what, where=here, fix=f"use 0 to {len(uuids) - 1}, or a UUID")
        found[uuid] = _mib(text, here)
    return found


def _mib(text: str, where: Where) -> int:
    mib = Quantity.parse(text).nano // NANO // _MIB
    if not mib:
        raise UserError(f"{text} is less than a mebibyte", where=where, fix="MPS limits memory in mebibytes")
    return mib
