"""Represents the devices that DRA drivers publish: devices in slices, slices in pools.

A device is known by one text, `driver/pool/name`, in allocations, sets and messages alike: two of the three parts
cannot contain a slash, so the text is unique and its front part names the pool.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from shoal.api.device_capacity import Capacity
from shoal.api.device_taints import DeviceTaint
from shoal.api.slices import Reach

Attribute = tuple[str, bool | int | str]
"""Kind and value: the text "1.0.0" and the version 1.0.0 are not the same, nor are true and 1."""

Amounts = tuple[tuple[str, int], ...]
"""Sorted (name, nano-units)."""


class Consumption(msgspec.Struct, frozen=True):
    """What a device takes of the counters that it shares with others of its pool while it is allocated."""

    counter_set: str
    counters: Amounts


class Binding(msgspec.Struct, frozen=True):
    """What has to happen to a device between its allocation and the binding of its pod."""

    wanted: tuple[str, ...] = ()
    """Conditions that must be true of it in the claim's status."""
    failing: tuple[str, ...] = ()
    """Conditions any of which says that it cannot be had."""
    to_node: bool = False
    """Once allocated, it is usable on the chosen node only."""


class DeviceFacts(msgspec.Struct, frozen=True):
    """One device. Attributes and capacities go by their full names, domain included."""

    name: str
    reach: Reach = Reach(all_nodes=True)
    """The nodes that can use it."""
    attributes: Mapping[str, Attribute] = {}
    capacity: Mapping[str, Capacity] = {}
    consumes: tuple[Consumption, ...] = ()
    taints: tuple[DeviceTaint, ...] = ()
    shared: bool = False
    """Several claims may have it at once, each a part of its capacity."""
    binding: Binding | None = None


class SliceFacts(msgspec.Struct, frozen=True):
    """A part of a pool, as its driver published it."""

    name: str
    driver: str
    pool: str
    devices: tuple[DeviceFacts, ...] = ()
    counters: Mapping[str, Mapping[str, int]] = {}
    """What the counter sets hold when nothing is taken, in nano-units."""
    generation: int = 0
    pieces: int = 1
    """How many slices the pool has in this generation."""
    reach: Reach = Reach(all_nodes=True)
    """The nodes that can use some device of it."""

    @property
    def pool_key(self) -> str:
        return f"{self.driver}/{self.pool}"


def pool_of(device: str) -> str:
    """The pool in a device's full name."""
    return device.rpartition("/")[0]
