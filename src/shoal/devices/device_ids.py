"""Writes and reads the ids of devices: replicas, and the choice of devices in `shoal.dev/devices`."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from shoal.units.numbers import LONGEST_HELD

_REPLICA, _GKE_REPLICA = "::", "/vgpu"


def replica_id(device: str, number: int) -> str:
    """As NVIDIA's device plugin calls a replica."""
    return f"{device}{_REPLICA}{number}"


def device_of_replica(device: str) -> str:
    """The id of the GPU or MIG instance behind a replica; that of a device which is none is its own."""
    return device.partition(_REPLICA)[0]


def number_of_replica(device: str) -> str:
    """Empty for a device that is no replica."""
    return device.partition(_REPLICA)[2]


def share_of(device: str) -> str | None:
    """The number of a replica, of NVIDIA's device plugin or of GKE's; None for a device that is not shared."""
    for mark in (_GKE_REPLICA, _REPLICA):
        if mark in device:
            return device.split(mark)[1]
    return None


def ids_in(text: str) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Container -> resource -> ids, as `shoal.dev/devices` has it; nothing where it is not written so."""
    if len(text) > LONGEST_HELD or not text.lstrip().startswith("{"):
        return {}
    try:
        return msgspec.json.decode(text, type=dict[str, dict[str, tuple[str, ...]]])
    except msgspec.DecodeError:
        return {}
