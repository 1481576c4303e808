"""What a pod asks of the GPUs of one node, and what it is given.

A demand says how much; a grant says which devices. Grants are plain subtractions from device planes, so taking and
giving back are the same few lines for every kind of ask, and undoing a trial is exact. The rejected alternative,
device objects with methods per kind, needs one undo per kind and cannot be read by numpy.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

FULL_MILLI = 1000
"""One whole GPU in thousandths of its compute."""

COMPUTE = 0
"""The plane of free compute thousandths; further planes (memory, replicas, MIG slices) follow it."""


class WholeGpus(msgspec.Struct, frozen=True, tag=True, cache_hash=True):
    """`count` devices, each with nothing else on it."""

    count: int


class GpuShare(msgspec.Struct, frozen=True, tag=True, cache_hash=True):
    """`milli` thousandths of the compute of one device, which others may share."""

    milli: int


Demand = WholeGpus | GpuShare


class Grant(msgspec.Struct, frozen=True, cache_hash=True):
    """The answer to a demand on one node: (device, plane, amount) subtractions."""

    parts: tuple[tuple[int, int, int], ...]

    @property
    def devices(self) -> tuple[int, ...]:
        return tuple(device for device, _, _ in self.parts)


@lru_cache(maxsize=65536)
def compute_grant(devices: tuple[int, ...], milli: int) -> Grant:
    """The grant of `milli` compute on each of `devices`; equal grants are one object, so 100,000 pods stay small."""
    return Grant(tuple((device, COMPUTE, milli) for device in devices))


def demand_milli(demand: Demand | None) -> int:
    """GPU compute the demand takes in all, in thousandths."""
    match demand:
        case None:
            return 0
        case WholeGpus(count):
            return count * FULL_MILLI
        case GpuShare(milli):
            return milli


def demand_per_device(demand: Demand | None) -> tuple[int, int]:
    """(devices, thousandths on each): the pair by which packing papers name a GPU ask."""
    match demand:
        case None:
            return 0, 0
        case WholeGpus(count):
            return count, FULL_MILLI
        case GpuShare(milli):
            return 1, milli
