"""Represents the devices that a pod requests of one node, and the devices that it was granted.

A demand says how much; a grant says which devices. Grants are plain subtractions from device planes, so taking and
giving back are the same few lines for every kind of ask, and undoing a trial is exact. The rejected alternative,
device objects with methods per kind, needs one undo per kind and cannot be read by numpy.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import msgspec

from shoal.engine.dra.requests import ClaimGrant

FULL_MILLI: Final = 1000
"""One whole GPU in thousandths of its compute."""

COMPUTE: Final = 0
"""What is left of a device for whole-GPU and fraction asks, in thousandths."""
MEMORY: Final = 1
"""MiB that asks for memory took."""
CORES: Final = 2
"""Thousandths of the cores that virtual GPUs limited themselves to."""
SLOTS: Final = 3
"""Replicas or virtual GPUs on the device."""
SLICES: Final = 4
"""MIG memory slices in use (see `tiling.occupancy`)."""

NOMINAL_MEMORY_MIB: Final = 40960
"""An ask for memory is judged as if GPUs had this much, wherever no node is at hand to convert by."""


class WholeGpus(msgspec.Struct, frozen=True, tag=True, cache_hash=True):
    """`count` devices, each with nothing else on it; or as many replicas, on a node that advertises those."""

    count: int
    island: bool = False
    """All on one NVLink island, or not at all; otherwise that is a wish."""
    numa: bool = False
    """All on one NUMA node, or not at all."""
    cores_milli: int = 0
    """Cores that the kubelet pins beside the GPUs; zero when it pins none."""


class GpuShare(msgspec.Struct, frozen=True, tag=True, cache_hash=True):
    """`milli` thousandths of the compute of one device, which others may share."""

    milli: int


class GpuShares(msgspec.Struct, frozen=True, tag=True, cache_hash=True):
    """`milli` thousandths on each of `count` different devices."""

    count: int
    milli: int


class MemoryShares(msgspec.Struct, frozen=True, tag=True, cache_hash=True):
    """`mib` of memory on each of `count` different devices, and that part of the device with it."""

    count: int
    mib: int


class VirtualGpus(msgspec.Struct, frozen=True, tag=True, cache_hash=True):
    """A slot with memory and cores on each of `count` different devices; zero cores are no limit of cores.

    Memory is in MiB, or in percent of the device where `mib` is zero.
    """

    count: int
    mib: int = 0
    percent: int = 100
    cores_percent: int = 0


class Replicas(msgspec.Struct, frozen=True, tag=True, cache_hash=True):
    """`count` replicas on a node that advertises them under a name of their own."""

    count: int


class MigTiles(msgspec.Struct, frozen=True, tag=True, cache_hash=True):
    """MIG instances: sorted (profile as in resource names, count). Nodes with fixed instances count them by name."""

    tiles: tuple[tuple[str, int], ...]


Demand = WholeGpus | GpuShare | GpuShares | MemoryShares | VirtualGpus | Replicas | MigTiles


PARTS = (GpuShare, GpuShares, MemoryShares)
"""Demands that are written as annotations: other schedulers see nothing of them."""


class DeviceGrant(msgspec.Struct, frozen=True, cache_hash=True):
    """The answer to a demand on one node: (device, plane, amount) subtractions.

    Either all from COMPUTE or none: what other planes lose, COMPUTE follows by itself.
    """

    parts: tuple[tuple[int, int, int], ...]
    claims: tuple[ClaimGrant, ...] = ()
    """What the pod's claims were given; no plane knows these devices."""

    @property
    def devices(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(device for device, _, _ in self.parts))

    def is_plain(self) -> bool:
        """Whether compute is all it takes."""
        return not self.parts or self.parts[0][1] == COMPUTE


@lru_cache(maxsize=65536)
def compute_grant(devices: tuple[int, ...], milli: int) -> DeviceGrant:
    """The grant of `milli` compute on each of `devices`; equal grants are one object, so 100,000 pods stay small."""
    return DeviceGrant(tuple((device, COMPUTE, milli) for device in devices))


@lru_cache(maxsize=65536)
def plane_grant(parts: tuple[tuple[int, int, int], ...]) -> DeviceGrant:
    """Any other grant, shared the same way."""
    return DeviceGrant(parts)


NOTHING = DeviceGrant(())
"""The grant on nodes whose devices are counted by resource name and not distinguished."""


def demand_milli(demand: Demand | None) -> int:
    """GPU compute the demand takes in all, in thousandths."""
    devices, milli = demand_per_device(demand)
    return devices * milli


def demand_per_device(demand: Demand | None) -> tuple[int, int]:
    """(devices, thousandths on each): the pair by which packing papers name a GPU ask.

    Of asks in other units it is what they come to on a GPU of middling memory. MIG instances have no part in it: they
    take nothing from what whole GPUs and shares live on.
    """
    match demand:
        case None | MigTiles():
            return 0, 0
        case WholeGpus(count):
            return count, FULL_MILLI
        case GpuShare(milli):
            return 1, milli
        case GpuShares(count, milli):
            return count, milli
        case MemoryShares(count, mib):
            return count, _nominal(mib)
        case VirtualGpus(count, mib, percent, cores_percent):
            memory = _nominal(mib) if mib else percent * 10
            return count, max(memory, cores_percent * 10)
        case Replicas(count):
            return count, FULL_MILLI // 4


def _nominal(mib: int) -> int:
    return min(-(-mib * FULL_MILLI // NOMINAL_MEMORY_MIB), FULL_MILLI)
