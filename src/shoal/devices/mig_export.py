"""Writes the present MIG layout of a node as a file of mig-parted, as short as possible.

GPUs with equal instances share an entry. An entry names GPUs by index only where it does not have all GPUs of its kind,
and names the kind only where the node has several kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal.devices.mig_config import VERSION
from shoal.devices.mig_layouts import Counts, MigSpec, Specs

GpuState = tuple[int, str, bool, Counts]
"""Index, PCI id, whether MIG is enabled, instances."""


def exported_specs(gpus: Sequence[GpuState]) -> Specs:
    groups: dict[tuple[bool, Counts], list[GpuState]] = {}
    kinds: dict[str, set[int]] = {}
    for gpu in gpus:
        index, kind, is_mig, counts = gpu
        groups.setdefault((is_mig, counts if is_mig else ()), []).append(gpu)
        kinds.setdefault(kind, set()).add(index)
    found = []
    for (is_mig, counts), members in groups.items():
        own = sorted({kind for _, kind, _, _ in members})
        indexes = {index for index, _, _, _ in members}
        is_all = indexes == set().union(*(kinds[kind] for kind in own))
        has_filter = len(kinds) > 1 and len(groups) > 1
        found.append(
            MigSpec(
                enabled=is_mig,
                counts=counts,
                devices="all" if is_all else tuple(sorted(indexes)),
                filters=tuple(own) if has_filter else (),
            )
        )
    return tuple(found)


def exported_document(specs: Specs, name: str) -> dict[str, Any]:
    return {"version": VERSION, "mig-configs": {name: [_entry(spec) for spec in specs]}}


def _entry(spec: MigSpec) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if spec.filters:
        found["device-filter"] = spec.filters[0] if len(spec.filters) == 1 else list(spec.filters)
    found["devices"] = spec.devices if spec.devices == "all" else list(spec.devices)
    found["mig-enabled"] = spec.enabled
    found["mig-devices"] = dict(spec.counts)
    return found
