"""Lists the GPUs of one machine: their positions, and ids that depend only on node name and index."""

from __future__ import annotations

import uuid

from shoal.devices.gpu_slot import GpuSlot
from shoal.devices.product_names import product_label
from shoal.embedded.machines.shape import MachineShape

_SPACE = uuid.UUID("6f0a7c56-5f35-4b60-9a35-6d2c8a6b1f6e")
_FIRST_BUS, _BUSES = 0x10, 0xE0


def gpu_slots(node: str, shape: MachineShape) -> tuple[GpuSlot, ...]:
    model = shape.gpu_model()
    if model is None:
        return ()
    product = product_label(model)
    return tuple(
        GpuSlot(
            index=index,
            uuid=f"GPU-{identity(node, f'gpu/{index}')}",
            model=model.name,
            product=product,
            memory_mib=shape.gpu_memory_mib,
            numa=shape.numa[index],
            island=shape.islands[index],
            pci=f"00000000:{_FIRST_BUS + index * (_BUSES // shape.gpus):02X}:00.0",
            serial=str(1_650_000_000_000 + identity(node, f"serial/{index}").int % 10**9),
            compute_capability=model.compute_capability,
            is_mig_capable=bool(model.mig),
        )
        for index in range(shape.gpus)
    )


def identity(node: str, what: str) -> uuid.UUID:
    """Equal at every start for the same node and object."""
    return uuid.uuid5(_SPACE, f"{node}/{what}")
