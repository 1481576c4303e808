"""One GPU of a node with its position, as labels, device lists and layouts see it."""

from __future__ import annotations

import msgspec


class GpuSlot(msgspec.Struct, frozen=True):
    """One GPU with its position."""

    index: int
    uuid: str
    """`GPU-` and a UUID, equal at every start for the same node name and index."""
    model: str
    """The name in data/gpus.json; empty for a model that is not there."""
    product: str
    """The name that GPU feature discovery writes: `NVIDIA-H100-80GB-HBM3`."""
    memory_mib: int
    numa: int
    island: int
    """GPUs of one island are connected by NVLink."""
    pci: str
    """`00000000:53:00.0`."""
    serial: str = ""
    compute_capability: str = ""
    """`9.0`; empty if unknown."""
    is_mig_capable: bool = False
    pci_id: str = ""
    """Device and vendor, and where known those of the board: `0x233010DE:0x16C110DE`; empty if unknown."""
