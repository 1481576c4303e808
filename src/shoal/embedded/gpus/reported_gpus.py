"""Converts the GPUs of a simulated machine to what their driver reports about them.

Labels and device lists of simulated nodes are computed from these reports, as those of real nodes are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shoal.data.gpus import find_model
from shoal.devices.gpu_slot import GpuSlot
from shoal.devices.mig_instances import Cut, Gpu
from shoal.devices.nvlink import links_of
from shoal.devices.port import InstalledGpu, MigAttributes, MigInstance, NvlinkPeer, NvlinkStatus, PciePeer
from shoal.devices.product_names import device_name
from shoal.embedded.machines.machine import Machine

_GRAPHICS_FORMS = ("GeForce", "RTX-6000-Ada")
_DISPLAY_CLASS, _COMPUTE_CLASS = 0x030000, 0x030200


def reported_gpus(machine: Machine, layouts: Sequence[Gpu]) -> tuple[InstalledGpu, ...]:
    """All GPUs, as they are reported while none is lost. `layouts`: the MIG layout of each."""
    return tuple(_gpu(machine, slot, layouts[slot.index]) for slot in machine.gpus)


def _gpu(machine: Machine, slot: GpuSlot, layout: Gpu) -> InstalledGpu:
    model = find_model(slot.model)
    others = [other for other in machine.gpus if other.index != slot.index]
    return InstalledGpu(
        index=slot.index,
        uuid=slot.uuid,
        name=device_name(slot.product),
        pci=slot.pci,
        memory_mib=slot.memory_mib,
        compute_capability=model.compute_capability if model is not None else None,
        minor=slot.index,
        numa=slot.numa,
        serial=slot.serial or None,
        is_mig=layout.is_mig if model is not None and model.mig else None,
        instances=tuple(_instance(one) for one in layout.cuts),
        peers=tuple(_nvlink_peers(slot, others)),
        pcie_peers=tuple(
            PciePeer(other.uuid, "same-cpu" if other.numa == slot.numa else "cross-cpu") for other in others
        ),
        nvlink_statuses=tuple(
            NvlinkStatus(other.index, "OK" if links_of(model) and other.island == slot.island else "NotSupported")
            for other in others
        ),
        pci_class=_DISPLAY_CLASS if any(form in slot.product for form in _GRAPHICS_FORMS) else _COMPUTE_CLASS,
        fabric=machine.fabric,
    )


def _instance(one: Cut) -> MigInstance:
    profile, engines = one.profile, one.profile.engines
    return MigInstance(
        uuid=one.uuid,
        profile=profile.name,
        instance=one.instance,
        start=one.start,
        width=profile.width,
        memory_mib=one.memory_mib,
        compute_instance=0,
        # What is not known of a profile is reported as none.
        attributes=MigAttributes(
            multiprocessors=profile.sm or 0,
            gpu_slices=profile.compute,
            compute_slices=profile.compute,
            copy_engines=engines.copy or 0,
            decoders=engines.decode or 0,
            encoders=engines.encode or 0,
            jpeg_engines=engines.jpeg or 0,
            optical_flow_engines=engines.optical_flow or 0,
        ),
    )


def _nvlink_peers(slot: GpuSlot, others: Sequence[GpuSlot]) -> Iterator[NvlinkPeer]:
    links = links_of(find_model(slot.model))
    for other in others if links else ():
        if other.island == slot.island:
            yield NvlinkPeer(other.uuid, links)
