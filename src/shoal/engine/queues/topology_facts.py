"""Represents topologies: the levels that nodes carry, where pods should be together, and where they were assigned.

They are separate from the facts of queues: quota knows nothing of them.
"""

from __future__ import annotations

import msgspec

from shoal.api.taints import Taint


class TopologyLevels(msgspec.Struct, frozen=True):
    """A Topology: node labels, outermost first."""

    name: str
    levels: tuple[str, ...]


class SliceLayer(msgspec.Struct, frozen=True):
    level: str
    size: int


class TopologyRequest(msgspec.Struct, frozen=True):
    """Where the pods of a set want to be together. At most one of the first three is set."""

    required: str = ""
    preferred: str = ""
    unconstrained: bool = False
    group: str = ""
    """`podSetGroupName`: two pod sets, one of them a single leader, go to one domain and flavor."""
    slice_level: str = ""
    slice_size: int = 0
    layers: tuple[SliceLayer, ...] = ()
    """Slices within slices, outermost first; the first repeats `slice_level` and `slice_size` where given."""
    balanced: bool = False
    """Spread evenly (TASBalancedPlacement), with `preferred` only."""


class TopologyAssignment(msgspec.Struct, frozen=True):
    """Pods per domain. Where the lowest level is the host name, it is the only level named.

    Domains are in the order of all their levels' values, named or not."""

    levels: tuple[str, ...]
    domains: tuple[tuple[tuple[str, ...], int], ...]
    """(values of the levels, pods)."""


class QueueNode(msgspec.Struct, frozen=True):
    """A node as topology placement counts it."""

    name: str
    labels: dict[str, str] = {}
    allocatable: dict[str, int] = {}
    taints: tuple[Taint, ...] = ()
    ready: bool = True
    unschedulable: bool = False
    taken: dict[str, int] = {}
    """By pods that no admission accounts for, `pods` among them."""
    installed: dict[str, int] = {}
    """Devices of which some are not allocatable now, because they are unhealthy: all of them."""
