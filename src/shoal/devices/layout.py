"""Describes a node's GPUs beyond their number: memory, replicas, interconnect and MIG instances.

A value on the node's facts. Most nodes have the default or share one with a thousand others; whatever placement reads
for many nodes at once is copied into columns by `planes`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Sharing = Literal["none", "time-slicing", "mps"]
NumaPolicy = Literal["none", "best-effort", "restricted", "single-numa-node"]

SLOTS_PER_DEVICE = 10
"""Virtual GPUs on one device, where the node does not say: the default of HAMi's device plugin."""


class Layout(msgspec.Struct, frozen=True, cache_hash=True):
    """Equal GPUs; lists name something of each device, and are empty where that is not known."""

    memory_mib: int = 0
    """Of each GPU; zero when not known, and then nothing can be asked of it by memory."""
    replicas: int = 1
    """How often each GPU is advertised."""
    sharing: Sharing = "none"
    one_per_request: bool = False
    """A pod that requests more than one replica fails on the node."""
    renamed: bool = False
    """Replicas go by a name of their own, and `nvidia.com/gpu` cannot be had."""
    slots: int = SLOTS_PER_DEVICE
    """Virtual GPUs that one device takes."""
    islands: tuple[int, ...] = ()
    """Number of the NVLink island of each device."""
    numa: tuple[int, ...] = ()
    """NUMA node of each device."""
    numa_cores_milli: tuple[int, ...] = ()
    """Cores of each NUMA node that the kubelet may pin."""
    numa_policy: NumaPolicy = "none"
    """What the kubelet's Topology Manager refuses."""
    mig: str = ""
    """The MIG layout by which devices are cut on demand; empty when instances are fixed or there are none."""
    mig_devices: tuple[int, ...] = ()
    """The devices in MIG mode; they serve no other ask."""
    is_mig_single: bool = False
    """Its GPUs are MIG instances under the name of whole ones (the strategy `single`): no part of one can be had."""
    broken: tuple[int, ...] = ()
    """Unhealthy devices, which cannot be allocated."""

    def is_replicated(self) -> bool:
        return self.replicas > 1 or self.renamed

    def knows_numa(self) -> bool:
        return any(node >= 0 for node in self.numa)

    def is_strict(self) -> bool:
        """Whether the kubelet may turn away a pod for where its devices lie."""
        return self.numa_policy in ("restricted", "single-numa-node") and self.knows_numa()


PLAIN = Layout()
