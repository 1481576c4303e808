"""Parses MIG layouts in the MIG manager's file format, and applies them to the GPUs of a node.

    version: v1
    mig-configs:
      custom-mixed:
        - devices: all                # or [0, 1]
          device-filter: ["0x20B210DE"]
          mig-enabled: true
          mig-devices: {"2g.10gb": 3, "1g.5gb": 1}

Of several lines for a GPU the last one counts; a GPU without a line is not changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from shoal.api.yaml_text import read_yaml
from shoal.data.gpus import find_model
from shoal.data.mig import Layout
from shoal.devices.gpu_slot import GpuSlot
from shoal.devices.mig_layout_checks import Problem, counts_problem
from shoal.devices.mig_layouts import MigSpec, Specs
from shoal.units.errors import UserError

_VENDOR = "10de"


class MigConfigError(Exception):
    """The MIG manager would reject the file; with a message."""


class _MigDeviceSpec(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    devices: str | list[int]
    mig_enabled: bool
    mig_devices: dict[str, int] = {}
    device_filter: str | list[str] = ""


class _MigConfigFile(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    version: str
    mig_configs: dict[str, list[_MigDeviceSpec]]


def parse_mig_config(text: str) -> dict[str, Specs]:
    try:
        documents: list[Any] = [document for _, document in read_yaml(text)]
        file = msgspec.convert(documents[0] if documents else {}, _MigConfigFile)
    except (UserError, msgspec.ValidationError) as error:
        raise MigConfigError(str(error)) from error
    if file.version != "v1":
        raise MigConfigError(f"unknown version: {file.version}")
    return {name: tuple(_spec(name, one) for one in specs) for name, specs in file.mig_configs.items()}


def targets(specs: Specs, slots: Sequence[GpuSlot]) -> Mapping[int, MigSpec] | Problem:
    """The new layout of each GPU that changes, or why it is impossible."""
    wanted: dict[int, MigSpec] = {}
    for spec in specs:
        for slot in slots:
            facts = _layout(slot)
            if not _speaks_of(spec, slot, facts):
                continue
            if facts is None:
                if not spec.enabled:
                    continue
                if spec.devices == "all":
                    continue
                return Problem(f"GPU {slot.index} ({slot.model}) has no MIG", "leave it out")
            problem = counts_problem(spec.counts, facts)
            if problem is not None:
                return problem
            wanted[slot.index] = spec
    missing = [index for spec in specs if spec.devices != "all" for index in spec.devices if index >= len(slots)]
    if missing:
        return Problem(f"no GPU {missing[0]}", f"the node has {len(slots)}")
    if not wanted and any(spec.enabled for spec in specs):
        return Problem("the layout names no GPU of this node", "see its devices and device-filter")
    return wanted


def _layout(slot: GpuSlot) -> Layout | None:
    model = find_model(slot.model)
    return model.mig_layout() if model is not None else None


def _speaks_of(spec: MigSpec, slot: GpuSlot, facts: Layout | None) -> bool:
    if spec.devices != "all" and slot.index not in spec.devices:
        return False
    ids = {f"0x{device}{_VENDOR}" for device in facts.pci} if facts is not None else set()
    return not spec.filters or any(one.lower().partition(":")[0] in ids for one in spec.filters)


def _spec(name: str, one: _MigDeviceSpec) -> MigSpec:
    if isinstance(one.devices, str) and one.devices != "all":
        raise MigConfigError(f"{name}: devices is neither all nor a list of numbers")
    if not one.mig_enabled and one.mig_devices:
        raise MigConfigError(f"{name}: mig-devices where mig-enabled is false")
    if one.mig_devices and not any(one.mig_devices.values()):
        raise MigConfigError(f"{name}: all counts are zero")
    if any(count < 0 for count in one.mig_devices.values()):
        raise MigConfigError(f"{name}: a count below zero")
    filters = one.device_filter
    return MigSpec(
        enabled=one.mig_enabled,
        counts=tuple(sorted((profile, count) for profile, count in one.mig_devices.items() if count)),
        devices="all" if isinstance(one.devices, str) else tuple(one.devices),
        filters=tuple(filters) if isinstance(filters, list) else (filters,) if filters else (),
    )
