"""Finds the labels and annotations of a Node that Shoal wrote, by the managers of its fields, for their removal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Obj = dict[str, Any]
_WRITERS = frozenset({"shoal-operator", "shoal-agent-labels", "shoal-agent-discovery", "shoal"})
_PREFIXES = ("nvidia.com/", "feature.node.kubernetes.io/", "shoal.dev/")
_LAYOUT, _NO_LAYOUT = "nvidia.com/mig.config", "all-disabled"
_SIDES = ("labels", "annotations")
_OF_COMPONENTS = (
    *("nvidia.com/gpu.", "nvidia.com/cuda.", "nvidia.com/mig-", "nvidia.com/mps.", "nvidia.com/vgpu."),
    *("nvidia.com/gfd.", "nvidia.com/mig.capable", "nvidia.com/mig.strategy", "nvidia.com/mig.config.state"),
    *("feature.node.kubernetes.io/", "shoal.dev/gpu-stages", "shoal.dev/gpu-numa", "shoal.dev/gpu-islands"),
    "shoal.dev/topology",
)
"""Labels and annotations that discovery, feature discovery, plugin and MIG manager write, Shoal's or NVIDIA's."""


def removal_patch(node: Obj, *, had_labels: bool = True) -> Obj:
    """A merge patch that removes them; empty if there are none. Fields with a second writer stay.

    `had_labels`: whether nodes had labels of GPUs or features before the installation. Without them, those of all
    components go, whichever program wrote them.
    """
    metadata: Obj = {}
    for side in _SIDES:
        ours: set[str] = set()
        others: set[str] = set()
        for entry in node["metadata"].get("managedFields") or ():
            found = _names(entry, side)
            (ours if entry.get("manager") in _WRITERS else others).update(found)
        there = node["metadata"].get(side) or {}
        found = ours - others
        if not had_labels:
            found |= {name for name in there if name.startswith(_OF_COMPONENTS)}
            # The operator's default; another layout was the choice of a user.
            found |= {_LAYOUT} if there.get(_LAYOUT) == _NO_LAYOUT else set()
        gone = sorted(name for name in found if name in there and name.startswith(_PREFIXES))
        if gone:
            metadata[side] = dict.fromkeys(gone)
    return {"metadata": metadata} if metadata else {}


def _names(entry: Mapping[str, Any], side: str) -> set[str]:
    fields = ((entry.get("fieldsV1") or {}).get("f:metadata") or {}).get(f"f:{side}") or {}
    return {name[2:] for name in fields if name.startswith("f:")}
