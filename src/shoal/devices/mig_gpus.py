"""Describes the GPUs of a node as MIG layouts see them, and selects the entries of a layout that concern each.

Entries apply from top to bottom: of several for one GPU the last one counts. An entry for all GPUs, or one that
disables MIG, passes over GPUs without MIG.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from shoal.data.gpus import find_model
from shoal.data.mig import Layout, layouts
from shoal.devices.gpu_slot import GpuSlot
from shoal.devices.mig_instances import Gpu
from shoal.devices.mig_layout_checks import Problem, counts_problem
from shoal.devices.mig_layouts import Counts, MigSpec, Specs
from shoal.devices.pci_ids import PciId, is_matched, parse_pci_id

_VENDOR = 0x10DE


class MigGpu(msgspec.Struct, frozen=True):
    index: int
    pci: tuple[PciId, ...]
    """Its id; all ids of its model where the own one is not known."""
    facts: Layout | None
    """None: the table has no profiles of the GPU."""
    is_capable: bool = True
    is_mig: bool = False
    counts: Counts = ()
    """Its present instances."""
    needs_reset: bool = False
    """Whether a change of MIG mode takes effect with a reset only."""
    name: str = ""


def changes_mode_by_reset(compute_capability: str | None) -> bool:
    """Ampere; later GPUs change their MIG mode at once."""
    return (compute_capability or "").startswith("8.")


def gpu_of_slot(slot: GpuSlot, gpu: Gpu) -> MigGpu:
    model = find_model(slot.model)
    facts = model.mig_layout() if model is not None else None
    own = parse_pci_id(slot.pci_id) if slot.pci_id else None
    known = tuple(PciId(int(device, 16) << 16 | _VENDOR) for device in facts.pci) if facts is not None else ()
    counts: dict[str, int] = {}
    for cut in gpu.cuts:
        counts[cut.profile.name] = counts.get(cut.profile.name, 0) + 1
    return MigGpu(
        index=slot.index,
        pci=(own,) if own is not None else known,
        facts=facts,
        is_capable=slot.is_mig_capable,
        is_mig=gpu.is_mig,
        counts=tuple(sorted(counts.items())),
        needs_reset=facts is not None and changes_mode_by_reset(facts.compute_capability),
        name=slot.model or slot.product,
    )


def layout_of_pci_id(text: str) -> Layout | None:
    pci = parse_pci_id(text)
    return None if pci is None else next((one for one in layouts() if f"{pci.device >> 16:04x}" in one.pci), None)


def selected(specs: Specs, gpus: Sequence[MigGpu]) -> Iterator[tuple[MigSpec, MigGpu]]:
    """The pairs of an entry and a GPU that it concerns, in the order of the file."""
    for spec in specs:
        for gpu in gpus:
            if spec.selects(gpu.index) and is_selected_by_filter(spec, gpu):
                yield spec, gpu


def is_selected_by_filter(spec: MigSpec, gpu: MigGpu) -> bool:
    return is_matched(spec.filters, None) or any(is_matched(spec.filters, pci) for pci in gpu.pci)


def is_passed_over(spec: MigSpec, gpu: MigGpu) -> bool:
    return not gpu.is_capable and (spec.devices == "all" or not spec.enabled)


def targets(specs: Specs, gpus: Sequence[MigGpu]) -> Mapping[int, MigSpec] | Problem:
    """The new layout of each GPU that an entry concerns, or why it is impossible."""
    wanted: dict[int, MigSpec] = {}
    for spec, gpu in selected(specs, gpus):
        if is_passed_over(spec, gpu):
            continue
        if not gpu.is_capable:
            return Problem(f"GPU {gpu.index} ({gpu.name}) has no MIG", "leave it out")
        problem = counts_problem(spec.counts, gpu.facts) if gpu.facts is not None else None
        if problem is not None:
            return problem
        wanted[gpu.index] = spec
    known = {gpu.index for gpu in gpus}
    missing = [index for spec in specs if spec.devices != "all" for index in spec.devices if index not in known]
    if missing:
        return Problem(f"no GPU {missing[0]}", f"the node has {len(gpus)}")
    if not wanted and any(spec.enabled for spec in specs):
        return Problem("the layout names no GPU of this node", "see its devices and device-filter")
    return wanted
